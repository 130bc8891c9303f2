"""Faults of readings: steps no joint can make; missing, stuck and saturated sensors.

Jumps are detected within milliseconds. A line through the samples before a moment and
one through those after it meet where a joint was struck, and agree where it moved on.
Where they pass each other at a distance during the whole transition, the reading has
stepped.

`JumpDetector` searches the stream, and means over two, four, eight of its samples: the
first finds clean jumps, the others those that a filter in the sensor has smeared. The
statistic is the distance between the lines, its threshold a multiple of a quantile of
undisturbed motion (`WatchdogSettings.step_margin`, `ordinary_quantile`): steps have no
common distribution, so none is assumed, and the false-alarm rate is measured by
`benchmarks/watchdog.py`. A step is then explained by torque, noise, a stalled link or a
slip of time, in this order, before it is called a jump.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from armwise.monitoring.settings import DEFAULT_SETTINGS, WatchdogSettings

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.dynamics import Dynamics


class Jump(NamedTuple):
    """A step of one joint's reading.

    Attributes:
        joint: Index of the joint.
        onset: When in [s].
        time: When it was noticed in [s].
        size, std: How far the reading stepped in [rad] or [m].
    """

    joint: int
    onset: float
    time: float
    size: float
    std: float


class JumpDetector:
    """Finds jumps in a stream.

    Args:
        model: The arm: its torques account for some of its motion.
        period: Time between two samples in [s].
        fastest: Largest speed of each joint in [rad/s] or [m/s].
        settings: Averages, margins and residuals.
    """

    def __init__(
        self,
        model: Dynamics,
        period: float,
        fastest: Float[np.ndarray, " dof"],
        settings: WatchdogSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._settings = settings
        averages = [
            r
            for r in settings.step_averages
            if r == 1 or WIDTH * r * period <= settings.longest_step
        ]
        clean, smeared = settings.clean_residual, settings.smeared_residual
        residuals = [*[clean] * (len(averages) - 1), smeared]
        self._searches = [
            StepSearch(model, period, average, residual, fastest, settings)
            for average, residual in zip(averages, residuals, strict=True)
        ]
        self._recent: list[Jump] = []

    @property
    def smallest(self) -> Float[np.ndarray, " dof"]:
        """Smallest clean jump that is found in [rad] or [m]."""
        return self._searches[0].threshold

    @property
    def resolution(self) -> Float[np.ndarray, " dof"]:
        """Range of a resting sensor's readings by noise alone in [rad] or [m]."""
        noise = self._searches[0].ordinary_rms / NOISE_GAIN
        return self._settings.resting_range * noise

    def restart(self) -> None:
        """Forget the last samples: the stream was interrupted."""
        for search in self._searches:
            search.restart()

    def end_learning(self) -> None:
        """Take the steps so far as ordinary."""
        for search in self._searches:
            search.end_learning()

    def feed(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
        held: Float[np.ndarray, " samples"],
    ) -> list[Jump]:
        """Take a block of any length; return the jumps it completes.

        Args:
            time: In [s].
            q: Positions in [rad] or [m].
            tau: Torques in [N m] or [N].
            held: Time in [s] for which each sample has repeated an earlier one.
        """
        rows = np.concatenate([time[:, None], held[:, None], q, tau], axis=1)
        # One second is longer than any search's window and `same_jump` together.
        self._recent = [x for x in self._recent if x.onset > time[0] - 1.0]
        jumps: list[Jump] = []
        for search in self._searches:
            for jump in search.feed(rows):
                if not any(self._is_same(jump, other) for other in self._recent):
                    jumps.append(jump)
                    self._recent.append(jump)
        return sorted(jumps, key=lambda jump: jump.time)

    def _is_same(self, one: Jump, other: Jump) -> bool:
        distance = abs(one.onset - other.onset)
        return one.joint == other.joint and distance < self._settings.same_jump


