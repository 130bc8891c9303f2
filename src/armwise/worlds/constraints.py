"""Point constraints, their bounds and equations, and joints as sets of them.

Every constraint has a `frequency` λ in [1/s]: its deviation D obeys
D̈ + 2λḊ + λ²D = 0, the critically damped return to zero (Eq. 2.21). `max_force` [N] is
the most it can exert and `max_deviation` [m] the deviation at which it breaks.

A higher λ closes an initial gap sooner; held gaps are no smaller for it, and the ledger
of a Runge–Kutta run closes less well, in proportion: 5 to 10 suits steps of 1 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

import numpy as np

from armwise.errors import ArgumentError
from armwise.motions import Motion
from armwise.programs import Number, cos, sin
from armwise.worlds.bodies import Point, vector_of

# Curves.


class Curve(Protocol):
    """A smooth curve c(s): its position and its first two derivatives by s."""

    def at(self, s: Number) -> tuple[list[Number], list[Number], list[Number]]:
        """Return c(s), c′(s) and c″(s), symbolic or numeric."""
        ...

    def samples(self) -> np.ndarray:
        """Return values of s among which the search for the nearest point starts."""
        ...


@dataclass(frozen=True)
class CircleCurve:
    """A circle: c(s) = centre + radius (u cos s + w sin s), s in [rad]."""

    center: tuple[float, float, float]
    normal: tuple[float, float, float]
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", vector_of(self.center, "A circle's centre"))
        normal = np.asarray(vector_of(self.normal, "A circle's normal"))
        if not (np.linalg.norm(normal) > 0 and self.radius > 0):
            raise ArgumentError("A circle needs a normal and a radius that are not 0.")
        unit = normal / np.linalg.norm(normal)
        object.__setattr__(self, "normal", tuple(unit.tolist()))

    def at(self, s: Number) -> tuple[list[Number], list[Number], list[Number]]:
        """Return c(s), c′(s) and c″(s)."""
        u, w = normals_of(self.normal)
        c, d = cos(s) * self.radius, sin(s) * self.radius
        out = [c * a + d * b for a, b in zip(u, w, strict=True)]
        along = [c * b - d * a for a, b in zip(u, w, strict=True)]
        position = [o + x for o, x in zip(self.center, out, strict=True)]
        return position, along, [-x for x in out]

    def samples(self) -> np.ndarray:
        """Return angles all around in [rad]."""
        # Every half degree: far finer than the extrema of a distance to a circle.
        return np.linspace(-np.pi, np.pi, 721)


@dataclass(frozen=True)
class PolynomialCurve:
    """c(s) = Σ_k coefficients[k] s^k; rows are powers, columns x, y, z in [m].

    Attributes:
        coefficients: Lowest power first; two rows make a straight line.
        span: Smallest and largest s to begin from.
    """

    coefficients: tuple[tuple[float, float, float], ...]
    span: tuple[float, float] = (-1.0, 1.0)

    def __post_init__(self) -> None:
        rows = tuple(vector_of(row, "A curve's row") for row in self.coefficients)
        if len(rows) < 2:
            raise ArgumentError("A polynomial curve needs at least two rows.")
        object.__setattr__(self, "coefficients", rows)

    def at(self, s: Number) -> tuple[list[Number], list[Number], list[Number]]:
        """Return c(s), c′(s) and c″(s), by Horner's rule."""
        zero: list[Number] = [0.0, 0.0, 0.0]
        c, first, second = list(zero), list(zero), list(zero)
        for row in reversed(self.coefficients):
            second = [x * s + 2.0 * d for x, d in zip(second, first, strict=True)]
            first = [x * s + d for x, d in zip(first, c, strict=True)]
            c = [x * s + a for x, a in zip(c, row, strict=True)]
        return c, first, second

    def samples(self) -> np.ndarray:
        """Return values of s over the span."""
        # As many as for a circle (judgement): Newton only needs the right valley.
        return np.linspace(*self.span, 721)


def nearest(curve: Curve, point: Sequence[float]) -> float:
    """Return the s whose c(s) is nearest to a point [m], by search then Newton."""
    p = np.asarray(point, dtype=float)

    def distance(s: float) -> float:
        return float(np.linalg.norm(p - np.asarray(curve.at(s)[0], dtype=float)))

    # Newton finds the nearest of many extrema only from nearby.
    s = float(min(curve.samples(), key=distance))
    # Newton converges in a handful of steps; 50 only bounds a bad case.
    for _ in range(50):
        c, d, e = (np.asarray(x, dtype=float) for x in curve.at(s))
        slope = d @ d - (p - c) @ e
        # A slope below zero is at a farthest point: stay with the sampled one.
        step = float((p - c) @ d / slope) if slope > 0 else 0.0
        s += step
        # Rounding of a parameter of order one.
        if abs(step) < 1e-15:
            break
    return s


