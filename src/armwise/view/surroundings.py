"""A simulated world around the arm: its bodies, what holds them, and how hard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE
from armwise.dynamics import Dynamics
from armwise.motions import Motion
from armwise.view.forms import BODY, Solid, primitive
from armwise.view.looks import bones_of
from armwise.worlds import ArticulatedBody, Body, Point, Relation, Run, Spring

if TYPE_CHECKING:
    from jaxtyping import Float

FRAMES_PER_SECOND = 30
MOST_FRAMES = 3000


@dataclass(frozen=True, eq=False)
class Hold:
    """A constraint over time.

    Attributes:
        name: What the world calls it.
        points: Where its points are in [m].
        anchor: Where they are held, if that is one place.
        force: On the first point in [N]; NaN along a curve, where it has no fixed axes.
        path: The line or curve a point may slide along, as a polyline.
    """

    name: str
    points: Float[np.ndarray, "frames points 3"]
    anchor: Float[np.ndarray, "frames 3"] | None
    force: Float[np.ndarray, "frames 3"]
    path: Float[np.ndarray, "corners 3"] | None


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A world's motion, ready to be drawn.

    Attributes:
        name: The world's.
        time: Of every frame in [s].
        solids: Its bodies; `frame` counts along `poses`.
        poses: T_world_frame of every body or link.
        holds: Its constraints.
        springs: Both ends of every spring in [m].
    """

    name: str
    time: Float[np.ndarray, " frames"]
    solids: tuple[Solid, ...]
    poses: Float[np.ndarray, "frames bodies 4 4"]
    holds: tuple[Hold, ...]
    springs: Float[np.ndarray, "frames springs 2 3"]

    @property
    def usual_force(self) -> float:
        """What all but one in twenty constraint forces stay below, in [N]."""
        sizes = [np.linalg.norm(hold.force, axis=1) for hold in self.holds]
        known = [size[np.isfinite(size)] for size in sizes]
        every = np.concatenate(known) if known else np.zeros(0)
        return float(np.quantile(every, 0.95)) if every.size else 0.0

    def row_at(self, t: float) -> int:
        """Return the frame nearest before a time in [s]."""
        row = int(np.searchsorted(self.time, t, side="right")) - 1
        return min(max(row, 0), len(self.time) - 1)


def surroundings_of(run: Run, without: str | None = None) -> Surroundings:
    """Collect what is to be seen of a run.

    Args:
        run: What happened in the world.
        without: A body that is drawn by someone else.
    """
    span = float(run.time[-1] - run.time[0])
    count = min(max(int(span * FRAMES_PER_SECOND), 2), MOST_FRAMES)
    picks = np.unique(np.linspace(0, len(run.time) - 1, count).round().astype(int))
    solids: list[Solid] = []
    poses: list[np.ndarray] = []
    for body in run.world.bodies:
        if body.name != without:
            solids += _solids(body, len(poses))
            poses += _poses(run, body, picks)
    moving = np.stack(poses, axis=1) if poses else np.zeros((len(picks), 0, 4, 4))
    return Surroundings(
        run.world.name,
        run.time[picks] - run.time[0],
        tuple(solids),
        moving,
        tuple(_hold(run, relation, picks) for relation in run.world.relations),
        _springs(run, picks),
    )


def _solids(body: Body, first: int) -> list[Solid]:
    """Return a body's outline; its frames begin at `first`, an arm's base last."""
    if not isinstance(body, ArticulatedBody):
        return [
            Solid(form, first, shape.pose, BODY, "world", body.name)
            for shape in body.shapes
            if (form := primitive(shape)) is not None
        ]
    arm, base = body.arm, first + len(body.arm.links)
    solids = []
    for i, link in enumerate(arm.links):
        forms = [(primitive(shape), shape.pose) for shape in link.shapes]
        placed = [(form, T) for form, T in forms if form is not None]
        placed = placed or [(bone.form, bone.pose) for bone in bones_of(arm, i)]
        solids += [Solid(f, first + i, T, BODY, "world", body.name) for f, T in placed]
    bones = [(bone.form, bone.pose) for bone in bones_of(arm, BASE)]
    return solids + [Solid(f, base, T, BODY, "world", body.name) for f, T in bones]


def _poses(run: Run, body: Body, picks: np.ndarray) -> list[np.ndarray]:
    """Return T_world_frame over time, one array per frame of a body."""
    if isinstance(body, ArticulatedBody):
        dynamics, q = Dynamics(body.arm), run.position(body.name)[picks]
        still = np.broadcast_to(body.pose, (len(picks), 4, 4))
        links = [dynamics.link_pose(q, link.name) for link in body.arm.links]
        return [*(body.pose @ T for T in links), still]
    corners = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    places = _places(run, [Point(body.name, corner) for corner in corners], picks)
    T = np.tile(np.eye(4), (len(picks), 1, 1))
    T[:, :3, 3] = places[:, 0]
    T[:, :3, :3] = np.swapaxes(places[:, 1:] - places[:, :1], 1, 2)
    return [T]


def _places(run: Run, points: Sequence[Point], picks: np.ndarray) -> np.ndarray:
    return run.engine.positions(run.states[picks], points)


def _hold(run: Run, relation: Relation, picks: np.ndarray) -> Hold:
    points = _places(run, relation.points, picks)
    force = np.full((len(picks), 3), np.nan)
    if relation.curve is None:
        rows = run.force(relation.name)[picks]
        force = relation.signs[0] * rows @ np.asarray(relation.directions)
    anchor = _anchor(relation, run.time[picks], points)
    return Hold(relation.name, points, anchor, force, _path(relation))


def _anchor(
    relation: Relation, time: np.ndarray, points: np.ndarray
) -> np.ndarray | None:
    """Return the place a point is held at: a nail, or the other body's point."""
    if relation.curve is not None or relation.is_velocity:
        return None
    if len(relation.points) == 2:
        return np.asarray(points[:, 1])
    if len(relation.points) > 2 or len(relation.directions) < 3:
        return None
    if isinstance(relation.target, Motion):
        return relation.target.sample(time).q
    return np.broadcast_to(np.asarray(relation.target), (len(time), 3))


def _path(relation: Relation) -> np.ndarray | None:
    """Return what a point may slide along: a curve, or a metre of a straight line."""
    if relation.curve is not None:
        places = [relation.curve.at(s)[0] for s in relation.curve.samples()[::8]]
        return np.array(places, dtype=float)
    straight = len(relation.directions) == 2 and len(relation.points) == 1
    if straight and not (relation.is_moving or relation.is_velocity):
        along = np.cross(*np.asarray(relation.directions))
        return np.asarray(relation.place) + np.outer([-0.5, 0.5], along)
    return None


def _springs(run: Run, picks: np.ndarray) -> np.ndarray:
    springs = [force for force in run.world.forces if isinstance(force, Spring)]
    ends = np.zeros((len(picks), len(springs), 2, 3))
    for k, spring in enumerate(springs):
        for j, end in enumerate((spring.a, spring.b)):
            if isinstance(end, Point):
                ends[:, k, j] = _places(run, [end], picks)[:, 0]
            else:
                ends[:, k, j] = end
    return ends