class StepSearch:
    """Searches means over some samples for steps.

    Args:
        model: The arm: its torques account for some of its motion.
        period: Time between two samples in [s].
        average: Number of samples in a mean.
        residual: Residual of the lines, as a fraction of the step between them, up to
            which it counts.
        fastest: Largest speed of each joint in [rad/s] or [m/s].
        settings: Margins.

    Attributes:
        threshold: Steps in [rad] or [m] that are looked at.
    """

    def __init__(
        self,
        model: Dynamics,
        period: float,
        average: int,
        residual: float,
        fastest: np.ndarray,
        settings: WatchdogSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._settings, self._residual = settings, residual
        self._model, self._average, self._period = model, average, average * period
        acceleration = settings.sudden_acceleration
        self._floor = acceleration * ACCELERATION_GAIN * self._period**2
        # Until it has learned: what a joint at its fastest cannot do in between.
        limit = settings.speed_limit_margin * fastest * self._period
        self.threshold = np.maximum(limit, self._floor)
        self._is_learning = True
        self._largest: dict[int, np.ndarray] = {}
        self._squares, self._count = np.zeros(fastest.size), 0
        self._masked_until = np.zeros(fastest.size)
        self.restart()

    def restart(self) -> None:
        """Forget the last samples: the stream was interrupted."""
        width = 2 + 2 * self.threshold.size
        self._open, self._carry = np.empty((0, width)), np.empty((0, width))
        self._masked_until[:] = -np.inf

    @property
    def ordinary_rms(self) -> Float[np.ndarray, " dof"]:
        """Root mean square of steps in ordinary motion in [rad] or [m]."""
        return np.sqrt(self._squares / max(self._count, 1))

    def end_learning(self) -> None:
        """Take the steps so far as ordinary."""
        self._is_learning = False
        if self._largest:
            quantile = self._settings.ordinary_quantile
            ordinary = np.quantile(list(self._largest.values()), quantile, axis=0)
            margin = self._settings.step_margin
            self.threshold = np.maximum(margin * ordinary, self._floor)

    def feed(self, rows: Float[np.ndarray, "samples width"]) -> list[Jump]:
        """Take rows of time, held, q, τ; return the jumps they complete."""
        self._open = np.concatenate([self._open, rows])
        whole = len(self._open) // self._average * self._average
        groups = self._open[:whole].reshape(-1, self._average, rows.shape[1])
        self._open = self._open[whole:]
        rows = np.concatenate([self._carry, groups.mean(axis=1)])
        # A step is judged once all that could outdo it has arrived.
        ready = len(rows) - WIDTH + 1 - 2 * SIDE
        self._carry = rows[max(ready, 0) :]
        return self._search(rows, ready) if ready > 0 else []

    def _search(self, rows: np.ndarray, ready: int) -> list[Jump]:
        dof = self.threshold.size
        middle, least = distances(rows[:, 2 : 2 + dof])
        size, times = np.abs(least), rows[SIDE:, 0]
        far = size[:ready] > self.threshold
        if self._is_learning:
            ordinary = (np.where(far, 0.0, x[:ready]) for x in (size, middle))
            self._learn(times[:ready], *ordinary)
        jumps = []
        for first, j in zip(*np.nonzero(far), strict=True) if far.any() else ():
            if times[first] <= self._masked_until[j]:
                continue
            # All windows that contain the step exceed the threshold: the largest of
            # them is centred on it, the others are masked.
            self._masked_until[j] = times[first + 2 * SIDE]
            best = first + int(size[first : first + 2 * SIDE + 1, j].argmax())
            now = rows[first + WIDTH - 1 + 2 * SIDE, 0]
            jumps += self._judged(int(j), rows[best : best + WIDTH], now)
        return jumps

    def _learn(self, times: np.ndarray, size: np.ndarray, middle: np.ndarray) -> None:
        seconds, first = np.unique(np.floor(times).astype(int), return_index=True)
        tops = np.maximum.reduceat(size, first, axis=0)
        for second, top in zip(seconds.tolist(), tops, strict=True):
            self._largest[second] = np.maximum(self._largest.get(second, 0.0), top)
        self._squares += np.sum(middle**2, axis=0)
        self._count += len(times)

    def _judged(self, j: int, window: np.ndarray, now: float) -> list[Jump]:
        """Return the jump of a joint if nothing else explains its step."""
        settings, dof = self._settings, self.threshold.size
        q, tau = window[:, 2 : 2 + dof], window[:, 2 + dof :]
        step = fit_step(q)
        noise = settings.noise_residual * self.ordinary_rms[j] / NOISE_GAIN
        if step.residual[j] > self._residual * abs(step.size[j]) + noise:
            return []
        driven = float(self._driven(q, tau, step)[j])
        size, late = float(step.size[j]) - driven, window[:, 1].max() / self._period
        held = settings.held_margin * late * np.abs(step.slopes[:, j]).max()
        allowed = self.threshold[j] + held
        if abs(size) < allowed or self._is_slip(j, step):
            return []
        onset = float(window[SIDE, 0] + (0.5 - step.fraction[j]) * self._period)
        errors = [
            self.ordinary_rms[j],
            settings.jump_residual_factor * step.residual[j],
            settings.jump_model_error * driven,
        ]
        return [Jump(j, onset, float(now), size, float(np.linalg.norm(errors)))]

    def _driven(self, q: np.ndarray, tau: np.ndarray, step: StepFit) -> np.ndarray:
        """Distance of the lines that the torques account for."""
        sides = np.repeat(step.slopes / self._period, [SIDE, SIDE + 1], axis=0)
        acceleration = self._model.forward_dynamics(q, sides, tau)
        return driven_distance(acceleration, self._period)

    def _is_slip(self, j: int, step: StepFit) -> bool:
        """Whether time itself has stepped: all moving joints, in proportion to speed.

        Least squares of the steps on the speeds gives the slip of time; it explains
        them if every joint's remainder is below its threshold.
        """
        speed = step.slopes.mean(axis=0)
        slip = float(step.size @ speed / max(speed @ speed, 1e-300))
        others = np.abs(step.size) > self.threshold
        others[j] = False
        fits = np.abs(step.size - slip * speed) < self.threshold
        return bool(others.any() and fits.all())


# Two lines through the samples before and after a moment.

SIDE = 4
"""Samples of each line; one more between them belongs to neither."""

WIDTH = 2 * SIDE + 1
"""Samples of a window in which a step is searched for."""

_TIMES = np.arange(-SIDE, SIDE + 1.0)


def _line(times: np.ndarray) -> np.ndarray:
    """Rows that take value at zero and slope of the line through samples."""
    return np.linalg.pinv(np.stack([np.ones_like(times), times], axis=1))


_BEFORE, _AFTER = _line(_TIMES[:SIDE]), _line(_TIMES[-SIDE:])


def _distance(at: float) -> np.ndarray:
    """Weights whose sum is how far the later line lies above the earlier at a time."""
    when = np.array([1.0, at])
    return np.concatenate([-when @ _BEFORE, [0.0], when @ _AFTER])


# Lines that keep their distance at both ends of the transition do not cross within.
_DISTANCES = np.stack([_distance(-1.0), _distance(1.0)], axis=1)

_LAG = _TIMES[:, None] - _TIMES
_DOUBLE_INTEGRAL = _distance(0.0) @ np.where(_LAG > 0.0, _LAG, 0.0)
"""What accelerations during the samples, by period squared, add to the distance."""

ACCELERATION_GAIN = float(np.abs(_DOUBLE_INTEGRAL).sum() / 2.0)
"""Distance that one unit of acceleration, by period squared, makes by setting in: the
weights are symmetric, and only those after the onset count, which is half their sum."""

NOISE_GAIN = float(np.linalg.norm(_distance(0.0)))
"""Standard deviation of the distance by that of each sample's noise."""


class Distances(NamedTuple):
    """How far lines before and after each moment lie apart.

    Attributes:
        middle: At the moment itself.
        least: The least during the transition; zero if the lines cross.
    """

    middle: Float[np.ndarray, "moments dof"]
    least: Float[np.ndarray, "moments dof"]


def distances(q: Float[np.ndarray, "samples dof"]) -> Distances:
    """Lines before and after every sample that has enough of them on both sides."""
    windows = sliding_window_view(q, WIDTH, axis=0)
    ends = np.einsum("njk,ke->enj", windows, _DISTANCES)
    smaller = np.minimum(np.abs(ends[0]), np.abs(ends[1]))
    least = np.where(ends[0] * ends[1] > 0.0, np.sign(ends[0]) * smaller, 0.0)
    return Distances(ends.mean(axis=0), least)


class StepFit(NamedTuple):
    """Both lines fitted to one window, for all joints.

    Attributes:
        size: Distance of the lines at the moment in [rad] or [m].
        residual: Root mean square of the lines' residuals.
        slopes: Of both lines, per period.
        fraction: Position of the sample between them: 0 on the earlier line, 1 on the
            later.
    """

    size: Float[np.ndarray, " dof"]
    residual: Float[np.ndarray, " dof"]
    slopes: Float[np.ndarray, "2 dof"]
    fraction: Float[np.ndarray, " dof"]


def fit_step(window: Float[np.ndarray, "width dof"]) -> StepFit:
    """Fit both lines to one window."""
    sides = window[:SIDE], window[-SIDE:]
    lines = np.stack([_BEFORE @ sides[0], _AFTER @ sides[1]])
    fits = [
        np.stack([np.ones(SIDE), t], axis=1) @ x
        for t, x in zip((_TIMES[:SIDE], _TIMES[-SIDE:]), lines, strict=True)
    ]
    residual = np.concatenate(sides) - np.concatenate(fits)
    size = lines[1, 0] - lines[0, 0]
    safe = np.where(size == 0.0, 1.0, size)
    # 2·SIDE samples less four unknowns: degrees of freedom of two lines.
    return StepFit(
        size=size,
        residual=np.sqrt(np.sum(residual**2, axis=0) / (2 * SIDE - 4)),
        slopes=lines[:, 1],
        fraction=np.clip((window[SIDE] - lines[0, 0]) / safe, 0.0, 1.0),
    )


def driven_distance(
    acceleration: Float[np.ndarray, "width dof"], period: float
) -> Float[np.ndarray, " dof"]:
    """Distance of the lines that accelerations during a window account for."""
    return np.asarray(_DOUBLE_INTEGRAL @ acceleration * period**2)


# Sensors that fail outright: missing, stuck and saturated readings.
#
# A reading that stays the same is no failure by itself: a joint at rest reads like
# that. It is one while the torque on the joint is more than a resting joint can need:
# weight, the motion of other joints, dry friction, a load in the hand. The test
# compares that excess with the largest of undisturbed motion (`excess_margin`) and asks
# for several windows in a row (`stuck_windows`); no distribution is assumed.


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