def normals_of(
    axis: Sequence[float],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return two unit vectors that make a right-handed frame with a unit axis."""
    z = np.asarray(axis, dtype=float)
    # The coordinate axis farthest from z: the cross product is never small.
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    y = np.cross(z, x)
    # + 0.0 turns −0.0 into 0.0, which tracing drops.
    return tuple((x + 0.0).tolist()), tuple((y + 0.0).tolist())


# Relations and constraints.

Vector = tuple[float, float, float]
Target = Vector | Motion
"""A position [m] that stays, or a motion of three coordinates that carries it along."""

_ALL: tuple[Vector, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Relation:
    """The one form all point constraints take: D = G (Σ sᵢ pᵢ − n(t)).

    Attributes:
        name: The constraint's name.
        points: The points pᵢ.
        signs: The numbers sᵢ, one per point.
        directions: Rows of G, orthonormal; ignored on a curve, where they follow it.
        target: The position n(t), or, for a velocity, the velocity.
        frequency, max_force, max_deviation: See the module.
        is_velocity: Whether Σ sᵢ ṗᵢ is held instead, by Ḋ + λD = 0.
        curve: The curve whose nearest point is n, if there is one.
    """

    name: str
    points: tuple[Point, ...]
    signs: tuple[float, ...]
    directions: tuple[Vector, ...]
    target: Target
    frequency: float
    max_force: float
    max_deviation: float
    is_velocity: bool = False
    curve: Curve | None = None

    def __post_init__(self) -> None:
        for name in ("frequency", "max_force", "max_deviation"):
            if not getattr(self, name) > 0:
                raise ArgumentError(
                    f"The constraint {self.name!r} needs a positive {name}, "
                    f"not {getattr(self, name)!r}."
                )
        if isinstance(self.target, Motion) and self.target.dof != 3:
            raise ArgumentError(
                f"The constraint {self.name!r} is carried by a motion of "
                f"{self.target.dof} coordinates; it needs 3: x, y, z in [m]."
            )

    @property
    def size(self) -> int:
        """Number of rows it adds to the constraint equation."""
        return 2 if self.curve is not None else len(self.directions)

    @property
    def fixed_target(self) -> Vector:
        """Its target, which must not move."""
        assert not isinstance(self.target, Motion)
        return self.target

    @property
    def is_moving(self) -> bool:
        """Whether its target changes with time."""
        return isinstance(self.target, Motion)


class Constraint(Protocol):
    """Anything that can say which relations between points it stands for."""

    @property
    def name(self) -> str:
        """What the log and the ledger call it."""
        ...

    def relations(self) -> tuple[Relation, ...]:
        """Return the relations it is made of."""
        ...


@dataclass(frozen=True, eq=False)
class PointToNail:
    """Hold a point of a body at a position in the world, which may move."""

    name: str
    point: Point
    nail: Target
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """D = p − n."""
        return (_relation(self, (self.point,), (1.0,), _ALL, self.nail),)


@dataclass(frozen=True, eq=False)
class PointToPoint:
    """Hold points of two bodies together: a ball joint."""

    name: str
    a: Point
    b: Point
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """D = p_a − p_b."""
        return (_relation(self, (self.a, self.b), (1.0, -1.0), _ALL, (0.0, 0.0, 0.0)),)


@dataclass(frozen=True, eq=False)
class PointToLine:
    """Hold a point on a straight line through `through` [m] along `along`."""

    name: str
    point: Point
    through: Target
    along: Vector
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """D = the two components of p − o across the line."""
        across = normals_of(unit_vector(self.along, self.name))
        rows = tuple(vector_of(row, self.name) for row in across)
        return (_relation(self, (self.point,), (1.0,), rows, self.through),)


@dataclass(frozen=True, eq=False)
class PointToPlane:
    """Hold a point in the plane through `through` [m] across `normal`."""

    name: str
    point: Point
    through: Target
    normal: Vector
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """D = n·(p − o)."""
        rows = (unit_vector(self.normal, self.name),)
        return (_relation(self, (self.point,), (1.0,), rows, self.through),)


@dataclass(frozen=True, eq=False)
class PointToCurve:
    """Hold a point on a curve, along which it may slide: a bead on a wire."""

    name: str
    point: Point
    curve: Curve
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """D = p − c(s), with c(s) the curve's nearest point."""
        one = _relation(self, (self.point,), (1.0,), (), (0.0, 0.0, 0.0), self.curve)
        return (one,)


@dataclass(frozen=True, eq=False)
class PointVelocity:
    """Give a point a velocity [m/s]; as a motion, that motion's velocity.

    Attributes:
        directions: Along which the velocity is held; all three if empty.
        max_deviation: Largest difference of velocity, in [m/s].
    """

    name: str
    point: Point
    velocity: Target
    directions: tuple[Vector, ...] = field(default=())
    frequency: float = 10.0
    max_force: float = inf
    max_deviation: float = inf

    def relations(self) -> tuple[Relation, ...]:
        """D = ṗ − v, driven to zero by Ḋ + λD = 0."""
        rows = tuple(unit_vector(row, self.name) for row in self.directions) or _ALL
        # Orthonormal rows: only then is the norm of the force rows a force in [N].
        if not np.allclose(np.array(rows) @ np.array(rows).T, np.eye(len(rows))):
            raise ArgumentError(
                f"The directions of the constraint {self.name!r} must be at right "
                "angles to each other."
            )
        one = _relation(
            self, (self.point,), (1.0,), rows, self.velocity, is_velocity=True
        )
        return (one,)


def _relation(
    constraint: PointToNail
    | PointToPoint
    | PointToLine
    | PointToPlane
    | PointToCurve
    | PointVelocity,
    points: tuple[Point, ...],
    signs: tuple[float, ...],
    directions: tuple[Vector, ...],
    target: Target,
    curve: Curve | None = None,
    is_velocity: bool = False,
) -> Relation:
    if not isinstance(target, Motion):
        target = vector_of(target, f"The target of the constraint {constraint.name!r}")
    return Relation(
        constraint.name,
        points,
        signs,
        directions,
        target,
        constraint.frequency,
        constraint.max_force,
        constraint.max_deviation,
        is_velocity,
        curve,
    )


def unit_vector(direction: Sequence[float], name: str) -> Vector:
    """Return a direction at length 1, or say which constraint has none."""
    row = np.asarray(vector_of(direction, f"A direction of the constraint {name!r}"))
    length = float(np.linalg.norm(row))
    if not length > 0:
        raise ArgumentError(f"A direction of the constraint {name!r} has length 0.")
    return vector_of((row / length).tolist(), name)


# Joints between bodies as sets of point constraints (`mitchell1997` §2.3.4).


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
