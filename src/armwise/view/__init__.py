"""Look at an arm: its geometry, its motion, its inertia, the world that holds it."""

from __future__ import annotations

from armwise.view.scene import Scene, make_scene, make_world_scene
from armwise.view.serve import serve_scene

__all__ = ["Scene", "make_scene", "make_world_scene", "serve_scene"]
