"""What any body must offer to be constrained by points (`mitchell1997` §2.4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from armwise.dynamics.articulated import Sweep
from armwise.programs.scalars import Number
from armwise.worlds.bodies import Point
from armwise.worlds.vectors import Array, dot, symbols


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
