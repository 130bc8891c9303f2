"""Drawing of a scene with viser: added once, then only moved, shown and hidden."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.view.forms import HELD, SPRING, Ball, Cuboid, Rod, Solid, Surface
from armwise.view.geometry import arm_length
from armwise.view.scene import Scene
from armwise.view.surroundings import Surroundings

if TYPE_CHECKING:
    from jaxtyping import Float


_INERTIA_OPACITY = 0.45
"""Of ellipsoids of inertia, which overlap each other and their links."""

_FADED_OPACITY = 0.35
"""Of geometry while inertias are shown inside it."""

_LONGEST_ARROW = 0.3
"""Length of the longest force arrow, as a fraction of the scene's size."""


class Canvas:
    """An arm and the world around it in the browser.

    Args:
        server: A viser server.
        scene: The scene to draw.
    """

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
            move_frames(self._frames, self._scene.poses(q))

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
                handle.opacity = _FADED_OPACITY if inside else None

    @property
    def _size(self) -> float:
        """Size of the scene in [m]."""
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
        # Cells of a power of ten metres, five to a section, so that sizes can be read.
        cell = float(10.0 ** np.floor(np.log10(size)))
        scene.add_grid(
            "/floor", 8 * size, 8 * size, cell_size=cell / 5, section_size=cell,
            cell_color=(233, 236, 239), section_color=(206, 212, 218),
            fade_distance=7 * size, shadow_opacity=0.15,
            position=(0.0, 0.0, self._scene.floor),
        )  # fmt: skip
        scene.add_frame("/origin", axes_length=0.12 * size, axes_radius=0.004 * size)
        low, high = self._scene.bounds
        middle, extent = (low + high) / 2, float((high - low).max())
        away = np.clip(extent, 0.6 * size, size) * np.array([1.25, -1.4, 0.7])
        camera = self._server.initial_camera
        camera.position, camera.look_at = middle + away, middle
        camera.fov = float(np.radians(40.0))


class WorldCanvas:
    """The world around the arm.

    Attributes:
        layers: Handles that are shown and hidden together: "world", "constraints".
    """

    def __init__(self, server: Any, around: Surroundings, size: float) -> None:
        self._scene, self._around, self._size = server.scene, around, size
        self._frames = add_frames(server, "world", around.poses.shape[1])
        bodies = [
            draw(server, f"/world/{solid.frame}/{k}", solid)
            for k, solid in enumerate(around.solids)
        ]
        self._balls = [self._add_ball(k) for k in range(len(self._held_points(0)))]
        self._arrows = self._add_arrows()
        self._springs = self._add_lines("springs", around.springs[0], SPRING)
        paths = [
            self._add_lines(f"paths/{k}", np.stack([p[:-1], p[1:]], axis=1), HELD)
            for k, track in enumerate(around.constraints)
            if (p := track.path) is not None
        ]
        held = [*self._balls, self._arrows, self._springs, *paths]
        self.layers = {"world": bodies, "constraints": [x for x in held if x]}
        self.move(0.0)

    def move(self, t: float) -> None:
        """Show a moment [s]."""
        row = self._around.row_at(t)
        move_frames(self._frames, self._around.poses[row])
        for ball, point in zip(self._balls, self._held_points(row), strict=True):
            ball.position = point
        if self._arrows is not None:
            self._arrows.points = self._forces(row)
        if self._springs is not None:
            self._springs.points = self._around.springs[row]

    def _held_points(self, row: int) -> np.ndarray:
        """Positions of points that are held, and of what holds them."""
        tracks = self._around.constraints
        points = [track.points[row, 0] for track in tracks]
        points += [track.anchor[row] for track in tracks if track.anchor is not None]
        return np.array(points).reshape(-1, 3)

    def _forces(self, row: int) -> np.ndarray:
        """One arrow per constraint, from its point along the force on it."""
        tracks = self._around.constraints
        starts = np.array([track.points[row, 0] for track in tracks])
        forces = np.nan_to_num([track.force[row] for track in tracks])
        relative = forces / max(self._around.force_scale, 1e-12)
        # Longer than the longest arrow: cut, keeping the direction.
        sizes = np.maximum(np.linalg.norm(relative, axis=1, keepdims=True), 1.0)
        arrows = _LONGEST_ARROW * self._size * relative / sizes
        return np.stack([starts, starts + arrows], axis=1)

    def _add_ball(self, k: int) -> Any:
        return self._scene.add_icosphere(f"/held/{k}", 0.014 * self._size, HELD)

    def _add_arrows(self) -> Any:
        if not self._around.constraints:
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


# Frames and solids.


def add_frames(server: Any, root: str, count: int) -> list[Any]:
    """Add frames that solids can be fixed to, all at the origin."""
    add = server.scene.add_frame
    return [add(f"/{root}/{i}", show_axes=False) for i in range(count)]


def move_frames(frames: Iterable[Any], poses: Float[np.ndarray, "frames 4 4"]) -> None:
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
        look |= {"opacity": _INERTIA_OPACITY, "cast_shadow": False}
    scene = server.scene
    match solid.form:
        case Ball(radii):
            return scene.add_icosphere(name, 1.0, subdivisions=4, scale=radii, **look)
        case Rod(radius, length, True):
            mesh = _capsule(radius, length)
            return scene.add_mesh_simple(name, mesh.vertices, mesh.faces, **look)
        case Rod(radius, length):
            return scene.add_cylinder(name, radius, length, **look)
        case Cuboid(extents):
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

    mesh = trimesh.creation.capsule(height=length, radius=radius, count=[24, 24])
    middle = np.array(mesh.bounds).mean(axis=0)  # trimesh starts them at the origin
    return Surface(np.asarray(mesh.vertices) - middle, np.asarray(mesh.faces))
