"""Local web server of a scene: player, controls and plots of torque, with viser."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import ArgumentError, MissingExtra
from armwise.view.forms import (
    HELD,
    MEASURED,
    SPRING,
    Ball,
    Color,
    Cuboid,
    Rod,
    Solid,
    Surface,
    to_hex,
)
from armwise.view.geometry import arm_length
from armwise.view.scene import Scene, inertia_layer
from armwise.view.surroundings import Surroundings

if TYPE_CHECKING:
    from jaxtyping import Float

HOST = "127.0.0.1"
"""Only this machine: descriptions and recordings are private."""

PORT = 8080
"""Tried first when no port is named."""

_STEP_TIME = 1 / 30
"""Time between two frames in [s]: smooth to the eye, light on the connection."""

_PLOT_EVERY = 0.15
"""Time between two plots in [s]: their data weigh more than the arm's poses."""

_LONGEST_ELAPSED = 0.5
"""Most time in [s] that a single step plays: after the machine slept, the motion goes
on from where it was."""

_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")

_SLIDER_STEP = 1e-3
"""Of a joint's slider in [rad] or [m], and of the time's in [s]."""


def serve_scene(
    scene: Scene, port: int | None = None, ready: Callable[[str], None] | None = None
) -> None:
    """Show a scene in the browser until interrupted.

    Args:
        scene: The scene.
        port: Port to listen on; 8080 or any free one if None.
        ready: Called with the address once it can be opened.

    Raises:
        ArgumentError: If the port is taken.
        MissingExtra: Without viser, the extra `view`.
    """
    try:
        import viser
    except ImportError:
        raise MissingExtra("viser", "view", "Showing an arm in the browser") from None
    port = free_port(port)
    with _silence():
        server = viser.ViserServer(HOST, port, label=scene.arm.name, verbose=False)
    try:
        player = Player(server, scene)
        if ready is not None:
            ready(f"http://{HOST}:{server.get_port()}")
        while True:
            player.step(time.monotonic())
            time.sleep(_STEP_TIME)
    except KeyboardInterrupt:
        pass
    finally:
        _end(server)


def _end(server: Any) -> None:
    """Stop a server without waiting for browsers that take long to disconnect."""
    # In a daemon thread, which ends with the program however long it takes.
    stopping = threading.Thread(target=server.stop, daemon=True)
    with _silence():
        stopping.start()
        stopping.join(timeout=1.0)


def _silence() -> contextlib.redirect_stdout[io.StringIO]:
    """Keep viser's own messages from the user's terminal."""
    return contextlib.redirect_stdout(io.StringIO())


def free_port(port: int | None) -> int:
    """Return the port if it is free; without one, 8080 or any other that is."""
    for candidate in (PORT, 0) if port is None else (port,):
        with socket.socket() as probe:
            # As a server does, so that a port that was just closed counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, candidate))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    raise ArgumentError(
        f"Port {port} cannot be used here, perhaps another program listens there: "
        "choose another with --port, or leave it out."
    )


class Player:
    """Keeps canvas and controls in step, by polling the controls.

    Polling, not callbacks: these would come from viser's threads, one per browser.

    Attributes:
        panel: The controls.
    """

    def __init__(self, server: Any, scene: Scene) -> None:
        server.gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=(28, 126, 214)
        )
        self._scene = scene
        self._canvas, self.panel = Canvas(server, scene), Panel(server.gui, scene)
        server.gui.main_panel.dock_right()
        server.gui.main_panel.set_width(340)
        self._layers: dict[str, bool] = {}
        self._q = self.panel.q
        self._remember()
        self._clock, self._last, self._plotted = 0.0, 0.0, -np.inf

    def step(self, now: float) -> None:
        """Apply the state of the controls at a time of the wall clock in [s]."""
        self._show_layers()
        elapsed = min(now - self._last, _LONGEST_ELAPSED)
        self._last = now
        if self.panel.is_playing:
            # The slider is coarser than the clock, but a hand may have moved it.
            moved = self.panel.time != self._time
            begin = self.panel.time if moved else self._clock
            later = begin + elapsed * self.panel.speed
            self._go_to(later if later < self._scene.duration else 0.0, now)
        elif (self.panel.time, self.panel.window) != (self._time, self._window):
            self._go_to(self.panel.time, now)
        elif not np.array_equal(self.panel.q, self._q):
            self._q = self.panel.q
            self._canvas.pose(self._q)

    def _go_to(self, t: float, now: float) -> None:
        playback = self._scene.playback
        q = None if playback is None else playback.q[playback.row_at(t)]
        self._clock = t
        self.panel.go_to(t, q)
        self._remember()
        if q is not None:
            self._canvas.pose(q)
        self._canvas.surround(t)
        # Always when paused: there is no later step to show the last moment.
        if now - self._plotted > _PLOT_EVERY or not self.panel.is_playing:
            self.panel.plot(t)
            self._plotted = now

    def _remember(self) -> None:
        panel = self.panel
        self._time, self._window, self._q = panel.time, panel.window, panel.q

    def _show_layers(self) -> None:
        if self.panel.layers != self._layers:
            self._layers = self.panel.layers
            self._canvas.show(self._layers)


