"""The bodies a world is made of, as data: one piece, or an arm of many links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, InertialParameters, Shape
from armwise.errors import ArgumentError
from armwise.worlds.segments import Segment, compose

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class Point:
    """A place on a body.

    Attributes:
        body: Name of the body.
        at: Coordinates in the frame of the body, or of the link, in [m].
        link: Link or frame of an articulated body; None for a rigid body.
    """

    body: str
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    link: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", vector_of(self.at, f"a point of {self.body!r}"))

    def __str__(self) -> str:
        place = f"{self.body}/{self.link}" if self.link else self.body
        return f"{place} at ({', '.join(f'{x:g}' for x in self.at)})"


@dataclass(frozen=True, eq=False)
class RigidBody:
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


@dataclass(frozen=True, eq=False)
class ArticulatedBody:
    """An arm standing in the world, moving in its joint coordinates.

    Attributes:
        name: What constraints and forces call it.
        arm: Its description; the world's gravity replaces the arm's own.
        pose: T_world_base.
        q, qd: Joint positions and velocities at the start; zero if not given.
    """

    name: str
    arm: Arm
    pose: Float[np.ndarray, "4 4"] = field(default_factory=lambda: np.eye(4))
    q: tuple[float, ...] = ()
    qd: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        where = f"the body {self.name!r}"
        object.__setattr__(self, "pose", pose_of(self.pose, where))
        for name in ("q", "qd"):
            given = tuple(float(x) for x in getattr(self, name))
            values = given or (0.0,) * self.arm.dof
            if len(values) != self.arm.dof or not np.all(np.isfinite(values)):
                raise ArgumentError(
                    f"{name} of {where} needs {self.arm.dof} finite numbers, one for "
                    f"each joint of {self.arm.name}, not {given}."
                )
            object.__setattr__(self, name, values)


Body = RigidBody | ArticulatedBody


def vector_of(values: Sequence[float], what: str) -> tuple[float, float, float]:
    """Return three finite numbers as a tuple, or say what is wrong with them."""
    array = np.asarray(values, dtype=float)
    if array.shape != (3,) or not np.all(np.isfinite(array)):
        raise ArgumentError(f"{what} must be three finite numbers, not {values!r}.")
    x, y, z = array.tolist()
    return x, y, z


def pose_of(values: Float[np.ndarray, "4 4"], what: str) -> Float[np.ndarray, "4 4"]:
    """Return a rigid pose as a read-only array, or say what is wrong with it."""
    T = np.array(values, dtype=float)
    good = T.shape == (4, 4) and np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3))
    if not (good and np.all(np.isfinite(T)) and np.linalg.det(T[:3, :3]) > 0):
        raise ArgumentError(
            f"The pose of {what} must be a finite 4×4 matrix with a proper rotation."
        )
    T.setflags(write=False)
    return T
