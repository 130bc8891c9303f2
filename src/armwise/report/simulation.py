"""Reports on the run of a world and on a comparison of controllers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from armwise.control import TrackingTable
from armwise.report.formats import save_report
from armwise.report.report import (
    Block,
    BulletList,
    Figure,
    PlotlyFigure,
    Report,
    ReportTable,
    Section,
    Series,
    envelope_rows,
    finite,
    points_per_curve,
)
from armwise.worlds import Frames, Run, frames_of, nails_of, summary, write_run

_COLORS = {"body": "#1f4e79", "spring": "#c8781e"}
"""Of strokes by kind: legible on light and dark paper."""


def make_world_report(run: Run, title: str | None = None, frames: int = 120) -> Report:
    """Collect the motion of a world, its constraints and its energy.

    Args:
        run: The run.
        title: The heading; the world's name if not given.
        frames: How many the animation has.
    """
    motion = PlotlyFigure("The world in motion", animation(run, frames))
    sections = (
        Section("motion", "Motion", (motion,), {}),
        _constraints(run),
        _energy(run),
    )
    return Report(title or run.world.name, sections)


def write_world_report(run: Run, path: str | Path, title: str | None = None) -> Path:
    """Write a report on a world's run: .html (self-contained), .json or .txt."""
    return save_report(path, lambda: make_world_report(run, title))


def write_world(run: Run, folder: str | Path) -> list[Path]:
    """Write a run's table, summary and report into a folder.

    Returns:
        The files that were written.
    """
    files = write_run(run, folder)
    return [*files, write_world_report(run, Path(folder) / "world.html")]


def _constraints(run: Run) -> Section:
    names = run.engine.layout.rows
    forces = {name: np.linalg.norm(run.force(name), axis=1) for name in names}
    gaps = {name: np.linalg.norm(run.deviation(name), axis=1) for name in names}
    singular = {f"σ{k + 1}": x for k, x in enumerate(run.singular_values.T)}
    blocks: list[Block] = []
    if names:
        blocks += [
            _over_time(run, "constraint force", "N", forces),
            _over_time(run, "deviation ‖D‖", "m", gaps, is_logarithmic=True),
            _over_time(run, "singular values of A", "1/kg", singular),
            _over_time(
                run, "residual", "m/s²", {"residual": run.residual}, is_logarithmic=True
            ),
        ]
    events = tuple(f"{e.time:.4f} s: {e.kind} {e.name}: {e.cause}" for e in run.log)
    blocks += [BulletList(events)] if events else []
    data = {
        "largest_deviation": run.largest_deviation,
        "log": [vars(event) for event in run.log],
    }
    return Section("constraints", "Constraints", tuple(blocks), data)


def _energy(run: Run) -> Section:
    ledger = run.ledger
    zero = np.zeros_like(run.time)
    energies = {
        "kinetic": sum(ledger.kinetic.values(), start=zero),
        "gravitational": sum(ledger.gravitational.values(), start=zero),
        "stored": sum(ledger.stored.values(), start=zero),
        "total": ledger.energy,
    }
    accounts = summary(run)["ledger"]
    assert isinstance(accounts, Mapping)
    table = ReportTable(
        ("account", "[J]"), tuple(accounts.items()), "Energy ledger at the end"
    )
    blocks = (
        _over_time(run, "energy", "J", energies),
        _over_time(run, "ledger balance", "J", {"balance": ledger.balance}),
        table,
    )
    return Section("energy", "Energy", blocks, {"ledger": dict(accounts)})


def _over_time(
    run: Run,
    title: str,
    unit: str,
    curves: Mapping[str, np.ndarray],
    is_logarithmic: bool = False,
) -> Figure:
    most = points_per_curve(6 * len(curves))  # six figures on the page
    series = []
    for name, values in curves.items():
        # Without NaN, or every stretch's extremes would be at its first NaN.
        rows = envelope_rows(np.nan_to_num(values), most)
        shown = values[rows]
        if is_logarithmic:  # an exact zero has no logarithm: a gap
            shown = np.where(shown > 0, shown, np.nan)
        series.append(Series(name, run.time[rows], shown, "series"))
    return Figure(title, "time [s]", unit, tuple(series), is_logarithmic)


# The animation, in Plotly's own terms.


def animation(run: Run, frames: int = 120) -> dict[str, Any]:
    """Describe the world in motion, with a slider and buttons."""
    import plotly.graph_objects as go

    strokes = frames_of(run, frames)
    steps = [
        go.Frame(data=_traces(strokes, k), name=f"{t:.2f}")
        for k, t in enumerate(strokes.time)
    ]
    nails = np.array(nails_of(run.world)).reshape(-1, 3)
    pins = go.Scatter3d(
        x=nails[:, 0], y=nails[:, 1], z=nails[:, 2], mode="markers",
        marker={"size": 4, "color": "#be1e2d"}, name="nails",
    )  # fmt: skip
    figure = go.Figure(data=[*_traces(strokes, 0), pins], frames=steps)
    figure.update_layout(
        template="plotly_white", scene=_scene(strokes, nails), height=800,
        updatemenus=[_buttons()], sliders=[_slider(strokes)], margin={"t": 20},
    )  # fmt: skip
    return dict(json.loads(figure.to_json()))


