"""Figures of a world's run: the scene in motion, forces, deviations and energies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from armwise.files import write_atomically
from armwise.report.formats import figure_to_html, page_to_html
from armwise.report.report import PlotlyFigure
from armwise.worlds import Frames, Run, frames_of, nails_of, write_run

_COLORS = {"body": "#1f4e79", "spring": "#c8781e"}

_MOST_POINTS = 4000
"""Points per curve beyond which curves are thinned: more than a screen has columns."""


def write_world(run: Run, folder: str | Path) -> list[Path]:
    """Write a run's table, summary, figures and animation into a folder.

    Returns:
        The files that were written.
    """
    files = write_run(run, folder)
    for name, figure in (
        ("figures.html", run_figure(run)),
        ("world.html", animation_figure(run)),
    ):
        files.append(Path(folder) / name)
        write_atomically(files[-1], _page(run.world.name, figure).encode())
    return files


def _page(title: str, figure: Any) -> str:
    figures: list[Any] = []
    description = json.loads(figure.to_json())
    body = figure_to_html(PlotlyFigure(title, {"frames": [], **description}), figures)
    return page_to_html(title, body, figures)


def animation_figure(run: Run, frames: int = 120) -> Any:
    """Return a plotly figure of the world in motion, with a slider."""
    import plotly.graph_objects as go

    drawing = frames_of(run, frames)
    steps = [
        go.Frame(data=_traces(drawing, k), name=f"{t:.2f}")
        for k, t in enumerate(drawing.time)
    ]
    nails = np.array(nails_of(run.world)).reshape(-1, 3)
    pins = go.Scatter3d(
        x=nails[:, 0], y=nails[:, 1], z=nails[:, 2], mode="markers",
        marker={"size": 4, "color": "#be1e2d"}, name="nails",
    )  # fmt: skip
    figure = go.Figure(data=[*_traces(drawing, 0), pins], frames=steps)
    figure.update_layout(
        title=run.world.name, template="plotly_white", scene=_scene(drawing, nails),
        updatemenus=[_buttons()], sliders=[_slider(drawing)], height=800,
    )  # fmt: skip
    return figure


def _traces(drawing: Frames, k: int) -> list[Any]:
    import plotly.graph_objects as go

    traces = []
    for kind, color in _COLORS.items():
        indices = [i for i, stroke in enumerate(drawing.strokes) if stroke.kind == kind]
        ends = drawing.ends[k, indices]
        gaps = np.full((len(indices), 1, 3), np.nan)
        path = np.concatenate([ends, gaps], axis=1).reshape(-1, 3)
        traces.append(
            go.Scatter3d(
                x=path[:, 0], y=path[:, 1], z=path[:, 2], mode="lines", name=kind,
                line={"color": color, "width": 6 if kind == "body" else 3},
            )
        )  # fmt: skip
    return traces


def _scene(drawing: Frames, nails: np.ndarray) -> dict[str, Any]:
    points = np.vstack([drawing.ends.reshape(-1, 3), nails])
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.55 * float((high - low).max()) + 1e-3
    middle = (low + high) / 2
    ranges = {
        f"{letter}axis": {"range": [float(m - half), float(m + half)], "title": letter}
        for letter, m in zip("xyz", middle, strict=True)
    }
    camera = {"eye": {"x": 0.3, "y": -2.0, "z": 0.5}}
    return {**ranges, "aspectmode": "cube", "camera": camera}


def _buttons() -> dict[str, Any]:
    play = {"frame": {"duration": 33, "redraw": True}, "fromcurrent": True}
    stop = {"frame": {"duration": 0, "redraw": False}, "mode": "immediate"}
    return {
        "type": "buttons",
        "buttons": [
            {"label": "Play", "method": "animate", "args": [None, play]},
            {"label": "Pause", "method": "animate", "args": [[None], stop]},
        ],
    }


def _slider(drawing: Frames) -> dict[str, Any]:
    now = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate"}
    names = [f"{t:.2f}" for t in drawing.time]
    steps = [
        {"label": name, "method": "animate", "args": [[name], now]} for name in names
    ]
    return {"steps": steps, "currentvalue": {"prefix": "time [s]: "}}


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
    thin = slice(None, None, max(1, len(run.time) // _MOST_POINTS))
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
