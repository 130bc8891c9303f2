"""A world as strokes between points, for pictures of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import BASE, Shape
from armwise.worlds.bodies import ArticulatedBody, Body, Point, RigidBody
from armwise.worlds.forces import Spring
from armwise.worlds.run import Run, write_file
from armwise.worlds.world import World

Place = tuple[float, float, float]


@dataclass(frozen=True)
class Stroke:
    """A line between two points of bodies, or to a place in the world.

    Attributes:
        a, b: Its ends.
        kind: "body" or "spring".
        name: The body or the spring.
    """

    a: Point | Place
    b: Point | Place
    kind: str
    name: str


def outline_of(world: World) -> list[Stroke]:
    """Return the strokes of every body and spring."""
    strokes = [stroke for body in world.bodies for stroke in _body(body)]
    strokes += [
        Stroke(force.a, force.b, "spring", force.name)
        for force in world.forces
        if isinstance(force, Spring)
    ]
    return strokes


def nails_of(world: World) -> list[Place]:
    """Return the places in the world that constraints hold on to and that stay."""
    return [
        relation.place
        for relation in world.relations
        if len(relation.points) == 1
        and relation.curve is None
        and not (relation.is_moving or relation.is_velocity)
    ]


def _body(body: Body) -> list[Stroke]:
    if isinstance(body, RigidBody):
        edges = [edge for shape in body.shapes for edge in _edges(shape)]
        return [
            Stroke(Point(body.name, a), Point(body.name, b), "body", body.name)
            for a, b in edges
        ]
    strokes = []
    for link in body.arm.links:
        for shape in link.shapes:
            strokes += [_link_stroke(body, link.name, a, b) for a, b in _edges(shape)]
    return strokes or _bones(body)


def _link_stroke(body: ArticulatedBody, link: str, a: Place, b: Place) -> Stroke:
    ends = Point(body.name, a, link), Point(body.name, b, link)
    return Stroke(*ends, "body", body.name)


def _bones(body: ArticulatedBody) -> list[Stroke]:
    """Join the origins of successive links of an arm without shapes."""
    arm = body.arm
    names = [link.name for link in arm.links]
    strokes = []
    for i, joint in enumerate(arm.joints):
        if joint.parent != BASE:
            a = Point(body.name, (0.0, 0.0, 0.0), names[joint.parent])
            b = Point(body.name, (0.0, 0.0, 0.0), names[i])
            strokes.append(Stroke(a, b, "body", body.name))
    for frame in arm.frames:
        if frame.link != BASE:
            a = Point(body.name, (0.0, 0.0, 0.0), names[frame.link])
            b = Point(body.name, (0.0, 0.0, 0.0), frame.name)
            strokes.append(Stroke(a, b, "body", body.name))
    return strokes


def _edges(shape: Shape) -> list[tuple[Place, Place]]:
    """Return a shape as lines: an axis, a box's edges, a ball's three axes."""
    if shape.kind in ("cylinder", "capsule"):
        half = shape.size[1] / 2
        ends = [((0.0, 0.0, -half), (0.0, 0.0, half))]
    elif shape.kind == "box":
        ends = _box_edges(shape.size)
    elif shape.kind == "sphere":
        r = shape.size[0]
        ends = [
            ((-r * x, -r * y, -r * z), (r * x, r * y, r * z))
            for x, y, z in np.eye(3).tolist()
        ]
    else:
        return []
    return [(_moved(shape, a), _moved(shape, b)) for a, b in ends]


def _box_edges(size: tuple[float, ...]) -> list[tuple[Place, Place]]:
    x, y, z = (length / 2 for length in size)
    corners: list[Place] = [
        (i * x, j * y, k * z) for i, j, k in product((-1, 1), repeat=3)
    ]
    return [
        (a, b)
        for i, a in enumerate(corners)
        for b in corners[i + 1 :]
        if sum(one != other for one, other in zip(a, b, strict=True)) == 1
    ]


def _moved(shape: Shape, place: Place) -> Place:
    x, y, z = (shape.pose[:3, :3] @ np.asarray(place) + shape.pose[:3, 3]).tolist()
    return x, y, z


# Where every stroke of a world was, frame by frame.


@dataclass(frozen=True, eq=False)
class Frames:
    """The strokes of a run at some times.

    Attributes:
        time: Of each frame in [s].
        strokes: What they are.
        ends: Their ends in the world in [m]: (frames, strokes, 2, 3).
    """

    time: np.ndarray
    strokes: list[Stroke]
    ends: np.ndarray


def frames_of(run: Run, count: int) -> Frames:
    """Return `count` frames, evenly spread over a run."""
    picks = np.unique(np.linspace(0, len(run.time) - 1, count).round().astype(int))
    strokes = outline_of(run.world)
    points = [p for s in strokes for p in (s.a, s.b) if isinstance(p, Point)]
    states = run.states[picks]
    found = run.engine.positions(states, points) if points else None
    ends = np.zeros((len(picks), len(strokes), 2, 3))
    place = 0
    for k, stroke in enumerate(strokes):
        for j, end in enumerate((stroke.a, stroke.b)):
            if isinstance(end, Point):
                assert found is not None
                ends[:, k, j] = found[:, place]
                place += 1
            else:
                ends[:, k, j] = end
    return Frames(run.time[picks], strokes, ends)


# A run in motion, as one HTML file; `armwise.view` shows it live.

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


# A run over time as one interactive page: forces, deviations, energies.

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
