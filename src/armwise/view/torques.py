"""Torques as they were and as models have them, one plot per joint."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from armwise.view.colors import MEASURED, to_hex
from armwise.view.forms import Color
from armwise.view.scene import Scene


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
