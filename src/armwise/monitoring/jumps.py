"""Jumps of readings: steps no joint can make, found in milliseconds on every joint.

A line through the samples before a moment and one through those after it meet where
a joint was struck, and agree where it moved on. Where they pass each other at a
distance during the whole transition, the reading has stepped.

`JumpDetector` searches the stream, and means over two, four, eight of its samples: the
first finds clean jumps, the others those that a filter in the sensor has smeared. The
statistic is the distance between the lines, its threshold a multiple of a quantile of
undisturbed motion (`WatchdogSettings.step_margin`, `ordinary_quantile`): steps have no
common distribution, so none is assumed, and the false-alarm rate is measured by
`benchmarks/watchdog.py`. A step is then explained by torque, noise, a stalled link or a
slip of time, in this order, before it is called a jump.
"""

from __future__ import annotations

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
