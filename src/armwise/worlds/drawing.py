"""Line drawings of worlds: strokes between points, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from armwise.arms import BASE, Shape
from armwise.worlds.articulated import ArticulatedBody
from armwise.worlds.bodies import Point
from armwise.worlds.body_protocol import Body
from armwise.worlds.forces import Spring
from armwise.worlds.rigid import RigidBody
from armwise.worlds.run import Run
from armwise.worlds.world import World

Position = tuple[float, float, float]


@dataclass(frozen=True)
class Stroke:
    """A line between two points of bodies, or to a position in the world.

    Attributes:
        a, b: Its ends.
        kind: "body" or "spring".
        name: The body or the spring.
    """

    a: Point | Position
    b: Point | Position
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


def nails_of(world: World) -> list[Position]:
    """Return the positions in the world that constraints hold on to and that stay."""
    return [
        relation.fixed_target
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
    if not isinstance(body, ArticulatedBody):
        return [Stroke(a, b, "body", body.name) for a, b in body.outline()]
    strokes = []
    for link in body.arm.links:
        for shape in link.shapes:
            strokes += [_link_stroke(body, link.name, a, b) for a, b in _edges(shape)]
    strokes = strokes or _bones(body)
    for shape in body.base.shapes if body.base is not None else ():
        strokes += [_link_stroke(body, body.arm.base, a, b) for a, b in _edges(shape)]
    return strokes


def _link_stroke(body: ArticulatedBody, link: str, a: Position, b: Position) -> Stroke:
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


def _edges(shape: Shape) -> list[tuple[Position, Position]]:
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


def _box_edges(size: tuple[float, ...]) -> list[tuple[Position, Position]]:
    x, y, z = (length / 2 for length in size)
    corners: list[Position] = [
        (i * x, j * y, k * z) for i, j, k in product((-1, 1), repeat=3)
    ]
    return [
        (a, b)
        for i, a in enumerate(corners)
        for b in corners[i + 1 :]
        # An edge joins corners that differ in exactly one coordinate.
        if sum(one != other for one, other in zip(a, b, strict=True)) == 1
    ]


def _moved(shape: Shape, point: Position) -> Position:
    x, y, z = (shape.pose[:3, :3] @ np.asarray(point) + shape.pose[:3, 3]).tolist()
    return x, y, z


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
    # Unique: short runs have fewer states than frames.
    picks = np.unique(np.linspace(0, len(run.time) - 1, count).round().astype(int))
    strokes = outline_of(run.world)
    points = [p for s in strokes for p in (s.a, s.b) if isinstance(p, Point)]
    states = run.states[picks]
    moving = iter(run.engine.positions(states, points).swapaxes(0, 1) if points else ())
    ends = np.zeros((len(picks), len(strokes), 2, 3))
    for k, stroke in enumerate(strokes):
        for j, end in enumerate((stroke.a, stroke.b)):
            ends[:, k, j] = next(moving) if isinstance(end, Point) else end
    return Frames(run.time[picks], strokes, ends)
