"""One search for steps in a stream, or in means over some of its samples."""

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