# Controls.


class Panel:
    """Controls on a viser GUI, and their state.

    Attributes:
        is_playing: Whether time runs.
    """

    def __init__(self, gui: Any, scene: Scene) -> None:
        self._gui, self._scene = gui, scene
        self.is_playing = False
        gui.set_panel_label(f"armwise · {scene.arm.name}")
        if scene.duration > 0:
            self._add_time()
        self._add_layers()
        self._joints: list[Any] = []
        if scene.arm.dof:
            with gui.add_folder("Joints"):
                self._joints = [self._joint(k) for k in range(scene.arm.dof)]
        self._add_notes()
        self._torques = TorquePlots(gui, scene) if _has_torque(scene) else None

    @property
    def time(self) -> float:
        """The moment that is shown in [s]."""
        return float(self._time.value) if self._scene.duration > 0 else 0.0

    @property
    def speed(self) -> float:
        """Time played per time elapsed."""
        return float(self._speed.value)

    @property
    def q(self) -> np.ndarray:
        """Joint positions as the sliders have them."""
        return np.array([slider.value for slider in self._joints], dtype=float)

    @property
    def layers(self) -> dict[str, bool]:
        """Which layers are visible."""
        return {name: bool(box.value) for name, box in self._layers.items()}

    def go_to(self, t: float, q: np.ndarray | None) -> None:
        """Set the sliders to a moment [s] and the joint positions then."""
        # To the sliders' step, or the browser would send the rounded value back as if
        # a hand had moved it.
        self._time.value = round(t, 3)
        if q is not None:
            for slider, value in zip(self._joints, q, strict=True):
                slider.value = round(float(value), 3)

    @property
    def window(self) -> float:
        """Length of the plots' time axis in [s]; 0 without plots."""
        return 0.0 if self._torques is None else self._torques.window

    def plot(self, t: float) -> None:
        """Draw the torques around a moment [s]."""
        if self._torques is not None:
            self._torques.plot(t)

    def _add_time(self) -> None:
        gui, duration = self._gui, self._scene.duration
        with gui.add_folder("Motion"):
            self._play = gui.add_button("Play", icon="player-play")
            self._time = gui.add_slider("time [s]", 0.0, duration, _SLIDER_STEP, 0.0)
            self._speed = gui.add_dropdown("speed ×", _SPEEDS, initial_value="1")
        self._play.on_click(self._toggle)

    def _toggle(self, _: object) -> None:
        self.is_playing = not self.is_playing
        self._play.label = "Pause" if self.is_playing else "Play"
        self._play.icon = "player-pause" if self.is_playing else "player-play"

    def _joint(self, k: int) -> Any:
        joint = self._scene.arm.joints[self._scene.arm.coordinates[k]]
        lower, upper = self._scene.ranges[k].tolist()
        low, high, value = slider_values(lower, upper, float(self._scene.start[k]))
        unit = "rad" if joint.is_revolute else "m"
        return self._gui.add_slider(
            f"{joint.name} [{unit}]",
            min=low,
            max=high,
            step=_SLIDER_STEP,
            initial_value=value,
        )

    def _add_layers(self) -> None:
        scene, box = self._scene, self._gui.add_checkbox
        with self._gui.add_folder("Show"):
            drawn = sorted({s.layer for s in scene.solids} & {"geometry", "skeleton"})
            self._layers = {name: box(name, True) for name in drawn}
            if scene.arm.dof:
                self._layers["axes"] = box("joint axes", False)
            for k, model in enumerate(scene.models):
                label = f"inertia, {model.name}"
                self._layers[inertia_layer(k)] = box(label, False)
            if scene.surroundings is not None:
                self._layers["world"] = box("world", True)
                self._layers["constraints"] = box("constraints and forces", True)

    def _add_notes(self) -> None:
        scene = self._scene
        lines = [_model_line(scene, k) for k in range(len(scene.models))]
        if scene.surroundings is not None:
            scale = scene.surroundings.force_scale
            lines.append(f"The longest force arrows are {scale:.3g} N and more.")
        lines += [escape(note) for note in scene.notes]
        items = "".join(f"<p style='margin:0.4em 0'>{line}</p>" for line in lines)
        with self._gui.add_folder("About"):
            self._gui.add_html(
                f"<div style='font-size:0.8em;padding:0 0.8em 0.4em'>{items}</div>"
            )


