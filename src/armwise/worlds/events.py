"""Things that happen at an instant: found, logged, acted upon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from armwise.worlds.bodies import Point
from armwise.worlds.engine import Engine


@dataclass(frozen=True, eq=False)
class Moment:
    """A world at one time, as an event sees it."""

    time: float
    state: np.ndarray
    engine: Engine

    def position(self, body: str) -> np.ndarray:
        """Return q of an articulated body; centre and quaternion of a rigid one."""
        return self.state[self.engine.layout.positions[body]]

    def velocity(self, body: str) -> np.ndarray:
        """Return q̇, or the velocity of the centre and the angular one (body axes)."""
        return self.state[self.engine.layout.velocities[body]]

    def place(self, point: Point) -> np.ndarray:
        """Return where a point is in the world in [m]."""
        return np.asarray(self.engine.positions(self.state[None], (point,))[0, 0])


@dataclass(frozen=True, eq=False)
class Event:
    """Something to look for: a function of the moment that crosses zero.

    Attributes:
        name: What the log calls it.
        function: Of the moment; the event is where it changes sign.
        direction: +1: only upwards; −1: only downwards; 0: both.
        releases: Constraints to take away when it happens.
        is_final: Whether the simulation ends there.
    """

    name: str
    function: Callable[[Moment], float]
    direction: int = 0
    releases: tuple[str, ...] = field(default=())
    is_final: bool = False

    def is_crossed(self, before: float, after: float) -> bool:
        """Whether the event lies between two values of its function."""
        up, down = before < 0 <= after, before > 0 >= after
        return (up and self.direction >= 0) or (down and self.direction <= 0)


@dataclass(frozen=True)
class Happening:
    """A line of the log.

    Attributes:
        time: In [s].
        kind: "broken", "event" or "singular".
        name: The constraint or the event.
        cause: In words.
    """

    time: float
    kind: str
    name: str
    cause: str
