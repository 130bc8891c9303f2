"""A run in motion, as one HTML file; `armwise.view` shows it live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from armwise.worlds.files import write_file
from armwise.worlds.frames import Frames, frames_of
from armwise.worlds.outline import nails_of
from armwise.worlds.run import Run

_COLORS = {"body": "#1f4e79", "spring": "#c8781e"}


def animation_figure(run: Run, frames: int = 120) -> Any:
    """Return a plotly figure of the world in motion, with a slider."""
    import plotly.graph_objects as go

    found = frames_of(run, frames)
    steps = [
        go.Frame(data=_traces(found, k), name=f"{t:.2f}")
        for k, t in enumerate(found.time)
    ]
    nails = np.array(nails_of(run.world)).reshape(-1, 3)
    pins = go.Scatter3d(
        x=nails[:, 0], y=nails[:, 1], z=nails[:, 2], mode="markers",
        marker={"size": 4, "color": "#be1e2d"}, name="nails",
    )  # fmt: skip
    figure = go.Figure(data=[*_traces(found, 0), pins], frames=steps)
    figure.update_layout(
        title=run.world.name, template="plotly_white", scene=_scene(found, nails),
        updatemenus=[_buttons()], sliders=[_slider(found)], height=800,
    )  # fmt: skip
    return figure


def write_animation(run: Run, path: str | Path, frames: int = 120) -> None:
    """Write the world in motion as one self-contained HTML file."""
    page = animation_figure(run, frames).to_html(include_plotlyjs=True)
    write_file(Path(path), page.encode())


def _traces(found: Frames, k: int) -> list[Any]:
    import plotly.graph_objects as go

    traces = []
    for kind, color in _COLORS.items():
        chosen = [i for i, stroke in enumerate(found.strokes) if stroke.kind == kind]
        ends = found.ends[k, chosen]
        gaps = np.full((len(chosen), 1, 3), np.nan)
        path = np.concatenate([ends, gaps], axis=1).reshape(-1, 3)
        traces.append(
            go.Scatter3d(
                x=path[:, 0], y=path[:, 1], z=path[:, 2], mode="lines", name=kind,
                line={"color": color, "width": 6 if kind == "body" else 3},
            )
        )  # fmt: skip
    return traces


def _scene(found: Frames, nails: np.ndarray) -> dict[str, Any]:
    points = np.vstack([found.ends.reshape(-1, 3), nails])
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


def _slider(found: Frames) -> dict[str, Any]:
    now = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate"}
    names = [f"{t:.2f}" for t in found.time]
    steps = [
        {"label": name, "method": "animate", "args": [[name], now]} for name in names
    ]
    return {"steps": steps, "currentvalue": {"prefix": "time [s]: "}}