def _traces(strokes: Frames, k: int) -> list[Any]:
    import plotly.graph_objects as go

    traces = []
    for kind, color in _COLORS.items():
        rows = [i for i, stroke in enumerate(strokes.strokes) if stroke.kind == kind]
        ends = strokes.ends[k, rows]
        # NaN after every stroke: one trace draws them all, and no line joins two.
        gaps = np.full((len(rows), 1, 3), np.nan)
        path = np.concatenate([ends, gaps], axis=1).reshape(-1, 3)
        traces.append(
            go.Scatter3d(
                x=path[:, 0], y=path[:, 1], z=path[:, 2], mode="lines", name=kind,
                line={"color": color, "width": 6 if kind == "body" else 3},
            )
        )  # fmt: skip
    return traces


def _scene(strokes: Frames, nails: np.ndarray) -> dict[str, Any]:
    """Axes that hold every frame, of equal scale, so that nothing seems to stretch."""
    points = np.vstack([strokes.ends.reshape(-1, 3), nails])
    low, high = points.min(axis=0), points.max(axis=0)
    # Half the largest extent and a tenth more; 1e-3 m for a world that is one point.
    half = 0.55 * float((high - low).max()) + 1e-3
    middle = (low + high) / 2
    ranges = {
        f"{letter}axis": {"range": [float(m - half), float(m + half)], "title": letter}
        for letter, m in zip("xyz", middle, strict=True)
    }
    camera = {"eye": {"x": 0.3, "y": -2.0, "z": 0.5}}
    return {**ranges, "aspectmode": "cube", "camera": camera}


def _buttons() -> dict[str, Any]:
    # 33 ms: thirty frames a second.
    play = {"frame": {"duration": 33, "redraw": True}, "fromcurrent": True}
    stop = {"frame": {"duration": 0, "redraw": False}, "mode": "immediate"}
    return {
        "type": "buttons",
        "buttons": [
            {"label": "Play", "method": "animate", "args": [None, play]},
            {"label": "Pause", "method": "animate", "args": [[None], stop]},
        ],
    }


def _slider(strokes: Frames) -> dict[str, Any]:
    now = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate"}
    names = [f"{t:.2f}" for t in strokes.time]
    steps = [
        {"label": name, "method": "animate", "args": [[name], now]} for name in names
    ]
    return {"steps": steps, "currentvalue": {"prefix": "time [s]: "}}


# A comparison of controllers.


def make_tracking_report(table: TrackingTable, baseline: str | None = None) -> Report:
    """Collect the errors of every controller, and their ratios to a baseline's.

    Args:
        table: What `benchmark_tracking` returned.
        baseline: Name of the controller to divide by.
    """
    sections = [_errors(table)]
    if baseline is not None:
        sections.append(_ratios(table, baseline))
    return Report("Tracking errors of controllers", tuple(sections))


def write_tracking_report(
    table: TrackingTable, path: str | Path, baseline: str | None = None
) -> Path:
    """Write a report on controllers: .html (self-contained), .json or .txt."""
    return save_report(path, lambda: make_tracking_report(table, baseline))


def _errors(table: TrackingTable) -> Section:
    errors = _by_controller(table.overall(), "rms_error")
    points = Series(
        "one run",
        np.concatenate([np.full(len(x), k) for k, x in enumerate(errors.values())]),
        np.concatenate(list(errors.values())),
        "measured",
    )
    unit = "RMS error [rad, m]"
    figure = Figure(
        "Tracking error", "", unit, (points,), True, True, x_names=tuple(errors)
    )
    rows = tuple(
        # The median and both extremes: errors of runs are few and skewed.
        (name, *(float(np.percentile(x, p)) if x.size else None for p in (50, 0, 100)))
        for name, x in errors.items()
    )
    columns = ("controller", "median", "least", "greatest")
    caption = f"{unit} over all joints; {table.unstable} unstable runs have none"
    data = {name: finite(x) for name, x in errors.items()}
    return Section(
        "errors",
        "Tracking error",
        (figure, ReportTable(columns, rows, caption)),
        {"rms_error": data, "unstable": table.unstable},
    )


def _ratios(table: TrackingTable, baseline: str) -> Section:
    ratios = _by_controller(table.normalised(baseline), "normalised")
    mean = np.array([x.mean() if x.size else np.nan for x in ratios.values()])
    spread = np.array([x.std() if x.size else 0.0 for x in ratios.values()])
    index = np.arange(float(len(ratios)))
    gap = np.full(index.size, np.nan)
    bars = Series(
        "± one standard deviation",
        np.stack([index, index, gap], axis=1).ravel(),
        np.stack([mean - spread, mean + spread, gap], axis=1).ravel(),
        "level",
    )
    title = f"Error relative to {baseline}"
    figure = Figure(
        title,
        "",
        "normalised RMS error",
        (Series("mean", index, mean, "measured"), bars),
        is_stems=True,
        x_names=tuple(ratios),
    )
    data = {
        name: finite([m, s]) for name, m, s in zip(ratios, mean, spread, strict=True)
    }
    return Section("ratios", title, (figure,), {"mean_and_std": data})


def _by_controller(frame: Any, column: str) -> dict[str, np.ndarray]:
    """Return the finite values of a column for each controller, in order."""
    names = frame["controller"].unique(maintain_order=True).to_list()
    values = {
        n: frame.filter(frame["controller"] == n)[column].to_numpy() for n in names
    }
    return {name: x[np.isfinite(x)] for name, x in values.items()}
