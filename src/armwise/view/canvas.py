"""The scene in viser: drawn once, then only moved, shown and hidden."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from armwise.view.drawing import add_frames, draw, place
from armwise.view.scene import Scene
from armwise.view.skeleton import arm_length
from armwise.view.world_canvas import WorldCanvas

_FADED = 0.35
"""Opacity of geometry while inertias are shown inside it."""


class Canvas:
    """What stands in the browser; `server` is a viser server."""

    def __init__(self, server: Any, scene: Scene) -> None:
        self._server, self._scene = server, scene
        self._layers: dict[str, list[Any]] = defaultdict(list)
        count = len(scene.arm.links) + 1
        self._frames = add_frames(server, "arm", count)
        for k, solid in enumerate(scene.solids):
            handle = draw(server, f"/arm/{solid.frame % count}/{k}", solid)
            self._layers[solid.layer].append(handle)
        self._world: WorldCanvas | None = None
        if scene.surroundings is not None:
            self._world = WorldCanvas(server, scene.surroundings, self._size)
            self._layers |= self._world.layers
        self.pose(scene.start)
        self._stage()

    def pose(self, q: np.ndarray) -> None:
        """Move the arm to joint positions [rad] or [m]."""
        with self._server.atomic():
            place(self._frames, self._scene.poses(q))

    def surround(self, t: float) -> None:
        """Move the world, if there is one, to a time in [s]."""
        if self._world is not None:
            with self._server.atomic():
                self._world.move(t)

    def show(self, layers: dict[str, bool]) -> None:
        """Show and hide layers; geometry fades while inertias are shown in it."""
        inside = any(layers[name] for name in layers if name.startswith("inertia"))
        with self._server.atomic():
            for name, visible in layers.items():
                for handle in self._layers[name]:
                    handle.visible = visible
            for handle in self._layers["geometry"]:
                handle.opacity = _FADED if inside else None

    @property
    def _size(self) -> float:
        """How large the scene is in [m]."""
        size = arm_length(self._scene.arm) if self._scene.arm.joints else 0.0
        if self._scene.surroundings is not None:
            size = max(size, float(np.ptp(self._scene.bounds, axis=0).max()))
        return max(size, 0.1)

    def _stage(self) -> None:
        """Set floor, light and camera."""
        scene, size = self._server.scene, self._size
        scene.set_up_direction("+z")
        # Plain lights: preparing viser's photographed surroundings takes a processor
        # without a graphics card most of its time.
        scene.configure_environment_map(None)
        scene.add_light_hemisphere(
            "/sky",
            sky_color=(255, 255, 255),
            ground_color=(170, 175, 185),
            intensity=3.0,
        )
        cell = float(10.0 ** np.floor(np.log10(size)))
        scene.add_grid(
            "/floor", 8 * size, 8 * size, cell_size=cell / 5, section_size=cell,
            cell_color=(233, 236, 239), section_color=(206, 212, 218),
            fade_distance=7 * size, shadow_opacity=0.15,
        )  # fmt: skip
        scene.add_frame("/origin", axes_length=0.12 * size, axes_radius=0.004 * size)
        low, high = self._scene.bounds
        middle, extent = (low + high) / 2, float((high - low).max())
        away = np.clip(extent, 0.6 * size, size) * np.array([1.25, -1.4, 0.7])
        camera = self._server.initial_camera
        camera.position, camera.look_at = middle + away, middle
        camera.fov = float(np.radians(40.0))
