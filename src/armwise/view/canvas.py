"""The scene in viser: drawn once, then only moved, shown and hidden."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.view.forms import HELD, SPRING, Ball, Block, Rod, Solid, Surface
from armwise.view.looks import arm_length
from armwise.view.scene import Scene
from armwise.view.surroundings import Surroundings

if TYPE_CHECKING:
    from jaxtyping import Float


# Solids and frames in viser.

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


# A world in viser: bodies, the points they are held at, and the forces there.

LONGEST_ARROW = 0.3
"""Of the scene's size."""


class WorldCanvas:
    """What stands around the arm.

    Attributes:
        layers: What is shown and hidden together: "world" and "constraints".
    """

    def __init__(self, server: Any, around: Surroundings, size: float) -> None:
        self._scene, self._around, self._size = server.scene, around, size
        self._frames = add_frames(server, "world", around.poses.shape[1])
        bodies = [
            draw(server, f"/world/{solid.frame}/{k}", solid)
            for k, solid in enumerate(around.solids)
        ]
        self._balls = [self._add_ball(k) for k in range(len(self._places(0)))]
        self._arrows = self._add_arrows()
        self._springs = self._add_lines("springs", around.springs[0], SPRING)
        paths = [
            self._add_lines(f"paths/{k}", np.stack([p[:-1], p[1:]], axis=1), HELD)
            for k, hold in enumerate(around.holds)
            if (p := hold.path) is not None
        ]
        held = [*self._balls, self._arrows, self._springs, *paths]
        self.layers = {"world": bodies, "constraints": [x for x in held if x]}
        self.move(0.0)

    def move(self, t: float) -> None:
        """Show a moment [s]."""
        row = self._around.row_at(t)
        place(self._frames, self._around.poses[row])
        for ball, where in zip(self._balls, self._places(row), strict=True):
            ball.position = where
        if self._arrows is not None:
            self._arrows.points = self._forces(row)
        if self._springs is not None:
            self._springs.points = self._around.springs[row]

    def _places(self, row: int) -> np.ndarray:
        """Points that are held, and the places that hold them."""
        holds = self._around.holds
        found = [hold.points[row, 0] for hold in holds]
        found += [hold.anchor[row] for hold in holds if hold.anchor is not None]
        return np.array(found).reshape(-1, 3)

    def _forces(self, row: int) -> np.ndarray:
        """One arrow per constraint, from its point along the force on it."""
        starts = np.array([hold.points[row, 0] for hold in self._around.holds])
        forces = np.nan_to_num([hold.force[row] for hold in self._around.holds])
        shares = forces / max(self._around.usual_force, 1e-12)
        sizes = np.maximum(np.linalg.norm(shares, axis=1, keepdims=True), 1.0)
        arrows = LONGEST_ARROW * self._size * shares / sizes
        return np.stack([starts, starts + arrows], axis=1)

    def _add_ball(self, k: int) -> Any:
        return self._scene.add_icosphere(f"/held/{k}", 0.014 * self._size, HELD)

    def _add_arrows(self) -> Any:
        if not self._around.holds:
            return None
        thin = 0.005 * self._size
        return self._scene.add_arrows(
            "/forces", self._forces(0), HELD,
            shaft_radius=thin, head_radius=2.5 * thin, head_length=6 * thin,
        )  # fmt: skip

    def _add_lines(self, name: str, points: np.ndarray, color: Any) -> Any:
        if not len(points):
            return None
        thin = 0.005 * self._size
        return self._scene.add_line_segments(f"/{name}", points, color, thickness=thin)


# The scene in viser: drawn once, then only moved, shown and hidden.

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
