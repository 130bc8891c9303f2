"""Samples that repeat the one before while the arm moved on: a link that stalled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_BEFORE = 4
"""Samples over which speed before a stall is judged."""

_MOVING = 0.02
"""Speed in [rad/s] or [m/s] that is more than an arm at rest seems to have."""


class Repeats:
    """Tells stalls from rests, in which nothing changes either.

    Args:
        period: Time between two samples in [s].
        dof: Number of joints.
    """

    def __init__(self, period: float, dof: int) -> None:
        self._period, self._dof = period, dof
        self._last: np.ndarray | None = None
        self._run, self._is_moving = 0, False

    def feed(self, rows: np.ndarray) -> Float[np.ndarray, " samples"]:
        """Take rows of positions and torques in; return how long each has stalled.

        Returns:
            Time in [s] since the last sample that told something new; zero at rest.
        """
        if self._last is None:
            self._last = np.repeat(rows[:1] + 1.0, _BEFORE, axis=0)
        known = np.concatenate([self._last, rows])
        is_new = np.any(rows != known[_BEFORE - 1 : -1], axis=1)
        number = np.arange(len(rows))
        latest = np.maximum.accumulate(np.where(is_new, number, -1))
        run = np.where(latest < 0, self._run + 1 + number, number - latest)
        moved = self._is_fast(known)[latest]
        moving = np.where(latest < 0, self._is_moving, moved)
        self._last = known[-_BEFORE:]
        self._run, self._is_moving = int(run[-1]), bool(moving[-1])
        return np.asarray(self._period * run * moving)

    def _is_fast(self, known: np.ndarray) -> Bool[np.ndarray, " samples"]:
        q = known[:, : self._dof]
        way = np.abs(q[_BEFORE:] - q[:-_BEFORE]).max(axis=1)
        return np.asarray(way > _MOVING * _BEFORE * self._period)
