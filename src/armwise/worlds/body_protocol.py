"""Interface of a body that points constrain (`mitchell1997` §2.4.3).

Arrays go on the left of a product with a symbolic scalar.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from armwise.dynamics import Sweep
from armwise.errors import ArgumentError
from armwise.programs import Number, sqrt
from armwise.worlds.bodies import Point

# Algebra of vectors and rotations of symbolic scalars.

Array = Any
"""A NumPy array of objects: numbers or symbolic scalars."""


def symbols(values: Any) -> Array:
    """Return values as an array of objects, its numbers Python floats."""
    if isinstance(values, np.ndarray):
        return values.astype(object)
    return np.array(values, dtype=object)


def zeros(*shape: int) -> Array:
    """Return exact zeros, which vanish when traced."""
    return np.full(shape, 0.0, dtype=object)


def cross(a: Array, b: Array) -> Array:
    """Return a × b."""
    return symbols(
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    )


def dot(a: Array, b: Array) -> Number:
    """Return a·b without touching structural zeros."""
    total: Number = 0.0
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total = total + x * y
    return total


def norm(a: Array) -> Number:
    """Return ‖a‖."""
    return sqrt(dot(a, a))


def product(A: Array, b: Array) -> Array:
    """Return the matrix A times the vector b."""
    return symbols([dot(row, b) for row in A])


def rotation_of(quaternion: Array) -> Array:
    """Return the rotation of a quaternion (w, x, y, z) of any length but zero."""
    w, x, y, z = quaternion.tolist()
    # Within a step a quaternion leaves unit length; divided by its square it still
    # gives a rotation, and the integrator's stages stay consistent.
    s = 2.0 / (w * w + x * x + y * y + z * z)
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    wx, wy, wz = w * x, w * y, w * z
    return symbols(
        [
            [1.0 - s * (yy + zz), s * (xy - wz), s * (xz + wy)],
            [s * (xy + wz), 1.0 - s * (xx + zz), s * (yz - wx)],
            [s * (xz - wy), s * (yz + wx), 1.0 - s * (xx + yy)],
        ]
    )


def quaternion_rate(quaternion: Array, omega: Array) -> Array:
    """Return q̇ = ½ q ∗ (0, ω) for an angular velocity ω in body axes (Eq. 2.44)."""
    w, v = quaternion[0], quaternion[1:]
    turned = omega * w + cross(v, omega)
    return symbols([-dot(v, omega) * 0.5, *(turned * 0.5).tolist()])


def quaternion_from_rotation(R: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (w, x, y, z), w ≥ 0, of a numeric rotation."""
    K = np.array(
        [
            [R[0, 0] + R[1, 1] + R[2, 2], 0, 0, 0],
            [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], 0, 0],
            [R[0, 2] - R[2, 0], R[1, 0] + R[0, 1], R[1, 1] - R[0, 0] - R[2, 2], 0],
            [
                R[1, 0] - R[0, 1],
                R[2, 0] + R[0, 2],
                R[2, 1] + R[1, 2],
                R[2, 2] - R[0, 0] - R[1, 1],
            ],
        ]
    )
    # Bar-Itzhack's method: the eigenvector of the largest eigenvalue, well conditioned
    # at any angle, and nearest if R is slightly off. eigh reads the lower triangle
    # only.
    quaternion = np.linalg.eigh(K / 3.0)[1][:, -1]
    return np.asarray(quaternion if quaternion[0] >= 0 else -quaternion)


# Interface.


class PointMotion(NamedTuple):
    """How a point of a body moves, in world axes.

    Attributes:
        position: In [m].
        velocity: In [m/s].
        turning: The acceleration J̇v it has at no acceleration of the coordinates.
    """

    position: Array
    velocity: Array
    turning: Array


Pushes = Sequence[tuple[Point, Array]]
"""Forces [N] in world axes at points of one body."""


@dataclass(frozen=True, eq=False)
class Answer:
    """How a body answers a load; what of it is filled in is the body's own business.

    Attributes:
        load: The load as a generalised force.
        response: M⁻¹ times the load.
        sweep: The same, half way, for a body solved link by link.
    """

    load: Array = None
    response: Array = None
    sweep: Sweep | None = None


