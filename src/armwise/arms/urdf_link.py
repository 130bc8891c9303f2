"""What a URDF says of a link: its inertia, its outline, its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms.inertia import InertialParameters
from armwise.arms.poses import pose, rotation_from_rpy
from armwise.arms.shapes import Shape
from armwise.arms.xml import Element

if TYPE_CHECKING:
    from jaxtyping import Float

NOTHING = (0.0, 0.0, 0.0)


def read_origin(element: Element) -> Float[np.ndarray, "4 4"]:
    """Return the pose in an element's <origin>, the identity without one."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    rotation = rotation_from_rpy(origin.vector("rpy", NOTHING))
    return pose(rotation, origin.vector("xyz", NOTHING))


def read_inertial(link: Element, allow_unphysical: bool) -> InertialParameters:
    """Return a link's inertial parameters about its frame, zero without <inertial>."""
    inertial = link.find("inertial")
    if inertial is None:
        return InertialParameters.zero()
    mass = inertial.require("mass").number("value")
    T = read_origin(inertial)
    R = T[:3, :3]
    central = R @ _read_inertia(inertial) @ R.T
    if not allow_unphysical:
        _refuse_impossible(link, mass, central)
    return InertialParameters.from_center_of_mass(mass, T[:3, 3], central)


def _read_inertia(inertial: Element) -> Float[np.ndarray, "3 3"]:
    inertia = inertial.require("inertia")
    xx, yy, zz = (inertia.number(name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (inertia.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _refuse_impossible(
    link: Element, mass: float, central: Float[np.ndarray, "3 3"]
) -> None:
    """Refuse what cannot be a slip of rounding; a broken triangle only is a defect."""
    remedy = "correct it, or load with allow_unphysical=True."
    if mass < 0:
        raise link.error(f"has the negative mass {mass:g} kg; {remedy}")
    smallest = float(np.linalg.eigvalsh(central)[0])
    if smallest < -1e-9 * max(float(np.abs(central).max()), 1e-12):
        raise link.error(
            f"has an inertia no body can have: a principal moment is negative "
            f"({smallest:.4g} kg m²); {remedy}"
        )


def read_shapes(link: Element, T: Float[np.ndarray, "4 4"]) -> list[Shape]:
    """Return a link's outline, moved by T: what it collides with, else what shows."""
    kind = "collision" if link.find("collision") is not None else "visual"
    found = (read_shape(element, T) for element in link.all(kind))
    return [shape for shape in found if shape is not None]


def read_shape(element: Element, T: Float[np.ndarray, "4 4"]) -> Shape | None:
    """Return the outline of a <collision> or <visual>, moved by T, if we know it."""
    geometry = element.find("geometry")
    if geometry is None or not geometry.children:
        return None
    at, solid = T @ read_origin(element), geometry.children[0]
    match solid.tag:
        case "sphere":
            return Shape("sphere", (solid.number("radius"),), at)
        case "cylinder":
            size = (solid.number("radius"), solid.number("length"))
            return Shape("cylinder", size, at)
        case "capsule":
            size = (solid.number("radius"), solid.number("length"))
            return Shape("capsule", size, at)
        case "box":
            return Shape("box", solid.vector("size", NOTHING), at)
        case "mesh":
            scale = solid.vector("scale", (1.0, 1.0, 1.0))
            return Shape("mesh", scale, at, solid.text("filename"))
    return None
