"""Solids that bodies are made of, points on bodies, and a chain of rods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Drive, Frame, InertialParameters, Joint, Link, Shape
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


# Solid segments, and the inertia of several.


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
        # About the segment's own centre and axes, in which it is diagonal.
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
    # The coordinate axis farthest from z: the cross product is never small.
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
    ball_fraction = ball / (cylinder + ball)
    # A half ball's centre of mass lies 3/8 r from its flat side; about that centre its
    # transverse moment is (2/5 − 9/64) m r².
    offset = length / 2 + 3 / 8 * radius
    half_ball = (0.4 - 9 / 64) * radius**2 + offset**2
    ends = np.array([half_ball, half_ball, 0.4 * radius**2])
    return (1 - ball_fraction) * _cylinder(radius, length) + ball_fraction * ends


# Points.


@dataclass(frozen=True)
class Point:
    """A point fixed to a body.

    Attributes:
        body: Name of the body.
        at: Coordinates in the frame of the body, or of the link, in [m].
        link: Link or frame of an articulated body; None for a rigid body. What it
            means for a body of your own is up to that.
    """

    body: str
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    link: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", vector_of(self.at, f"a point of {self.body!r}"))

    def __str__(self) -> str:
        owner = f"{self.body}/{self.link}" if self.link else self.body
        return f"{owner} at ({', '.join(f'{x:g}' for x in self.at)})"


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


# Example arm of equal rods.


def planar_chain(
    count: int,
    length: float | Sequence[float] = 1.0,
    mass: float | Sequence[float] = 1.0,
    radius: float = 0.03,
    viscous: float = 0.0,
    name: str = "chain",
) -> Arm:
    """Return rods hinged about y, stretched along x at q = 0.

    Links are `link_1` …, joints `joint_1` …; the frame `tip` is the end of the last.

    Args:
        count: Number of links.
        length: Of each link in [m]; one number, or one for each.
        mass: Of each link in [kg]; one number, or one for each.
        radius: Of the rods in [m].
        viscous: Friction in each joint in [N m s/rad].
        name: Name of the arm.
    """
    if count < 1:
        raise ArgumentError(f"A chain needs at least one link, not {count}.")
    lengths, masses = _each(length, count, "lengths"), _each(mass, count, "masses")
    segments = [
        rod(m, (0.0, 0.0, 0.0), (l, 0.0, 0.0), radius)
        for l, m in zip(lengths, masses, strict=True)
    ]
    joints = tuple(
        Joint(
            f"joint_{i + 1}",
            "revolute",
            i - 1,
            _along_x(lengths[i - 1] if i else 0.0),
            np.array([0.0, 1.0, 0.0]),
            drive=Drive(viscous=viscous),
        )
        for i in range(count)
    )
    links = tuple(
        Link(f"link_{i + 1}", segment.inertia, (segment.shape,))
        for i, segment in enumerate(segments)
    )
    return Arm(
        name, joints, links, frames=(Frame("tip", count - 1, _along_x(lengths[-1])),)
    )


def _each(value: float | Sequence[float], count: int, what: str) -> list[float]:
    if isinstance(value, Sequence):
        values = [float(x) for x in value]
    else:
        values = [float(value)] * count
    if len(values) != count or not all(x > 0 for x in values):
        raise ArgumentError(
            f"A chain of {count} links needs {count} positive {what}, not {value!r}."
        )
    return values


def _along_x(distance: float) -> np.ndarray:
    pose = np.eye(4)
    pose[0, 3] = distance
    return pose
