"""The outlines of MuJoCo's bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms.poses import pose, rotation_from_quaternion
from armwise.arms.shapes import Shape

if TYPE_CHECKING:
    from jaxtyping import Float


def read_shapes(model: Any, body: int, T: Float[np.ndarray, "4 4"]) -> list[Shape]:
    """Return a body's outline, moved by T: what it collides with, else what shows."""
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    geoms = range(first, first + count)
    solid = [g for g in geoms if model.geom_contype[g] or model.geom_conaffinity[g]]
    found = (read_geom(model, g, T) for g in solid or geoms)
    return [shape for shape in found if shape is not None]


def read_geom(model: Any, g: int, T: Float[np.ndarray, "4 4"]) -> Shape | None:
    """Return a geom's outline, moved by T, if we know its kind."""
    R = rotation_from_quaternion(model.geom_quat[g])
    at = T @ pose(R, model.geom_pos[g])
    x, y, z = (float(size) for size in model.geom_size[g])
    match int(model.geom_type[g]):
        case 2:  # mjGEOM_SPHERE
            return Shape("sphere", (x,), at)
        case 3:  # mjGEOM_CAPSULE
            return Shape("capsule", (x, 2 * y), at)
        case 5:  # mjGEOM_CYLINDER
            return Shape("cylinder", (x, 2 * y), at)
        case 6:  # mjGEOM_BOX
            return Shape("box", (2 * x, 2 * y, 2 * z), at)
        case 7:  # mjGEOM_MESH
            name = str(model.mesh(int(model.geom_dataid[g])).name)
            return Shape("mesh", (1.0, 1.0, 1.0), at, name)
    return None