def slider_values(
    lower: float, upper: float, start: float
) -> tuple[float, float, float]:
    """Ends and start of a slider on its grid, the start between the ends."""
    # Rounded after multiplying: 820 · 0.001 is 0.8200000000000001, beyond a start of
    # 0.82, which viser refuses.
    low = round(float(np.floor(lower / _SLIDER_STEP)) * _SLIDER_STEP, 3)
    high = round(float(np.ceil(upper / _SLIDER_STEP)) * _SLIDER_STEP, 3)
    return low, high, min(max(round(float(start), 3), low), high)


def _has_torque(scene: Scene) -> bool:
    return scene.playback is not None and scene.playback.has_torque


def _model_line(scene: Scene, k: int) -> str:
    model = scene.models[k]
    mass = sum(link.inertia.mass for link in model.arm.links)
    words = f"{escape(model.name)}: {mass:.4g} kg in {len(model.arm.links)} links"
    errors = None if scene.playback is None else scene.playback.relative_error
    if errors is not None:
        each = ", ".join(f"{error:.1%}" for error in errors[k])
        words += f"; torque error {each}"
    return f"{swatch(model.color)}{words}."


# Plots of torque.


class TorquePlots:
    """Torques measured and predicted, one plot per joint, in a panel of their own."""

    def __init__(self, gui: Any, scene: Scene) -> None:
        assert scene.playback is not None
        self._arm, self._playback = scene.arm, scene.playback
        self._named = [(model.name, model.color) for model in scene.models]
        if scene.playback.measured is not None:
            self._named.insert(0, ("measured", MEASURED))
        panel = gui.add_panel()
        with panel.add_tab("Torque"):
            gui.add_html(_legend(self._named))
            longest = max(scene.playback.duration, 0.1)
            self._window = gui.add_slider(
                "window [s]", 0.1, longest, 0.1, min(5.0, longest)
            )
            self._plots = [self._add_plot(gui, k) for k in range(scene.arm.dof)]
        panel.dock_left()
        panel.set_width(380)

    @property
    def window(self) -> float:
        """Length of the time axis in [s]."""
        return float(self._window.value)

    def plot(self, t: float) -> None:
        """Draw the torques around a moment [s]."""
        for k, plot in enumerate(self._plots):
            plot.data = self._data(k, t)

    def _add_plot(self, gui: Any, k: int) -> Any:
        joint = self._arm.joints[self._arm.coordinates[k]]
        unit = "N m" if joint.is_revolute else "N"
        lines = [_line(name, color, 1.5) for name, color in self._named]
        past = _line("until now", self._named[0][1], 3.5)
        return gui.add_uplot(
            self._data(k, 0.0), ({"label": "time [s]"}, past, *lines),
            title=f"{joint.name} [{unit}]", height=110, legend={"show": False},
            scales={"x": {"time": False}}, axes=({"size": 24}, {"size": 44}),
        )  # fmt: skip

    def _data(self, k: int, t: float) -> tuple[np.ndarray, ...]:
        curves = self._playback.curves(k, t, self.window)
        return curves.time, curves.past, *curves.torque


def swatch(color: Color) -> str:
    """Return a small square of a colour, in HTML."""
    square = "display:inline-block;width:0.9em;height:0.9em;margin-right:0.4em"
    soft = "border-radius:0.2em;vertical-align:-0.1em"
    return f"<span style='{square};{soft};background:{to_hex(color)}'></span>"


def _line(name: str, color: Color, width: float) -> dict[str, Any]:
    look = {"stroke": to_hex(color), "width": width, "points": {"show": False}}
    return {"label": name, **look}


def _legend(named: list[tuple[str, Color]]) -> str:
    spacing = "white-space:nowrap;margin-right:1em"
    items = (f"<span style='{spacing}'>{swatch(c)}{escape(n)}</span>" for n, c in named)
    return f"<div style='font-size:0.8em;padding:0.3em 0.8em'>{''.join(items)}</div>"


# Drawing of a scene with viser: added once, then only moved, shown and hidden.

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