class Moving(ABC):
    """A body at one state: all that a world needs to know of it.

    Four operations must be offered: `point`, `apply_point_force`, `respond` and
    `accelerate`; and, as attributes or properties, the rate of the positions and the
    energies. Everything else follows from these, and is there to be done faster.
    """

    @cached_property
    def position_rate(self) -> Array:
        """Time derivative of the position coordinates."""
        raise self._missing("position_rate")

    @cached_property
    def kinetic_energy(self) -> Number:
        """In [J], for the ledger."""
        raise self._missing("kinetic_energy")

    @cached_property
    def gravitational_energy(self) -> Number:
        """In [J], for the ledger."""
        raise self._missing("gravitational_energy")

    @cached_property
    def stored_energy(self) -> Number:
        """Energy of springs inside the body in [J]."""
        return 0.0

    @cached_property
    def friction_power(self) -> Number:
        """Power of friction inside the body in [W], negative if it brakes."""
        return 0.0

    def _missing(self, name: str) -> ArgumentError:
        return ArgumentError(f"A moving {type(self).__name__} must have a {name}.")

    @abstractmethod
    def point(self, point: Point) -> PointMotion:
        """Return where a point is and how it moves."""

    @abstractmethod
    def apply_point_force(self, point: Point, force: Array) -> Array:
        """Return what a force [N] at a point is in the body's own coordinates: Jᵀf.

        Its power in the velocities is the force's power at the point.
        """

    @abstractmethod
    def respond(self, force: Array) -> Array:
        """Return the velocities' rate under a generalised force alone: M⁻¹ f."""

    @abstractmethod
    def accelerate(self, load: Array | None) -> Array:
        """Return the velocities' rate under all that acts on the body from inside,
        its velocity and gravity and, if given, a generalised load."""

    def answer(self, pushes: Pushes) -> Answer:
        """Return how the body answers forces at its points."""
        (first, force), *others = pushes
        load = self.apply_point_force(first, force)
        for point, force in others:
            load = load + self.apply_point_force(point, force)
        return Answer(load, self.respond(load))

    def free_answer(self, load: Array | None) -> Answer:
        """Return how it answers all but forces at its points."""
        return Answer(response=self.accelerate(load))

    def product(self, push: Answer, other: Answer) -> Number:
        """Return pushᵀ M⁻¹ other: how the other accelerates along the push."""
        return dot(push.load, other.response)

    def combine(self, terms: Sequence[tuple[Number, Answer]]) -> Array:
        """Return the velocities' rate under a weighted sum of loads."""
        total = terms[0][1].response * terms[0][0]
        for weight, answer in terms[1:]:
            total = total + answer.response * weight
        return total


