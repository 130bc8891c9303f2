"""A scene on a local web server, until the user has seen enough."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from armwise.errors import ArgumentError, MissingExtra
from armwise.view.canvas import Canvas
from armwise.view.panel import Panel
from armwise.view.scene import Scene

HOST = "127.0.0.1"
"""Only this machine: what is shown is the user's own."""

PORT = 8080
"""Tried first when no port is asked for."""

_TICK = 1 / 30
_PLOT_EVERY = 0.15
"""In [s]: torques are plotted less often than the arm moves."""


def serve_scene(
    scene: Scene, port: int | None = None, ready: Callable[[str], None] | None = None
) -> None:
    """Show a scene in the browser until interrupted.

    Args:
        scene: What to show.
        port: Where to listen; 8080 or any free one if not given.
        ready: Called with the address once it can be opened.

    Raises:
        ArgumentError: If the port is taken.
        MissingExtra: Without viser, the extra `view`.
    """
    try:
        import viser
    except ImportError:
        raise MissingExtra("viser", "view", "Showing an arm in the browser") from None
    chosen = free_port(port)
    with _silence():
        server = viser.ViserServer(HOST, chosen, label=scene.arm.name, verbose=False)
    try:
        player = Player(server, scene)
        if ready is not None:
            ready(f"http://{HOST}:{server.get_port()}")
        while True:
            player.step(time.monotonic())
            time.sleep(_TICK)
    except KeyboardInterrupt:
        pass
    finally:
        _end(server)


def _end(server: Any) -> None:
    """Stop a server; a browser that takes seconds to say goodbye is left behind."""
    stopping = threading.Thread(target=server.stop, daemon=True)
    with _silence():
        stopping.start()
        stopping.join(timeout=1.0)


def _silence() -> contextlib.redirect_stdout[io.StringIO]:
    """Keep viser's own greeting and goodbye from the user's terminal."""
    return contextlib.redirect_stdout(io.StringIO())


def free_port(port: int | None) -> int:
    """Return the port asked for if it is free; without one, one that is."""
    for candidate in (PORT, 0) if port is None else (port,):
        with socket.socket() as probe:
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
    """Keeps canvas and controls in step, by looking at the controls again and again.

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
        """Take what the controls say, at a time of the wall clock in [s]."""
        self._show_layers()
        elapsed = min(now - self._last, 0.5)
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
