"""Browser view of an arm: geometry, motion, torques, inertia, and the world around."""

from __future__ import annotations

from armwise.view.scene import Scene, distinct_names, make_scene, make_world_scene
from armwise.view.serve import serve_scene

__all__ = [
    "Scene",
    "distinct_names",
    "make_scene",
    "make_world_scene",
    "serve_scene",
]
