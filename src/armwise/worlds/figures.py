"""A run over time as one interactive page: forces, deviations, energies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from armwise.worlds.files import write_file
from armwise.worlds.run import Run

_MOST = 4000
"""Points per curve beyond which curves are thinned."""


def run_figure(run: Run) -> Any:
    """Return a plotly figure: force, deviation, energy, singular values, residual."""
    from plotly.subplots import make_subplots

    titles = (
        "constraint force [N]",
        "deviation ‖D‖ [m]",
        "energy [J]",
        "singular values of A [1/kg]",
        "residual [m/s²]",
        "ledger balance [J]",
    )
    figure = make_subplots(rows=3, cols=2, subplot_titles=titles, shared_xaxes=True)
    thin = slice(None, None, max(1, len(run.time) // _MOST))
    for name in run.engine.layout.rows:
        force = np.linalg.norm(run.force(name), axis=1)
        deviation = np.linalg.norm(run.deviation(name), axis=1)
        _curve(figure, run, thin, force, name, 1, 1)
        _curve(figure, run, thin, deviation, name, 1, 2)
    for name, values in _energies(run).items():
        _curve(figure, run, thin, values, name, 2, 1)
    for k, values in enumerate(run.singular_values.T):
        _curve(figure, run, thin, values, f"σ{k + 1}", 2, 2)
    if run.engine.layout.rows:
        _curve(figure, run, thin, run.residual, "residual", 3, 1)
    _curve(figure, run, thin, run.ledger.balance, "balance", 3, 2)
    figure.update_yaxes(type="log", row=1, col=2, exponentformat="power")
    figure.update_yaxes(type="log", row=3, col=1, exponentformat="power")
    figure.update_xaxes(title_text="time [s]", row=3)
    figure.update_layout(height=950, title=run.world.name, template="plotly_white")
    return figure


def write_figures(run: Run, path: str | Path) -> None:
    """Write the figure as one self-contained HTML file."""
    page = run_figure(run).to_html(include_plotlyjs=True, full_html=True)
    write_file(Path(path), page.encode())


def _energies(run: Run) -> dict[str, np.ndarray]:
    ledger = run.ledger
    zero = np.zeros_like(run.time)
    return {
        "kinetic": sum(ledger.kinetic.values(), start=zero),
        "gravitational": sum(ledger.gravitational.values(), start=zero),
        "stored": sum(ledger.stored.values(), start=zero),
        "total": ledger.energy,
    }


def _curve(
    figure: Any,
    run: Run,
    thin: slice,
    values: np.ndarray,
    name: str,
    row: int,
    column: int,
) -> None:
    from plotly.graph_objects import Scatter

    curve = Scatter(
        x=run.time[thin], y=values[thin], name=name, legendgroup=name, mode="lines"
    )
    figure.add_trace(curve, row=row, col=column)
