"""Forms and colours to draw with: ellipsoid, rod, cuboid and surface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Shape

if TYPE_CHECKING:
    from jaxtyping import Float, Int


Color = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""


@dataclass(frozen=True)
class Ball:
    """An ellipsoid; a sphere where its three semi-axes [m] are equal."""

    radii: tuple[float, float, float]


@dataclass(frozen=True)
class Rod:
    """A cylinder along z; `is_round` adds half spheres beyond its ends. In [m]."""

    radius: float
    length: float
    is_round: bool = False


@dataclass(frozen=True)
class Cuboid:
    """A box with these full extents along x, y and z, in [m]."""

    extents: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles: corners in [m], which three make each, and the file's own colour."""

    vertices: Float[np.ndarray, "vertices 3"]
    faces: Int[np.ndarray, "faces 3"]
    color: tuple[float, float, float] | None = None


Form = Ball | Rod | Cuboid | Surface


@dataclass(frozen=True, eq=False)
class Solid:
    """A form with a pose on a moving frame.

    Attributes:
        form: The form.
        frame: Index of the frame it moves with.
        pose: T_frame_form.
        color: Its colour.
        layer: Name of the group it is shown and hidden with.
        label: Name of the link or body it belongs to.
    """

    form: Form
    frame: int
    pose: Float[np.ndarray, "4 4"]
    color: Color
    layer: str
    label: str = ""


def primitive(shape: Shape) -> Form | None:
    """Return a shape as a form; None for a mesh, whose file is not read here."""
    match shape.kind:
        case "sphere":
            radius = shape.size[0]
            return Ball((radius, radius, radius))
        case "cylinder" | "capsule":
            radius, length = shape.size
            return Rod(radius, length, shape.kind == "capsule")
        case "box":
            x, y, z = shape.size
            return Cuboid((x, y, z))
        case "mesh":
            return None


def lowest_point(form: Form, T: Float[np.ndarray, "4 4"]) -> float:
    """Return the height in [m] of a form's lowest point, at a pose."""
    down, height = T[2, :3], float(T[2, 3])
    match form:
        case Ball(radii):
            return height - float(np.linalg.norm(down * np.array(radii)))
        case Rod(radius, length, is_round):
            across = radius if is_round else radius * float(np.hypot(*down[:2]))
            return height - across - 0.5 * length * float(abs(down[2]))
        case Cuboid(extents):
            return height - 0.5 * float(np.abs(down) @ np.array(extents))
        case Surface(vertices):
            return height + float((vertices @ down).min())


def pose_along(
    start: Float[np.ndarray, " 3"], end: Float[np.ndarray, " 3"]
) -> Float[np.ndarray, "4 4"]:
    """Return a pose in the middle of two points [m], with z from one to the other."""
    T = np.eye(4)
    T[:3, 3] = (np.asarray(start) + end) / 2
    T[:3, :3] = rotation_to(np.subtract(end, start))
    return T


def rotation_to(direction: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """Return some rotation whose z axis points along a direction."""
    length = float(np.linalg.norm(direction))
    if length == 0:
        return np.eye(3)
    z = np.asarray(direction) / length
    # Across the axis that is least along z, so that the product is far from zero.
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


# Colours, which differ for red-green colour-blind people, too.

BONES: tuple[Color, ...] = ((206, 212, 218), (173, 181, 189))
"""Links, in turn."""
DRUM: Color = (95, 105, 116)
AXIS: Color = (240, 140, 0)
MEASURED: Color = (73, 80, 87)
MODELS: tuple[Color, Color] = (28, 126, 214), (232, 89, 12)
"""The first and the second set of parameters."""
BODY: Color = (116, 143, 252)
"""A body of the world."""
HELD: Color = (201, 42, 42)
"""A constraint: its points and its forces."""
SPRING: Color = (153, 120, 30)


def color_of(rgb: tuple[float, float, float]) -> Color:
    """Return a description's colour, 0 to 1 each, as we draw it."""
    red, green, blue = (round(255 * min(max(float(x), 0.0), 1.0)) for x in rgb)
    return red, green, blue


def to_hex(color: Color) -> str:
    """Return a colour as HTML writes it."""
    return "#{:02x}{:02x}{:02x}".format(*color)
