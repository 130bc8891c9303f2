"""Motion of a rigid body at one state: the four operations of `mitchell1997` §2.4.3.

Its position is where its centre of mass is and a quaternion; its velocity is that of
the centre of mass in world axes and the angular velocity in body axes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.programs import Number
from armwise.worlds.bodies import Point, RigidBody
from armwise.worlds.body_protocol import (
    Answer,
    Array,
    PointMotion,
    Pushes,
    cross,
    dense_answer,
    dense_combination,
    dot,
    product,
    quaternion_from_rotation,
    quaternion_rate,
    rotation_of,
    symbols,
    zeros,
)

# Centre of mass and unit quaternion; velocity and angular velocity (body axes).
POSITIONS, VELOCITIES = 7, 6


class RigidMotion:
    """A rigid body in motion, over symbolic or plain numbers.

    Args:
        body: Its description.
        position: Centre of mass (3) and quaternion (4).
        velocity: Of the centre of mass, world axes (3), and angular, body axes (3).
        gravity: Free fall in the world in [m/s²].
    """

    def __init__(
        self, body: RigidBody, position: Array, velocity: Array, gravity: Array
    ) -> None:
        self.body = body
        self.position, self.quaternion = position[:3], position[3:]
        self.rotation = rotation_of(self.quaternion)
        self.velocity, self.omega = velocity[:3], velocity[3:]
        self.gravity = gravity
        self.mass = body.inertia.mass
        self.center = body.inertia.center_of_mass
        inertia = body.inertia.central_inertia
        # Rounding noise of rotated inertias would be traced as real operations.
        self._inertia = symbols(np.where(np.abs(inertia) < 1e-15, 0.0, inertia))
        inverse = np.linalg.inv(inertia)
        tiny = 1e-15 * np.abs(inverse).max()
        self._inverse = symbols(np.where(np.abs(inverse) < tiny, 0.0, inverse))

    @property
    def position_rate(self) -> Array:
        """Time derivative of the position."""
        turning = quaternion_rate(self.quaternion, self.omega)
        return np.concatenate([self.velocity, turning])

    def point(self, point: Point) -> PointMotion:
        """Return where a point is and how it moves."""
        b = self._lever(point)
        spin = cross(self.omega, b)
        return PointMotion(
            self.position + product(self.rotation, b),
            self.velocity + product(self.rotation, spin),
            product(self.rotation, cross(self.omega, spin)),
        )

    def apply_point_force(self, point: Point, force: Array) -> Array:
        """Return the generalised force of a force [N] in world axes at a point."""
        inside = product(self.rotation.T, force)
        return np.concatenate([force, cross(self._lever(point), inside)])

    def apply_torque(self, torque: Array) -> Array:
        """Return the generalised force of a torque [N m] in body axes."""
        return np.concatenate([zeros(3), torque])

    def respond(self, force: Array) -> Array:
        """Return the acceleration of the coordinates that a generalised force gives."""
        # At the centre of mass linear and angular motion decouple: M is block diagonal
        # and its inverse constant in body axes.
        linear = force[:3] * (1.0 / self.mass)
        return np.concatenate([linear, product(self._inverse, force[3:])])

    @property
    def velocity_force(self) -> Array:
        """Generalised force of inertia at no acceleration: −ω × Iω."""
        momentum = product(self._inertia, self.omega)
        return np.concatenate([zeros(3), -cross(self.omega, momentum)])

    @property
    def gravity_force(self) -> Array:
        """Generalised force of gravity."""
        return np.concatenate([self.gravity * self.mass, zeros(3)])

    def accelerate(self, load: Array | None) -> Array:
        """Return the acceleration under gravity, velocity and a generalised load."""
        own = self.velocity_force + self.gravity_force
        return self.respond(own if load is None else own + load)

    def answer(self, pushes: Pushes) -> Answer:
        """Return how the body answers forces at its points."""
        return dense_answer(self, pushes)

    def free_answer(self, load: Array | None) -> Answer:
        """Return how it answers velocity, gravity and a load."""
        return Answer(response=self.accelerate(load))

    def product(self, push: Answer, other: Answer) -> Number:
        """Return pushᵀ M⁻¹ other."""
        return dot(push.load, other.response)

    def combine(self, terms: Sequence[tuple[Number, Answer]]) -> Array:
        """Return the acceleration under a weighted sum of loads."""
        return dense_combination(terms)

    @property
    def friction_power(self) -> Number:
        """Power of friction inside the body [W]: none."""
        return 0.0

    @property
    def kinetic_energy(self) -> Number:
        """½ m v² + ½ ω·Iω in [J]."""
        turning = dot(self.omega, product(self._inertia, self.omega))
        return (dot(self.velocity, self.velocity) * self.mass + turning) * 0.5

    @property
    def gravitational_energy(self) -> Number:
        """−m g·x in [J]."""
        return -dot(self.gravity, self.position) * self.mass

    def _lever(self, point: Point) -> Array:
        # + 0.0 turns −0.0 into 0.0, which tracing drops.
        return symbols((np.asarray(point.at) - self.center + 0.0).tolist())


def rigid_start(body: RigidBody) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity of a rigid body at the start."""
    R = body.pose[:3, :3]
    center = body.pose[:3, 3] + R @ body.inertia.center_of_mass
    position = np.concatenate([center, quaternion_from_rotation(R)])
    # Given in world axes, kept in body axes, where the inertia is constant.
    turning = R.T @ np.asarray(body.angular_velocity)
    return position, np.concatenate([body.velocity, turning])