class Body(ABC):
    """A body of a world: where it starts, and how it moves from a state.

    Inherit from it to put a body of your own into a world.

    Attributes:
        name: What constraints and forces call it.
        is_traced: Whether its motion only adds, multiplies, divides and calls functions
            of `armwise.programs`, without conditions: it is then compiled to C with
            the others. Otherwise it is given plain arrays, and NumPy takes every step.
        has_friction: Whether it spends energy inside.
    """

    name: str
    is_traced: ClassVar[bool] = False
    has_friction: ClassVar[bool] = True

    @abstractmethod
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Return its position and velocity coordinates at the start."""

    @abstractmethod
    def move(self, position: Array, velocity: Array, gravity: Array) -> Moving:
        """Return the body at a state, under a free fall in [m/s²], world axes."""

    def check_point(self, point: Point, who: str) -> None:
        """Raise an ArgumentError, beginning with `who`, if it has no such point."""
        return

    @property
    def coordinate_names(self) -> tuple[list[str], list[str]]:
        """Names of the position and the velocity coordinates."""
        position, velocity = self.start()
        return (
            [f"p{k + 1}" for k in range(len(position))],
            [f"v{k + 1}" for k in range(len(velocity))],
        )

    @property
    def quaternions(self) -> tuple[int, ...]:
        """Where in its positions unit quaternions begin: they are kept at length 1."""
        return ()

    def outline(self) -> Sequence[tuple[Point, Point]]:
        """Return lines between its points, for pictures."""
        return ()


class CheckedMotion(Moving):
    """A motion that is given plain numbers, and whose answers have the right shapes.

    Args:
        body: Whose motion it is.
        moving: The motion.
        sizes: How many positions and velocities it has.
    """

    def __init__(self, body: Body, moving: Moving, sizes: tuple[int, int]) -> None:
        self._name, self._moving, self._sizes = body.name, moving, sizes

    @cached_property
    def position_rate(self) -> Array:
        """Time derivative of the position coordinates."""
        rate = self._moving.position_rate
        return self._checked("position_rate", rate, self._sizes[0])

    def point(self, point: Point) -> PointMotion:
        """Return where a point is and how it moves."""
        motion = self._moving.point(point)
        return PointMotion(*(self._checked("point", part, 3) for part in motion))

    def apply_point_force(self, point: Point, force: Array) -> Array:
        """Return what a force at a point is in the body's own coordinates."""
        load = self._moving.apply_point_force(point, force.astype(float))
        return self._checked("apply_point_force", load, self._sizes[1])

    def respond(self, force: Array) -> Array:
        """Return the velocities' rate under a generalised force alone."""
        rate = self._moving.respond(force.astype(float))
        return self._checked("respond", rate, self._sizes[1])

    def accelerate(self, load: Array | None) -> Array:
        """Return the velocities' rate under all that acts from inside, and a load."""
        rate = self._moving.accelerate(None if load is None else load.astype(float))
        return self._checked("accelerate", rate, self._sizes[1])

    @cached_property
    def kinetic_energy(self) -> Number:
        """In [J]."""
        return self._moving.kinetic_energy

    @cached_property
    def gravitational_energy(self) -> Number:
        """In [J]."""
        return self._moving.gravitational_energy

    @cached_property
    def stored_energy(self) -> Number:
        """In [J]."""
        return self._moving.stored_energy

    @cached_property
    def friction_power(self) -> Number:
        """In [W]."""
        return self._moving.friction_power

    def _checked(self, operation: str, values: Array, size: int) -> Array:
        array = np.asarray(values, dtype=float)
        if array.shape != (size,):
            raise ArgumentError(
                f"The body {self._name!r} answers {operation} with an array of shape "
                f"{array.shape}, not ({size},)."
            )
        return array


def check_powers(name: str, moving: Moving, velocity: np.ndarray, point: Point) -> None:
    """Refuse a body whose forces at a point do not fit the point's velocity."""
    motion = moving.point(point)
    loads = [moving.apply_point_force(point, e).astype(float) for e in np.eye(3)]
    # Jᵀ e_k · v is the point's own velocity along e_k, however the body is built; a
    # sign or a lever that is wrong differs by much more than rounding.
    powers = np.asarray(loads) @ velocity.astype(float)
    gap = np.abs(powers - np.asarray(motion.velocity, dtype=float)).max()
    if not gap <= 1e-6 * (1.0 + np.abs(powers).max()):
        raise ArgumentError(
            f"The body {name!r} contradicts itself at {point}: a force there has not "
            f"the power that the point's velocity gives it (off by {gap:.3g} W a "
            "newton). Mend its point or its apply_point_force."
        )


def force_to_acceleration(body: Moving, at: Point, source: Point) -> Array:
    """Return the 3×3 matrix from a force at `source` to the acceleration of `at`.

    A_ij = J_i M⁻¹ J_jᵀ; for a rigid body 1/m − [Rb_i] I⁻¹ [Rb_j] (Eq. 2.23, 2.64).
    """
    units = symbols(np.eye(3))
    pushed = [body.respond(body.apply_point_force(source, e)) for e in units]
    felt = [body.apply_point_force(at, e) for e in units]
    return symbols([[dot(row, column) for column in pushed] for row in felt])


def acceleration_from_forces(body: Moving, at: Point, force: Array) -> Array:
    """Return the acceleration of a point under a generalised force: J M⁻¹ f."""
    answer = body.respond(force)
    units = symbols(np.eye(3))
    return symbols([dot(body.apply_point_force(at, e), answer) for e in units])


def acceleration_from_velocities(body: Moving, at: Point) -> Array:
    """Return a point's acceleration with no force but the body's own: Eq. 2.62."""
    units = symbols(np.eye(3))
    free = body.accelerate(None)
    rows = [dot(body.apply_point_force(at, e), free) for e in units]
    return symbols(rows) + body.point(at).turning
