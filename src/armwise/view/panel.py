"""The controls beside the scene: play, move, show, and torques as they were."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from armwise.view.forms import MEASURED, Color, to_hex
from armwise.view.playback import Playback
from armwise.view.scene import Scene, inertia_layer

# Torques as they were and as models have them, one plot per joint.


class Torques:
    """Plots in a panel of their own on a viser GUI, which follow the time."""

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
        """How much time is plotted in [s]."""
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
    apart = "white-space:nowrap;margin-right:1em"
    items = (f"<span style='{apart}'>{swatch(c)}{escape(n)}</span>" for n, c in named)
    return f"<div style='font-size:0.8em;padding:0.3em 0.8em'>{''.join(items)}</div>"


# The controls beside the scene: play, move, show, and torques as they were.

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")


_STEP = 1e-3
"""Of a joint's slider in [rad] or [m], and of the time's in [s]."""


class Panel:
    """Controls on a viser GUI, and what they are set to.

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
        self._add_words()
        self._torques = Torques(gui, scene) if _has_torque(scene) else None

    @property
    def time(self) -> float:
        """The moment that is shown in [s]."""
        return float(self._time.value) if self._scene.duration > 0 else 0.0

    @property
    def speed(self) -> float:
        """How fast time runs."""
        return float(self._speed.value)

    @property
    def q(self) -> np.ndarray:
        """Joint positions as the sliders have them."""
        return np.array([slider.value for slider in self._joints], dtype=float)

    @property
    def layers(self) -> dict[str, bool]:
        """Which layers are to be seen."""
        return {name: bool(box.value) for name, box in self._layers.items()}

    def go_to(self, t: float, q: np.ndarray | None) -> None:
        """Set the sliders to a moment [s] and the joint positions then."""
        self._time.value = round(t, 3)
        if q is not None:
            for slider, value in zip(self._joints, q, strict=True):
                slider.value = round(float(value), 3)

    @property
    def window(self) -> float:
        """How much time the torques are plotted for in [s]."""
        return 0.0 if self._torques is None else self._torques.window

    def plot(self, t: float) -> None:
        """Draw the torques around a moment [s]."""
        if self._torques is not None:
            self._torques.plot(t)

    def _add_time(self) -> None:
        gui, duration = self._gui, self._scene.duration
        with gui.add_folder("Motion"):
            self._play = gui.add_button("Play", icon="player-play")
            self._time = gui.add_slider("time [s]", 0.0, duration, _STEP, 0.0)
            self._speed = gui.add_dropdown("speed ×", SPEEDS, initial_value="1")
        self._play.on_click(self._toggle)

    def _toggle(self, _: object) -> None:
        self.is_playing = not self.is_playing
        self._play.label = "Pause" if self.is_playing else "Play"
        self._play.icon = "player-pause" if self.is_playing else "player-play"

    def _joint(self, k: int) -> Any:
        joint = self._scene.arm.joints[self._scene.arm.coordinates[k]]
        low, high = self._scene.ranges[k]
        unit = "rad" if joint.is_revolute else "m"
        return self._gui.add_slider(
            f"{joint.name} [{unit}]",
            min=float(np.floor(low / _STEP) * _STEP),
            max=float(np.ceil(high / _STEP) * _STEP),
            step=_STEP,
            initial_value=round(float(self._scene.start[k]), 3),
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

    def _add_words(self) -> None:
        scene = self._scene
        lines = [_model_line(scene, k) for k in range(len(scene.models))]
        if scene.surroundings is not None:
            usual = scene.surroundings.usual_force
            lines.append(f"The longest force arrows are {usual:.3g} N and more.")
        lines += [escape(note) for note in scene.notes]
        items = "".join(f"<p style='margin:0.4em 0'>{line}</p>" for line in lines)
        with self._gui.add_folder("About"):
            self._gui.add_html(
                f"<div style='font-size:0.8em;padding:0 0.8em 0.4em'>{items}</div>"
            )


def _has_torque(scene: Scene) -> bool:
    played: Playback | None = scene.playback
    return played is not None and played.has_torque


def _model_line(scene: Scene, k: int) -> str:
    model = scene.models[k]
    mass = sum(link.inertia.mass for link in model.arm.links)
    words = f"{escape(model.name)}: {mass:.4g} kg in {len(model.arm.links)} links"
    errors = None if scene.playback is None else scene.playback.relative_error
    if errors is not None:
        each = ", ".join(f"{error:.1%}" for error in errors[k])
        words += f"; torque off by {each}"
    return f"{swatch(model.color)}{words}."
