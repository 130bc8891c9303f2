"""Protocol of a body that points constrain (`mitchell1997` §2.4.3).

Arrays go on the left of a product with a symbolic scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from armwise.dynamics import Sweep
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


# Protocol.


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


class Moving(Protocol):
    """A body at one state. Rigid or not, the world needs nothing else of it."""

    @property
    def position_rate(self) -> Array:
        """Time derivative of the position coordinates."""
        ...

    def point(self, point: Point) -> PointMotion:
        """Return where a point is and how it moves."""
        ...

    def apply_point_force(self, point: Point, force: Array) -> Array:
        """Return what a force at a point is in the body's own coordinates: Jᵀf."""
        ...

    def respond(self, force: Array) -> Array:
        """Return the coordinates' acceleration under a generalised force: M⁻¹ f."""
        ...

    def accelerate(self, load: Array | None) -> Array:
        """Return the coordinates' acceleration under velocity, gravity, own friction
        and, if given, a generalised load."""
        ...

    def answer(self, pushes: Pushes) -> Answer:
        """Return how the body answers forces at its points."""
        ...

    def free_answer(self, load: Array | None) -> Answer:
        """Return how it answers velocity, gravity, own friction and a load."""
        ...

    def product(self, push: Answer, other: Answer) -> Number:
        """Return pushᵀ M⁻¹ other: how the other accelerates along the push."""
        ...

    def combine(self, terms: Sequence[tuple[Number, Answer]]) -> Array:
        """Return the coordinates' acceleration under a weighted sum of loads."""
        ...

    @property
    def friction_power(self) -> Number:
        """Power of the friction inside the body in [W]."""
        ...

    @property
    def kinetic_energy(self) -> Number:
        """In [J]."""
        ...

    @property
    def gravitational_energy(self) -> Number:
        """In [J]."""
        ...


def dense_answer(body: Moving, pushes: Pushes) -> Answer:
    """Answer forces at points by solving for them at once."""
    (first, force), *others = pushes
    load = body.apply_point_force(first, force)
    for point, force in others:
        load = load + body.apply_point_force(point, force)
    return Answer(load, body.respond(load))


def dense_combination(terms: Sequence[tuple[Number, Answer]]) -> Array:
    """Add up answers that were solved for."""
    total = terms[0][1].response * terms[0][0]
    for weight, answer in terms[1:]:
        total = total + answer.response * weight
    return total


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
