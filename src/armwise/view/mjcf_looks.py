"""What MuJoCo's bodies look like; their meshes come from the compiled model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import Arm, Shape
from armwise.arms.mjcf import body_name, compile_mjcf
from armwise.arms.mjcf_shapes import read_geom
from armwise.view.forms import Surface
from armwise.view.meshes import checked


def read_mjcf_looks(
    path: Path, arm: Arm
) -> tuple[dict[int, list[Shape]], Callable[[Shape], Surface]]:
    """Return what shows of each moving link, and what finds a mesh by its name."""
    model = compile_mjcf(path)
    found: dict[int, list[Shape]] = defaultdict(list)
    for body in range(model.nbody):
        index, T = arm.place(arm.base if body == 0 else body_name(model, body))
        first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
        geoms = range(first, first + count)
        shown = [g for g in geoms if not _collides(model, g)] or geoms
        shapes = (read_geom(model, g, T) for g in shown)
        found[index] += [shape for shape in shapes if shape is not None]
    return found, lambda shape: _surface(model, shape)


def _collides(model: Any, geom: int) -> bool:
    return bool(model.geom_contype[geom] or model.geom_conaffinity[geom])


def _surface(model: Any, shape: Shape) -> Surface:
    mesh = model.mesh(shape.mesh).id
    corner, face = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
    corners = model.mesh_vert[corner : corner + int(model.mesh_vertnum[mesh])]
    faces = model.mesh_face[face : face + int(model.mesh_facenum[mesh])]
    return checked(np.array(corners, dtype=float), np.array(faces))
