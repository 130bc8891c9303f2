"""Jumps of readings: found in milliseconds, on every joint, whatever its load.

The stream, and means over two, four, eight of its samples, are searched for steps: the
first finds clean jumps, the others those that a filter in the sensor has smeared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.calibration.steps import (
    BLUR,
    NOISE_GAIN,
    SIDE,
    WIDTH,
    Step,
    distances,
    moved_by,
    step_in,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.dynamics import Dynamics

_LONGEST = 0.1
"""Time in [s] within which a step must have happened, lines and all."""

_SURPRISE = 30.0
"""Acceleration in [rad/s²] that may set in without warning: a push, a stop."""

_MARGIN = 4.0
"""Steps count if so many times larger than those of ordinary motion."""

_USUAL = 0.9
"""Share of the seconds of learning whose largest step counts as ordinary."""

_CLEAN = 0.1
"""What lines may leave of the samples, as a share of the step between them."""

_APART = 0.2
"""Time in [s] within which two steps of a joint are the same one."""


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
        self._scales = [_Scale(model, period, r, fastest) for r in thins]
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
            held: Time in [s] that each sample tells nothing of.
        """
        rows = np.concatenate([time[:, None], held[:, None], q, tau], axis=1)
        found: list[Jump] = []
        for scale in self._scales:
            for jump in scale.feed(rows):
                if not any(_is_same(jump, other) for other in self._seen):
                    found.append(jump)
                    self._seen.append(jump)
        return sorted(found, key=lambda jump: jump.time)


def _is_same(one: Jump, other: Jump) -> bool:
    return one.joint == other.joint and abs(one.onset - other.onset) < _APART


class _Scale:
    """Searches means over `thin` samples; each row is time, held, q, τ."""

    def __init__(
        self, model: Dynamics, period: float, thin: int, fastest: np.ndarray
    ) -> None:
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
        width = 2 + 2 * self.threshold.size
        self._open, self._carry = np.empty((0, width)), np.empty((0, width))
        self._deaf[:] = -np.inf

    @property
    def usual(self) -> np.ndarray:
        return np.sqrt(self._squares / max(self._count, 1))

    def settle(self) -> None:
        self._is_learning = False
        if self._largest:
            usual = np.quantile(list(self._largest.values()), _USUAL, axis=0)
            self.threshold = np.maximum(_MARGIN * usual, self._floor)

    def feed(self, rows: np.ndarray) -> list[Jump]:
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
            self._learn(times[:ready], np.where(far, 0.0, size[:ready]), middle[:ready])
        found = []
        for first, j in zip(*np.nonzero(far), strict=True) if far.any() else ():
            if times[first] <= self._deaf[j]:
                continue
            self._deaf[j] = times[first + 2 * SIDE]
            best = first + int(size[first : first + 2 * SIDE + 1, j].argmax())
            window = rows[best : best + WIDTH]
            if self._is_jump(int(j), window):
                now = rows[first + WIDTH - 1 + 2 * SIDE, 0]
                found.append(self._jump(int(j), window, now))
        return found

    def _learn(self, times: np.ndarray, size: np.ndarray, middle: np.ndarray) -> None:
        seconds, first = np.unique(np.floor(times).astype(int), return_index=True)
        tops = np.maximum.reduceat(size, first, axis=0)
        for second, top in zip(seconds.tolist(), tops, strict=True):
            self._largest[second] = np.maximum(self._largest.get(second, 0.0), top)
        self._squares += np.sum(middle**2, axis=0)
        self._count += len(times)

    def _is_jump(self, j: int, window: np.ndarray) -> bool:
        """Whether nothing but a jump explains this."""
        dof = self.threshold.size
        q, tau = window[:, 2 : 2 + dof], window[:, 2 + dof :]
        step = step_in(q)
        if step.left[j] > _CLEAN * abs(step.size[j]):
            return False
        late = self._thin * window[:, 1].sum() * np.abs(step.slopes[:, j]).max()
        allowed = self.threshold[j] + 1.5 * late / self._period
        driven = abs(step.size[j] - self._driven(q, tau, step)[j])
        return bool(driven > allowed and not self._is_slip(j, step))

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

    def _jump(self, j: int, window: np.ndarray, now: float) -> Jump:
        dof = self.threshold.size
        q, tau = window[:, 2 : 2 + dof], window[:, 2 + dof :]
        step = step_in(q)
        driven = float(self._driven(q, tau, step)[j])
        std = np.sqrt(
            self.usual[j] ** 2 + (3.0 * step.left[j]) ** 2 + (0.5 * driven) ** 2
        )
        onset = window[SIDE, 0] + (0.5 - step.share[j]) * self._period
        return Jump(
            j, float(onset), float(now), float(step.size[j]) - driven, float(std)
        )
