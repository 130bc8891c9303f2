"""What any body must offer to be constrained by points (`mitchell1997` §2.4.3)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

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
