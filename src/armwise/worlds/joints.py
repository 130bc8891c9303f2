"""Joints between bodies as sets of point constraints (`mitchell1997` §2.3.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from armwise.errors import ArgumentError
from armwise.worlds.bodies import Point
from armwise.worlds.constraints import (
    PointToNail,
    PointToPoint,
    Relation,
    Vector,
    unit_vector,
)


@dataclass(frozen=True, eq=False)
class Hinge:
    """Let a body turn about one axis of another, or of the world.

    Two points on the axis are held: six rows that take away five freedoms, so the
    force along the axis is shared evenly between the two (the smallest forces win).
    Between two bodies that start out of line, give it a max_force: the sixth row is
    then nearly, not exactly, redundant, and would ask for the impossible.

    Attributes:
        a: A point on the axis, on the body that turns.
        b: The same point on the other body, or in the world [m].
        axis_a: The axis in the frame of a.
        axis_b: The axis in the frame of b, or in the world; the same if not given.
        spread: Distance of the two points in [m].
    """

    name: str
    a: Point
    b: Point | Vector
    axis_a: Vector
    axis_b: Vector | None = None
    spread: float = 0.1
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """Two points on the axis, half the spread either side."""
        one = unit_vector(self.axis_a, self.name)
        other = unit_vector(self.axis_b if self.axis_b is not None else one, self.name)
        ends = ((+0.5, "+"), (-0.5, "-"))
        return tuple(
            _joined(self, f"{self.name}{mark}", side * self.spread, one, other)
            for side, mark in ends
        )


@dataclass(frozen=True, eq=False)
class Weld:
    """Hold one body rigidly to another, or to the world, by three points.

    Between two bodies that start out of line, give it a max_force, as for a hinge.

    Attributes:
        a: A point on one body.
        b: The same point on the other body, or in the world [m].
        rotation: R_b_a, how a's frame stands in b's, as rows.
        spread: Distance of the outer points from the first in [m].
    """

    name: str
    a: Point
    b: Point | Vector
    rotation: tuple[Vector, Vector, Vector] = (
        (1.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
        (0.0, 0.0, 1.0),
    )
    spread: float = 0.1
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """Three points in a right angle."""
        R = _rotation(self.rotation, self.name)
        zero = np.zeros(3)
        return tuple(
            _joined(self, f"{self.name}{mark}", self.spread, arm, R @ arm)
            # Three points that are not on a line fix a rigid body: nine rows for six
            # freedoms.
            for mark, arm in zip("0xy", (zero, *np.eye(3)[:2]), strict=True)
        )


@dataclass(frozen=True, eq=False)
class Orientation:
    """Hold a body's orientation and let it move: only couples are exerted.

    Differences of points are held, so the forces come in opposite pairs.

    Attributes:
        a: Where the pairs act on one body.
        b: Where they act on the other body; None: held in the world.
        rotation: R_b_a to hold, as rows.
        free_axis: Axis of a about which it may still turn, if any.
        spread: Length of the lever in [m].
    """

    name: str
    a: Point
    b: Point | None = None
    rotation: tuple[Vector, Vector, Vector] = (
        (1.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
        (0.0, 0.0, 1.0),
    )
    free_axis: Vector | None = None
    spread: float = 0.1
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """One difference of points per axis that is to keep its direction."""
        R = _rotation(self.rotation, self.name)
        if self.free_axis is not None:
            arms = [np.asarray(unit_vector(self.free_axis, self.name))]
        else:
            # Two directions fix an orientation; the third follows.
            arms = [np.eye(3)[0], np.eye(3)[1]]
        return tuple(
            self._pair(f"{self.name}{k}", self.spread * arm, self.spread * (R @ arm))
            for k, arm in enumerate(arms)
        )

    def _pair(self, name: str, arm_a: np.ndarray, arm_b: np.ndarray) -> Relation:
        points, signs = [_moved(self.a, arm_a), self.a], [1.0, -1.0]
        target = (0.0, 0.0, 0.0)
        if self.b is None:
            target = tuple(arm_b.tolist())
        else:
            points += [_moved(self.b, arm_b), self.b]
            signs += [-1.0, 1.0]
        one = _as_point_constraint(self, name, self.a, (0.0, 0.0, 0.0)).relations()[0]
        return replace(one, points=tuple(points), signs=tuple(signs), target=target)


def _joined(
    joint: Hinge | Weld,
    name: str,
    distance: float,
    arm_a: Vector | np.ndarray,
    arm_b: Vector | np.ndarray,
) -> Relation:
    """Hold together the points `distance` along each body's own arm."""
    a = _moved(joint.a, distance * np.asarray(arm_a))
    if isinstance(joint.b, Point):
        other: Point | Vector = _moved(joint.b, distance * np.asarray(arm_b))
    else:
        position = np.asarray(joint.b) + distance * np.asarray(arm_b)
        other = (float(position[0]), float(position[1]), float(position[2]))
    return _as_point_constraint(joint, name, a, other).relations()[0]


def _as_point_constraint(
    joint: Hinge | Weld | Orientation, name: str, a: Point, b: Point | Vector
) -> PointToPoint | PointToNail:
    strength = (joint.frequency, joint.max_force, joint.max_deviation)
    if isinstance(b, Point):
        return PointToPoint(name, a, b, *strength)
    return PointToNail(name, a, b, *strength)


def _moved(point: Point, by: np.ndarray) -> Point:
    x, y, z = (np.asarray(point.at) + by).tolist()
    return replace(point, at=(x, y, z))


def _rotation(rows: tuple[Vector, Vector, Vector], name: str) -> np.ndarray:
    R = np.asarray(rows, dtype=float)
    # 1e-9: a matrix that is not quite a rotation asks for points no rigid body has.
    if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9):
        raise ArgumentError(f"The rotation of {name!r} must be a 3×3 rotation matrix.")
    return R
