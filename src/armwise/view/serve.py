"""Local web server of a scene: player, controls and plots of torque, with viser."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from armwise.errors import ArgumentError, MissingExtra
from armwise.view.canvas import Canvas
from armwise.view.forms import MEASURED, Color, to_hex
from armwise.view.scene import Scene, inertia_layer

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
