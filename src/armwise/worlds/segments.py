"""Solid segments a body is made of, and the inertia they have together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters, Shape
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Segment:
    """A homogeneous solid: an outline and a mass.

    Attributes:
        shape: Outline and where it sits in the body's frame.
        mass: In [kg].
    """

    shape: Shape
    mass: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass) and self.mass > 0):
            raise ArgumentError(
                f"A {self.shape.kind} segment needs a positive mass in [kg], "
                f"not {self.mass!r}."
            )

    @property
    def inertia(self) -> InertialParameters:
        """Its ten inertial parameters in the body's frame."""
        central = np.diag(self.mass * _moments_per_mass(self.shape))
        own = InertialParameters.from_center_of_mass(self.mass, (0, 0, 0), central)
        return own.transformed(self.shape.pose)


def compose(segments: Sequence[Segment]) -> InertialParameters:
    """Add up the inertia of disjoint segments, in the body's frame (Eq. 2.77)."""
    total = InertialParameters.zero()
    for segment in segments:
        total = total + segment.inertia
    return total


def rod(
    mass: float,
    start: Sequence[float],
    end: Sequence[float],
    radius: float = 0.02,
) -> Segment:
    """Return a solid cylinder of the given radius [m] from one point to another."""
    a, b = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    length = float(np.linalg.norm(b - a))
    if not length > 0:
        raise ArgumentError("A rod needs two different end points.")
    pose = np.eye(4)
    pose[:3, :3] = _frame_along((b - a) / length)
    pose[:3, 3] = (a + b) / 2
    return Segment(Shape("cylinder", (radius, length), pose), mass)


def box(
    mass: float, extents: Sequence[float], center: Sequence[float] = (0.0, 0.0, 0.0)
) -> Segment:
    """Return a solid box with the full extents [m] along the body's axes."""
    pose = np.eye(4)
    pose[:3, 3] = center
    return Segment(Shape("box", tuple(map(float, extents)), pose), mass)


def sphere(
    mass: float, radius: float, center: Sequence[float] = (0.0, 0.0, 0.0)
) -> Segment:
    """Return a solid ball of the given radius [m]."""
    pose = np.eye(4)
    pose[:3, 3] = center
    return Segment(Shape("sphere", (float(radius),), pose), mass)


def _frame_along(z: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """Return a rotation whose third column is the unit vector z."""
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _moments_per_mass(shape: Shape) -> Float[np.ndarray, " 3"]:
    """Return the principal moments of a unit mass, about its centre, in [m²]."""
    size = np.asarray(shape.size, dtype=float)
    if shape.kind == "mesh":
        raise ArgumentError("A mesh has no known inertia: give inertial parameters.")
    if not (np.all(np.isfinite(size)) and np.all(size > 0)):
        raise ArgumentError(f"A {shape.kind} needs positive sizes in [m], not {size}.")
    if shape.kind == "sphere":
        return np.full(3, 0.4 * size[0] ** 2)
    if shape.kind == "box":
        x, y, z = size**2
        return np.array([y + z, x + z, x + y]) / 12
    if shape.kind == "cylinder":
        return _cylinder(*size)
    return _capsule(*size)


def _cylinder(radius: float, length: float) -> Float[np.ndarray, " 3"]:
    across = radius**2 / 4 + length**2 / 12
    return np.array([across, across, radius**2 / 2])


def _capsule(radius: float, length: float) -> Float[np.ndarray, " 3"]:
    """Return a cylinder's and two half balls' moments, each by its share of volume."""
    cylinder, ball = pi * radius**2 * length, 4 / 3 * pi * radius**3
    share = ball / (cylinder + ball)
    offset = length / 2 + 3 / 8 * radius
    half_ball = (0.4 - 9 / 64) * radius**2 + offset**2
    ends = np.array([half_ball, half_ball, 0.4 * radius**2])
    return (1 - share) * _cylinder(radius, length) + share * ends
