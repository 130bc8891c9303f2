"""Sensors that fail outright: missing, stuck and saturated readings.

A reading that stays the same is no failure by itself: a joint at rest reads like that.
It is one while the torque on the joint is more than a resting joint can need: weight,
the motion of other joints, dry friction, a load in the hand. The test compares that
excess with the largest of undisturbed motion (`excess_margin`) and asks for several
windows in a row (`stuck_windows`); no distribution is assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.monitoring.settings import DEFAULT_SETTINGS, WatchdogSettings

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.dynamics import Dynamics


class Failure(NamedTuple):
    """A sensor that fails.

    Attributes:
        kind: `missing`, `stuck` or `saturated`.
        joint: Index of the joint.
        onset: When it began in [s].
        time: When it was noticed in [s].
        excess: Torque in [N m] or [N] beyond what a resting joint needs.
    """

    kind: str
    joint: int
    onset: float
    time: float
    excess: float = np.nan


class MissingReadings:
    """Finds readings and torques that are not finite numbers."""

    def __init__(self, dof: int, settings: WatchdogSettings = DEFAULT_SETTINGS) -> None:
        self._last = np.full(dof, -np.inf)
        self._pause = settings.missing_pause

    def feed(self, time: np.ndarray, s: np.ndarray, tau: np.ndarray) -> list[Failure]:
        """Return one failure per joint and onset, not one per missing sample."""
        bad = ~(np.isfinite(s) & np.isfinite(tau))
        failures = []
        for j in np.flatnonzero(bad.any(axis=0)):
            times = time[bad[:, j]]
            onsets = times[np.diff(times, prepend=self._last[j]) > self._pause]
            failures += [Failure("missing", int(j), t, t) for t in onsets.tolist()]
            self._last[j] = times[-1]
        return failures


class StuckReadings:
    """Finds readings that stay the same under torques no resting joint needs.

    A joint at rest needs what weight and the motion of others ask for, and nothing with
    the brake on; load and friction may add to that.

    Args:
        period: Time between two samples in [s].
        model: The arm, whose weight and inertia are known.
        allowed: Torques in [N m] or [N] that load and friction may add to a motion
            (q, q̇, q̈).
        settings: Windows and margins.
    """

    def __init__(
        self,
        period: float,
        model: Dynamics,
        allowed: Callable[[np.ndarray], np.ndarray],
        settings: WatchdogSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._model, self._allowed, self._settings = model, allowed, settings
        # Four samples at least: a parabola through them gives q, q̇ and q̈.
        self._size = max(4, round(settings.window_time / period))
        times = period * (np.arange(self._size) - 0.5 * (self._size - 1))
        columns = [np.ones(self._size), times, 0.5 * times**2]
        self._motion = np.linalg.pinv(np.stack(columns, axis=1))
        dof = model.arm.dof
        self._resolution, self._ordinary = np.zeros(dof), np.zeros(dof)
        self._lowest, self._highest = np.full(dof, np.inf), np.full(dof, -np.inf)
        self._learning: list[_Window] | None = []
        self.restart()

    def restart(self) -> None:
        """Forget the last samples: the stream was interrupted."""
        dof = self._ordinary.size
        self._open = np.empty((0, 1 + 2 * dof))
        self._begin = np.zeros(dof)
        self._still, self._overloaded = np.zeros((2, dof), dtype=int)
        self._range = np.zeros((2, dof))
        self._is_reported = np.zeros(dof, dtype=bool)

    def end_learning(self, resolution: Float[np.ndarray, " dof"]) -> None:
        """Take the excess torques so far as ordinary.

        Args:
            resolution: Range in [rad] or [m] of a resting sensor's readings.
        """
        windows, self._learning = self._learning or [], None
        self._resolution = resolution
        for window in windows:
            self._follow(window)
            # In the first window of a rest the joint may still be braking.
            at_rest = np.where(self._still > 1, window.excess, 0.0)
            self._ordinary = np.maximum(self._ordinary, at_rest)

    def feed(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
    ) -> list[Failure]:
        """Take a block of any length; return the failures it completes."""
        rows = np.concatenate([self._open, np.column_stack([time, q, tau])])
        whole = len(rows) // self._size * self._size
        self._open = rows[whole:]
        windows = self._windows(rows[:whole].reshape(-1, self._size, rows.shape[1]))
        if self._learning is not None:
            self._learning += windows
            return []
        return [failure for window in windows for failure in self._judge(window)]

    def _windows(
        self, rows: Float[np.ndarray, "windows samples width"]
    ) -> list[_Window]:
        if not len(rows):
            return []
        dof = self._ordinary.size
        q, tau = rows[:, :, 1 : 1 + dof], rows[:, :, 1 + dof :].mean(axis=1)
        motion = np.einsum("ks,tsj->ktj", self._motion, q)
        needed = self._model.inverse_dynamics(*motion)
        # The brake may hold any part of the load: all between 0 and `needed` is normal.
        low, high = np.minimum(needed, 0.0), np.maximum(needed, 0.0)
        excess = np.maximum(tau - high, low - tau)
        ends = rows[:, 0, 0], rows[:, -1, 0], q.min(axis=1), q.max(axis=1)
        parts = (*ends, excess, np.moveaxis(motion, 1, 0))
        return [
            _Window(float(a), float(b), *x) for a, b, *x in zip(*parts, strict=True)
        ]

    def _judge(self, window: _Window) -> list[Failure]:
        self._follow(window)
        limit = self._settings.excess_margin * self._ordinary
        far = (self._still > 0) & (window.excess > limit)
        if far.any():
            far &= window.excess > self._allowed(window.motion)
        self._overloaded = np.where(far, self._overloaded + 1, 0)
        is_stuck = self._overloaded == self._settings.stuck_windows
        new = is_stuck & ~self._is_reported
        self._is_reported |= new
        return [self._failure(int(j), window) for j in np.flatnonzero(new)]

    def _follow(self, window: _Window) -> None:
        """Continue rests that last; begin anew those that do not."""
        low = np.minimum(self._range[0], window.low)
        high = np.maximum(self._range[1], window.high)
        lasts = (self._still > 0) & (high - low <= self._resolution)
        begins = window.high - window.low <= self._resolution
        self._is_reported &= lasts
        self._range = np.where(lasts, [low, high], [window.low, window.high])
        self._begin = np.where(lasts, self._begin, window.begin)
        self._still = np.where(lasts, self._still + 1, begins.astype(int))
        self._lowest = np.minimum(self._lowest, window.low)
        self._highest = np.maximum(self._highest, window.high)

    def _failure(self, j: int, window: _Window) -> Failure:
        """Saturated if at the end of all readings so far, stuck elsewhere."""
        at_end = window.low[j] <= self._lowest[j] or window.high[j] >= self._highest[j]
        kind = "saturated" if at_end else "stuck"
        excess = float(window.excess[j])
        return Failure(kind, j, float(self._begin[j]), window.end, excess)


class _Window(NamedTuple):
    """Some samples: when, between which positions, torque beyond need, and motion."""

    begin: float
    end: float
    low: np.ndarray
    high: np.ndarray
    excess: np.ndarray
    motion: np.ndarray
