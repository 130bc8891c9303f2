"""Solids and frames in viser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.view.forms import Ball, Block, Rod, Solid, Surface

if TYPE_CHECKING:
    from jaxtyping import Float

_SEE_INTO = 0.45
"""Opacity of ellipsoids of inertia."""


def add_frames(server: Any, root: str, count: int) -> list[Any]:
    """Add frames that solids can be fixed to, all at the origin."""
    add = server.scene.add_frame
    return [add(f"/{root}/{i}", show_axes=False) for i in range(count)]


def place(frames: Iterable[Any], poses: Float[np.ndarray, "frames 4 4"]) -> None:
    """Move frames."""
    for frame, T in zip(frames, poses, strict=True):
        frame.wxyz, frame.position = _quaternion(T[:3, :3]), T[:3, 3]


def draw(server: Any, name: str, solid: Solid) -> Any:
    """Draw a solid under a name; its parent in the name is the frame it moves with."""
    look: dict[str, Any] = {
        "color": solid.color,
        "wxyz": _quaternion(solid.pose[:3, :3]),
        "position": solid.pose[:3, 3],
    }
    if solid.layer.startswith("inertia"):
        look |= {"opacity": _SEE_INTO, "cast_shadow": False}
    scene = server.scene
    match solid.form:
        case Ball(radii):
            return scene.add_icosphere(name, 1.0, subdivisions=4, scale=radii, **look)
        case Rod(radius, length, True):
            made = _capsule(radius, length)
            return scene.add_mesh_simple(name, made.vertices, made.faces, **look)
        case Rod(radius, length):
            return scene.add_cylinder(name, radius, length, **look)
        case Block(extents):
            return scene.add_box(name, dimensions=extents, **look)
        case Surface(vertices, faces):
            return scene.add_mesh_simple(
                name, vertices, faces, flat_shading=True, side="double", **look
            )


def _quaternion(R: np.ndarray) -> np.ndarray:
    from viser.transforms import SO3

    return np.asarray(SO3.from_matrix(R).wxyz)


def _capsule(radius: float, length: float) -> Surface:
    import trimesh

    made = trimesh.creation.capsule(height=length, radius=radius, count=[24, 24])
    middle = np.array(made.bounds).mean(axis=0)
    return Surface(np.asarray(made.vertices) - middle, np.asarray(made.faces))
