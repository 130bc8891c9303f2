"""Rigid bodies: their description, and the four operations of `mitchell1997` §2.4.3.

Its position is where its centre of mass is and a quaternion; its velocity is that of
the centre of mass in world axes and the angular velocity in body axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters, Shape
from armwise.errors import ArgumentError
from armwise.programs import Number
from armwise.worlds.bodies import Point, Segment, compose, pose_of, vector_of
from armwise.worlds.body_protocol import (
    Array,
    Body,
    Moving,
    PointMotion,
    cross,
    dot,
    product,
    quaternion_from_rotation,
    quaternion_rate,
    rotation_of,
    symbols,
    zeros,
)

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class RigidBody(Body):
    """One rigid piece, free to move anywhere.

    Attributes:
        name: What constraints and forces call it.
        inertia: Ten inertial parameters in the body's own frame.
        pose: T_world_body at the start.
        velocity: Velocity of the centre of mass at the start, in [m/s], world axes.
        angular_velocity: At the start, in [rad/s], world axes.
        shapes: Outlines, for pictures.
    """

    name: str
    inertia: InertialParameters
    pose: Float[np.ndarray, "4 4"] = field(default_factory=lambda: np.eye(4))
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    angular_velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    shapes: tuple[Shape, ...] = ()

    def __post_init__(self) -> None:
        where = f"the body {self.name!r}"
        if not self.inertia.mass > 0:
            raise ArgumentError(
                f"The body {self.name!r} has the mass {self.inertia.mass:g} kg: a free "
                "body needs a positive mass, or no force could move it finitely."
            )
        self.inertia.require_physical(f"The body {self.name!r}")
        smallest, largest = self.inertia.principal[0][[0, 2]]
        # About its own axis an ideal rod has nothing but rounding, 1e-16 or so.
        if not smallest > 1e-12 * largest:
            raise ArgumentError(
                f"The body {self.name!r} has no inertia about one of its axes "
                f"({smallest:.3g} kg m²): give it some thickness."
            )
        object.__setattr__(self, "pose", pose_of(self.pose, where))
        for name in ("velocity", "angular_velocity"):
            value = vector_of(getattr(self, name), f"{name} of {where}")
            object.__setattr__(self, name, value)

    @classmethod
    def from_segments(
        cls,
        name: str,
        segments: Sequence[Segment],
        pose: Float[np.ndarray, "4 4"] | None = None,
        velocity: Sequence[float] = (0.0, 0.0, 0.0),
        angular_velocity: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> RigidBody:
        """Build a body out of solid segments placed in its frame."""
        return cls(
            name,
            compose(segments),
            np.eye(4) if pose is None else pose,
            vector_of(velocity, "velocity"),
            vector_of(angular_velocity, "angular velocity"),
            tuple(segment.shape for segment in segments),
        )

    is_traced = True
    has_friction = False

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Return position and velocity as `RigidMotion` has them."""
        R = self.pose[:3, :3]
        center = self.pose[:3, 3] + R @ self.inertia.center_of_mass
        position = np.concatenate([center, quaternion_from_rotation(R)])
        # Given in world axes, kept in body axes, where the inertia is constant.
        turning = R.T @ np.asarray(self.angular_velocity)
        return position, np.concatenate([self.velocity, turning])

    def move(self, position: Array, velocity: Array, gravity: Array) -> RigidMotion:
        """Return the body at a state."""
        return RigidMotion(self, position, velocity, gravity)

    def check_point(self, point: Point, who: str) -> None:
        """Refuse a link: there is none."""
        if point.link is not None:
            raise ArgumentError(
                f"{who} names the link {point.link!r} of {self.name!r}, which is one "
                "rigid body: leave the link out."
            )

    @property
    def coordinate_names(self) -> tuple[list[str], list[str]]:
        """Names of positions and velocities."""
        pose = ["x", "y", "z", "qw", "qx", "qy", "qz"]
        return pose, ["vx", "vy", "vz", "wx", "wy", "wz"]

    @property
    def quaternions(self) -> tuple[int, ...]:
        """After the centre of mass."""
        return (3,)


class RigidMotion(Moving):
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

    @cached_property
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

    @cached_property
    def kinetic_energy(self) -> Number:
        """½ m v² + ½ ω·Iω in [J]."""
        turning = dot(self.omega, product(self._inertia, self.omega))
        return (dot(self.velocity, self.velocity) * self.mass + turning) * 0.5

    @cached_property
    def gravitational_energy(self) -> Number:
        """−m g·x in [J]."""
        return -dot(self.gravity, self.position) * self.mass

    def _lever(self, point: Point) -> Array:
        # + 0.0 turns −0.0 into 0.0, which tracing drops.
        return symbols((np.asarray(point.at) - self.center + 0.0).tolist())
