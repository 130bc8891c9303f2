"""Jumps of readings: found in milliseconds, on every joint, whatever its load.

The stream, and means over two, four, eight of its samples, are searched for steps: the
first finds clean jumps, the others those that a filter in the sensor has smeared.

A line through the samples before a moment and one through those after it meet where
a joint was struck, and agree where it moved on. Where they pass each other at a
distance during the whole transition, the reading has stepped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.dynamics import Dynamics


# Steps in a stream of positions: what a joint cannot do and a sensor can.

SIDE = 4
"""Samples of each line; one more between them belongs to neither."""

WIDTH = 2 * SIDE + 1
"""Samples that a step is told from."""

_TIMES = np.arange(-SIDE, SIDE + 1.0)


def _line(times: np.ndarray) -> np.ndarray:
    """Rows that take value at zero and slope of the line through samples."""
    return np.linalg.pinv(np.stack([np.ones_like(times), times], axis=1))


_BEFORE, _AFTER = _line(_TIMES[:SIDE]), _line(_TIMES[-SIDE:])


def _distance(at: float) -> np.ndarray:
    """Weights whose sum is how far the later line lies above the earlier at a time."""
    when = np.array([1.0, at])
    return np.concatenate([-when @ _BEFORE, [0.0], when @ _AFTER])


_DISTANCES = np.stack([_distance(-1.0), _distance(1.0)], axis=1)

_LAG = _TIMES[:, None] - _TIMES
_DOUBLE_INTEGRAL = _distance(0.0) @ np.where(_LAG > 0.0, _LAG, 0.0)
"""What accelerations during the samples, by period squared, add to the distance."""

BLUR = float(np.abs(_DOUBLE_INTEGRAL).sum() / 2.0)
"""Distance that one unit of acceleration, by period squared, makes by setting in."""


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


class Step(NamedTuple):
    """One moment looked at closely, for all joints.

    Attributes:
        size: Distance of the lines at the moment in [rad] or [m].
        left: Root mean square of what the lines leave of the samples.
        slopes: Of both lines, per period.
        share: Where the sample between them lies: 0 on the earlier, 1 on the later.
    """

    size: Float[np.ndarray, " dof"]
    left: Float[np.ndarray, " dof"]
    slopes: Float[np.ndarray, "2 dof"]
    share: Float[np.ndarray, " dof"]


def step_in(window: Float[np.ndarray, "width dof"]) -> Step:
    """Fit both lines to one window."""
    sides = window[:SIDE], window[-SIDE:]
    lines = np.stack([_BEFORE @ sides[0], _AFTER @ sides[1]])
    fits = [
        np.stack([np.ones(SIDE), t], axis=1) @ x
        for t, x in zip((_TIMES[:SIDE], _TIMES[-SIDE:]), lines, strict=True)
    ]
    rest = np.concatenate(sides) - np.concatenate(fits)
    size = lines[1, 0] - lines[0, 0]
    safe = np.where(size == 0.0, 1.0, size)
    return Step(
        size=size,
        left=np.sqrt(np.sum(rest**2, axis=0) / (2 * SIDE - 4)),
        slopes=lines[:, 1],
        share=np.clip((window[SIDE] - lines[0, 0]) / safe, 0.0, 1.0),
    )


def moved_by(
    acceleration: Float[np.ndarray, "width dof"], period: float
) -> Float[np.ndarray, " dof"]:
    """Distance of the lines that accelerations during a window account for."""
    return np.asarray(_DOUBLE_INTEGRAL @ acceleration * period**2)


# One search for steps in a stream, or in means over some of its samples.

_SURPRISE = 30.0
"""Acceleration in [rad/s²] that may set in without warning: a push, a stop."""

_MARGIN = 4.0
"""Steps count if so many times larger than those of ordinary motion."""

_USUAL = 0.9
"""Share of the seconds of learning whose largest step counts as ordinary."""


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


class StepSearch:
    """Searches means over some samples.

    Args:
        model: The arm: its torques account for some of its motion.
        period: Time between two samples in [s].
        thin: Number of samples in a mean.
        rest: What lines may leave of samples, as a share of the step between them.
        fastest: Largest speed of each joint in [rad/s] or [m/s].

    Attributes:
        threshold: Steps in [rad] or [m] that are looked at.
    """

    def __init__(
        self,
        model: Dynamics,
        period: float,
        thin: int,
        rest: float,
        fastest: np.ndarray,
    ) -> None:
        self._rest = rest
        self._model, self._thin, self._period = model, thin, thin * period
        self._floor = _SURPRISE * BLUR * self._period**2
        # Until it has learned: what a joint at its fastest cannot do in between.
        self.threshold = np.maximum(2.0 * fastest * self._period, self._floor)
        self._is_learning = True
        self._largest: dict[int, np.ndarray] = {}
        self._squares, self._count = np.zeros(fastest.size), 0
        self._deaf = np.zeros(fastest.size)
        self.restart()

    def restart(self) -> None:
        """Forget the last samples: the stream was interrupted."""
        width = 2 + 2 * self.threshold.size
        self._open, self._carry = np.empty((0, width)), np.empty((0, width))
        self._deaf[:] = -np.inf

    @property
    def usual(self) -> Float[np.ndarray, " dof"]:
        """Root mean square of steps in ordinary motion in [rad] or [m]."""
        return np.sqrt(self._squares / max(self._count, 1))

    def settle(self) -> None:
        """Take the steps seen so far as ordinary."""
        self._is_learning = False
        if self._largest:
            usual = np.quantile(list(self._largest.values()), _USUAL, axis=0)
            self.threshold = np.maximum(_MARGIN * usual, self._floor)

    def feed(self, rows: Float[np.ndarray, "samples width"]) -> list[Jump]:
        """Take rows of time, held, q, τ in; return the jumps they complete."""
        self._open = np.concatenate([self._open, rows])
        whole = len(self._open) // self._thin * self._thin
        means = self._open[:whole].reshape(-1, self._thin, rows.shape[1]).mean(axis=1)
        self._open = self._open[whole:]
        rows = np.concatenate([self._carry, means])
        # A step is judged once all that could outdo it has been seen.
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
        found = []
        for first, j in zip(*np.nonzero(far), strict=True) if far.any() else ():
            if times[first] <= self._deaf[j]:
                continue
            self._deaf[j] = times[first + 2 * SIDE]
            best = first + int(size[first : first + 2 * SIDE + 1, j].argmax())
            now = rows[first + WIDTH - 1 + 2 * SIDE, 0]
            found += self._judged(int(j), rows[best : best + WIDTH], now)
        return found

    def _learn(self, times: np.ndarray, size: np.ndarray, middle: np.ndarray) -> None:
        seconds, first = np.unique(np.floor(times).astype(int), return_index=True)
        tops = np.maximum.reduceat(size, first, axis=0)
        for second, top in zip(seconds.tolist(), tops, strict=True):
            self._largest[second] = np.maximum(self._largest.get(second, 0.0), top)
        self._squares += np.sum(middle**2, axis=0)
        self._count += len(times)

    def _judged(self, j: int, window: np.ndarray, now: float) -> list[Jump]:
        """Return the jump of a joint if nothing else explains what it did."""
        dof = self.threshold.size
        q, tau = window[:, 2 : 2 + dof], window[:, 2 + dof :]
        step = step_in(q)
        noise = 3.0 * self.usual[j] / NOISE_GAIN
        if step.left[j] > self._rest * abs(step.size[j]) + noise:
            return []
        driven = float(self._driven(q, tau, step)[j])
        size, late = float(step.size[j]) - driven, window[:, 1].max() / self._period
        allowed = self.threshold[j] + 1.5 * late * np.abs(step.slopes[:, j]).max()
        if abs(size) < allowed or self._is_slip(j, step):
            return []
        onset = float(window[SIDE, 0] + (0.5 - step.share[j]) * self._period)
        errors = [self.usual[j], 3.0 * step.left[j], 0.5 * driven]
        return [Jump(j, onset, float(now), size, float(np.linalg.norm(errors)))]

    def _driven(self, q: np.ndarray, tau: np.ndarray, step: Step) -> np.ndarray:
        """What the torques account for."""
        sides = np.repeat(step.slopes / self._period, [SIDE, SIDE + 1], axis=0)
        acceleration = self._model.forward_dynamics(q, sides, tau)
        return moved_by(acceleration, self._period)

    def _is_slip(self, j: int, step: Step) -> bool:
        """Whether time itself has stepped: all moving joints, in step with speed."""
        speed = step.slopes.mean(axis=0)
        slip = float(step.size @ speed / max(speed @ speed, 1e-300))
        others = np.abs(step.size) > self.threshold
        others[j] = False
        fits = np.abs(step.size - slip * speed) < self.threshold
        return bool(others.any() and fits.all())


# Jumps of readings: found in milliseconds, on every joint, whatever its load.

_LONGEST = 0.1
"""Time in [s] within which a step must have happened, lines and all."""

_CLEAN, _BLURRED = 0.05, 0.12
"""What lines may leave of samples, as a share of the step between them: where coarser
means will have another look, and where none will."""

_APART = 0.2
"""Time in [s] within which two steps of a joint are the same one."""


class Jumps:
    """Looks for jumps in a stream.

    Args:
        model: The arm: its torques account for some of its motion.
        period: Time between two samples in [s].
        fastest: Largest speed of each joint in [rad/s] or [m/s].
    """

    def __init__(
        self, model: Dynamics, period: float, fastest: Float[np.ndarray, " dof"]
    ) -> None:
        thins = [r for r in (1, 2, 4, 8) if r == 1 or WIDTH * r * period <= _LONGEST]
        rests = [*[_CLEAN] * (len(thins) - 1), _BLURRED]
        self._scales = [
            StepSearch(model, period, thin, rest, fastest)
            for thin, rest in zip(thins, rests, strict=True)
        ]
        self._seen: list[Jump] = []

    @property
    def smallest(self) -> Float[np.ndarray, " dof"]:
        """Smallest clean jump that is found in [rad] or [m]."""
        return self._scales[0].threshold

    @property
    def resolution(self) -> Float[np.ndarray, " dof"]:
        """By how much noise alone moves readings at most in [rad] or [m]."""
        return 8.0 * self._scales[0].usual / NOISE_GAIN

    def restart(self) -> None:
        """Forget the last samples: the stream was interrupted."""
        for scale in self._scales:
            scale.restart()

    def settle(self) -> None:
        """Take the steps seen so far as ordinary."""
        for scale in self._scales:
            scale.settle()

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
        self._seen = [x for x in self._seen if x.onset > time[0] - 1.0]
        found: list[Jump] = []
        for scale in self._scales:
            for jump in scale.feed(rows):
                if not any(_is_same(jump, other) for other in self._seen):
                    found.append(jump)
                    self._seen.append(jump)
        return sorted(found, key=lambda jump: jump.time)


def _is_same(one: Jump, other: Jump) -> bool:
    return one.joint == other.joint and abs(one.onset - other.onset) < _APART
