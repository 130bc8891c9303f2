"""Sensors that fail outright: no number, an impossible jump, a reading that sticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from armwise.arms import Arm
    from armwise.calibration.projection import Point

_STUCK = 1.0
"""Time in [s] a reading may stay the same while its joint's torque swings."""

Found = tuple[str, str, float, float, float, float, str]


class Failures:
    """Looks for failures in a stream of readings.

    Args:
        arm: Whose limits say what is possible.
        point: Gains and offsets.
        largest_speed: Speed in [rad/s] no joint has; three times its limit if None.
        period: Time between two samples in [s].
        names: The joints' names.
    """

    def __init__(
        self,
        arm: Arm,
        point: Point,
        largest_speed: ArrayLike | None,
        period: float,
        names: tuple[str, ...],
    ) -> None:
        speed = 3.0 * arm.limits("velocity") if largest_speed is None else largest_speed
        size = np.abs(point.alpha)
        self._step = (
            np.broadcast_to(np.asarray(speed, float), size.shape) * period / size
        )
        self._names, self._period = names, period
        self._last: np.ndarray | None = None
        self._same = np.zeros(len(names))
        self._swing = np.zeros((2, len(names)))
        self._range = np.array([[np.inf], [-np.inf]]) * np.ones(len(names))
        self._told: set[tuple[str, str]] = set()

    def check(self, t: np.ndarray, s: np.ndarray, tau: np.ndarray) -> list[Found]:
        """Return what is wrong with a block; each joint's kind of failure once."""
        found = self._missing(t, s, tau)
        if found or not np.isfinite(s).all():
            return found
        first = s[:1] if self._last is None else self._last[None]
        change = np.diff(s, axis=0, prepend=first)
        self._last = s[-1].copy()
        for j, name in enumerate(self._names):
            far = np.flatnonzero(np.abs(change[:, j]) > self._step[j])
            if far.size:
                found += self._tell(name, "jumps", t[far[0]], t[far[0]])
        return found + self._stuck(t, change == 0.0, tau)

    def _missing(self, t: np.ndarray, s: np.ndarray, tau: np.ndarray) -> list[Found]:
        found: list[Found] = []
        for j, name in enumerate(self._names):
            bad = np.flatnonzero(~(np.isfinite(s[:, j]) & np.isfinite(tau[:, j])))
            if bad.size:
                found += self._tell(name, "gives no number", t[bad[0]], t[bad[0]])
        return found

    def _stuck(self, t: np.ndarray, same: np.ndarray, tau: np.ndarray) -> list[Found]:
        """A reading that stays while its torque swings by more than it ever holds."""
        found: list[Found] = []
        self._range[0] = np.minimum(self._range[0], tau.min(axis=0))
        self._range[1] = np.maximum(self._range[1], tau.max(axis=0))
        usual = self._range[1] - self._range[0]
        for j, name in enumerate(self._names):
            if not same[:, j].all():
                moved = np.flatnonzero(~same[:, j])[-1] + 1
                self._same[j] = (len(t) - moved) * self._period
                self._swing[:, j] = tau[-1, j]
            else:
                self._same[j] += len(t) * self._period
            self._swing[0, j] = min(self._swing[0, j], tau[-1, j])
            self._swing[1, j] = max(self._swing[1, j], tau[-1, j])
            swing = self._swing[1, j] - self._swing[0, j]
            if self._same[j] > _STUCK and swing > 0.7 * usual[j] > 0.0:
                found += self._tell(name, "sticks", t[-1] - self._same[j], t[-1])
        return found

    def _tell(self, name: str, what: str, onset: float, now: float) -> list[Found]:
        if (name, what) in self._told:
            return []
        self._told.add((name, what))
        message = f"the sensor of {name} {what} at t = {onset:.2f} s"
        return [("failure", name, float(onset), float(now), np.nan, np.inf, message)]
