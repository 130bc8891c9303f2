"""Simulated world around the arm: bodies, constraints, springs and forces over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE
from armwise.dynamics import Dynamics
from armwise.motions import Motion
from armwise.view.forms import BODY, Solid, primitive
from armwise.view.geometry import bones_of
from armwise.worlds import (
    ArticulatedBody,
    Body,
    Point,
    Relation,
    RigidBody,
    Run,
    Spring,
)

if TYPE_CHECKING:
    from jaxtyping import Float

FRAMES_PER_SECOND = 30
"""As many as the player shows."""
MOST_FRAMES = 3000
"""Frames of one run: 100 s at full rate, a longer one at a lower rate."""


@dataclass(frozen=True, eq=False)
class ConstraintTrack:
    """A constraint over time.

    Attributes:
        name: Its name in the world.
        points: Positions of its points in [m].
        anchor: Position they are held at, if it is a single one.
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
        constraints: Its constraints over time.
        springs: Both ends of every spring in [m].
    """

    name: str
    time: Float[np.ndarray, " frames"]
    solids: tuple[Solid, ...]
    poses: Float[np.ndarray, "frames bodies 4 4"]
    constraints: tuple[ConstraintTrack, ...]
    springs: Float[np.ndarray, "frames springs 2 3"]

    @property
    def force_scale(self) -> float:
        """Length of the longest arrow in [N]: the 95 % quantile of constraint forces.

        Not their maximum: an impact would shrink all other arrows to nothing.
        """
        sizes = [np.linalg.norm(track.force, axis=1) for track in self.constraints]
        forces = np.concatenate([*sizes, np.zeros(0)])
        finite = forces[np.isfinite(forces)]
        return float(np.quantile(finite, 0.95)) if finite.size else 0.0

    def row_at(self, t: float) -> int:
        """Return the frame nearest before a time in [s]."""
        return row_before(self.time, t)


def row_before(times: Float[np.ndarray, " rows"], t: float) -> int:
    """Return the row nearest before a time in [s], the first or last beyond them."""
    row = int(np.searchsorted(times, t, side="right")) - 1
    return min(max(row, 0), len(times) - 1)


def surroundings_of(run: Run, without: str | None = None) -> Surroundings:
    """Collect bodies, constraints and springs of a run, frame by frame.

    Args:
        run: The simulated run.
        without: Name of a body that is drawn otherwise.
    """
    span = float(run.time[-1] - run.time[0])
    count = min(max(int(span * FRAMES_PER_SECOND), 2), MOST_FRAMES)
    # Frames that exist, not interpolated ones: rotations and impacts stay exact.
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
        tuple(_track(run, relation, picks) for relation in run.world.relations),
        _springs(run, picks),
    )


def _solids(body: Body, first: int) -> list[Solid]:
    """Return a body's outline; its frames begin at `first`, an arm's base last."""
    if not isinstance(body, ArticulatedBody):
        return [
            Solid(form, first, shape.pose, BODY, "world", body.name)
            for shape in (body.shapes if isinstance(body, RigidBody) else ())
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
    for shape in body.base.shapes if body.base is not None else ():
        if (form := primitive(shape)) is not None:
            bones.append((form, shape.pose))
    return solids + [Solid(f, base, T, BODY, "world", body.name) for f, T in bones]


def _poses(run: Run, body: Body, picks: np.ndarray) -> list[np.ndarray]:
    """Return T_world_frame over time, one array per frame of a body."""
    if isinstance(body, ArticulatedBody):
        dynamics = Dynamics(body.arm)
        q = run.position(body.name)[picks, -body.arm.dof :]
        base = _frame(run, body, picks, body.arm.base)
        links = [dynamics.link_pose(q, link.name) for link in body.arm.links]
        return [*(base @ T for T in links), base]
    return [_frame(run, body, picks)] if isinstance(body, RigidBody) else []


def _frame(
    run: Run, body: Body, picks: np.ndarray, link: str | None = None
) -> np.ndarray:
    """Return T_world_frame of a rigid body, or of an arm's link, over time."""
    corners = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    # Origin and unit points of a body give its pose, whatever its coordinates are.
    corner_points = [Point(body.name, corner, link) for corner in corners]
    points = _positions(run, corner_points, picks)
    T = np.tile(np.eye(4), (len(picks), 1, 1))
    T[:, :3, 3] = points[:, 0]
    T[:, :3, :3] = np.swapaxes(points[:, 1:] - points[:, :1], 1, 2)
    return T


def _positions(run: Run, points: Sequence[Point], picks: np.ndarray) -> np.ndarray:
    return run.engine.positions(run.states[picks], points)


def _track(run: Run, relation: Relation, picks: np.ndarray) -> ConstraintTrack:
    points = _positions(run, relation.points, picks)
    force = np.full((len(picks), 3), np.nan)
    # Forces come along the constraint's directions; a curve's turn with the point.
    if relation.curve is None:
        rows = run.force(relation.name)[picks]
        force = relation.signs[0] * rows @ np.asarray(relation.directions)
    anchor = _anchor(relation, run.time[picks], points)
    return ConstraintTrack(relation.name, points, anchor, force, _path(relation))


def _anchor(
    relation: Relation, time: np.ndarray, points: np.ndarray
) -> np.ndarray | None:
    """Return the position a point is held at: a nail, or the other body's point."""
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
    """Return the path a point may slide along: a curve, or a metre of a line."""
    if relation.curve is not None:
        curve = relation.curve
        return np.array([curve.at(s)[0] for s in curve.samples()[::8]], dtype=float)
    straight = len(relation.directions) == 2 and len(relation.points) == 1
    if straight and not (relation.is_moving or relation.is_velocity):
        along = np.cross(*np.asarray(relation.directions))
        return np.asarray(relation.fixed_target) + np.outer([-0.5, 0.5], along)
    return None


def _springs(run: Run, picks: np.ndarray) -> np.ndarray:
    springs = [(f.a, f.b) for f in run.world.forces if isinstance(f, Spring)]
    # Lines of a body of the user's own are all it shows of itself.
    lines = [line for body in run.world.bodies for line in body.outline()]
    ends = np.zeros((len(picks), len(springs) + len(lines), 2, 3))
    for k, line in enumerate([*springs, *lines]):
        for j, end in enumerate(line):
            if isinstance(end, Point):
                ends[:, k, j] = _positions(run, [end], picks)[:, 0]
            else:
                ends[:, k, j] = end
    return ends
