"""Drift: gains and offsets that no longer fit the weight of the arm's links.

What jumps miss, this finds: what creeps, and what moved while nothing was recorded. It
takes seconds to minutes, and only joints that gravity turns can be judged; which, and
how finely, is known as soon as ordinary motion has been seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.calibration.shifts import Shift, Shifts, Usual
from armwise.calibration.streaming import Filtered, joined
from armwise.calibration.tracking import Tracker
from armwise.calibration.weighing import Scales, Weighed
from armwise.dynamics import Dynamics

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.calibration.calibration import Calibration
    from armwise.calibration.step_search import Jump
    from armwise.calibration.structure import Structure

EPOCH = 1.0
"""Time in [s] whose torques are weighed together."""

_SPAN = 60
"""Epochs among which an onset is looked for."""

_THRESHOLD = 100.0
"""Evidence, in squared standard deviations of undisturbed motion, that tells drift."""

_MEMORY = 60.0
"""Time constant in [s] of the tracked values."""

_SLOW = 0.1
"""Speed in [rad/s] or [m/s] that some joint must reach in an epoch to learn from."""

_LEAST = 10
"""Samples without which an epoch says nothing."""


class Drifted(NamedTuple):
    """A shift, and when it was noticed in [s]."""

    shift: Shift
    time: float


class Drift:
    """Weighs samples against gravity.

    Args:
        structure: The arm, and what is known of it.
        calibration: Gains, offsets and parameters as they should be.
        scales: Weigh stretches of motion.
        learning: How long to learn what undisturbed motion looks like in [s].
        settling: Time in [s] the samples' filter needs to forget a jump.

    Attributes:
        tracker: Follows gains, offsets and parameters.
        usual: What undisturbed motion shows, once it is known.
    """

    def __init__(
        self,
        structure: Structure,
        calibration: Calibration,
        scales: Scales,
        learning: float,
        settling: float,
    ) -> None:
        self._structure, self._settling = structure, settling
        self._model = Dynamics(structure.arm.with_parameters(calibration.parameters))
        self._scales, self._learning = scales, learning
        self._std = np.maximum(calibration.torque_std, 1e-9)
        self._given = calibration
        self.tracker = Tracker(structure, calibration, EPOCH / _MEMORY)
        self._open: list[Filtered] = []
        self._number: int | None = None
        self._deaf = -np.inf
        self._learned: list[Filtered] = []
        self._shifts: Shifts | None = None
        self.usual: Usual | None = None

    @property
    def evidence(self) -> float:
        """Largest evidence at present, as a share of what raises an alarm."""
        if self._shifts is None:
            return 0.0
        return float(self._shifts.evidence.max() / _THRESHOLD)

    def smallest(self, seconds: float) -> Float[np.ndarray, " unknowns"]:
        """Smallest shift found in so many seconds of ordinary motion."""
        if self.usual is None:
            return np.full(self._count, np.inf)
        return self.usual.smallest(min(int(seconds / EPOCH), _SPAN), _THRESHOLD)

    def correct(self, jump: Jump) -> None:
        """From now on allow for a jump of a reading."""
        self.tracker.jump(jump.joint, jump.size, jump.std)
        self._deaf = jump.onset + self._settling
        self._open = [x.rows(x.time < jump.onset) for x in self._open]

    def take(self, data: Filtered) -> list[Drifted]:
        """Take samples in; return the shifts they complete."""
        first = int(np.searchsorted(data.time, self._deaf, side="right"))
        data = data.rows(slice(first, None))
        found: list[Drifted] = []
        for number, part in _by_epoch(data):
            if number != self._number:
                found += self._close()
            self._number = number
            self._open.append(self._corrected(part))
        return found

    def _corrected(self, data: Filtered) -> Filtered:
        """Positions as they are with what has been found out since the calibration."""
        stretch = self.tracker.alpha / self._given.alpha
        q = self.tracker.beta + stretch * (data.q - self._given.beta)
        return Filtered(data.time, q, stretch * data.qd, stretch * data.qdd, data.tau)

    def _close(self) -> list[Drifted]:
        """Judge the epoch that has just ended, or learn from it."""
        parts, self._open = [x for x in self._open if x.time.size], []
        if sum(x.time.size for x in parts) < _LEAST:
            return []
        epoch = joined(parts)
        if self._shifts is None:
            self._learn(epoch)
            return []
        (weighed,) = self._weigh([epoch])
        self.tracker.add(weighed)
        shift = self._shifts.add(float(epoch.time[0]), *_pull(weighed, self._count))
        if shift is None:
            return []
        self._shifts.restart()
        self.tracker.shift(shift.unknown, shift.size)
        return [Drifted(shift, float(epoch.time[-1]))]

    def _learn(self, epoch: Filtered) -> None:
        """Keep epochs in which the arm moves until there are enough of them."""
        if np.abs(epoch.qd).max() > _SLOW:
            self._learned.append(epoch)
        if len(self._learned) * EPOCH >= self._learning:
            epochs, self._learned = self._learned, []
            self._settle(epochs)

    @property
    def _count(self) -> int:
        return len(self._structure.unknowns)

    def _settle(self, epochs: list[Filtered]) -> None:
        """Fit the parameters to what was seen; take what is left for granted."""
        for _ in range(2):  # errors tell the weights, weights the parameters
            weighed = self._weigh(epochs)
            self._fit(weighed)
        weighed = self._weigh(epochs)
        pulls, information = map(
            np.array, zip(*(_pull(x, self._count) for x in weighed), strict=True)
        )
        self.usual = Usual.of(pulls, information)
        self._shifts = Shifts(self.usual, _THRESHOLD, _SPAN)

    def _weigh(self, epochs: list[Filtered]) -> list[Weighed]:
        return [
            self._scales.weigh(self._model, self._std, part, self.tracker.beta)
            for part in epochs
        ]

    def _fit(self, weighed: list[Weighed]) -> None:
        """Move parameters and expected errors to what this motion shows."""
        step = np.linalg.pinv(self._structure.base.matrix) @ self.tracker.fit(weighed)
        arm = self._model.arm
        self._model = Dynamics(arm.with_parameters(arm.parameters + step))
        left, count = (sum(getattr(x, n) for x in weighed) for n in ("left", "heard"))
        error = np.sqrt(left / np.maximum(count, 1.0))
        self._std = self._std * np.where(count > 0, np.maximum(error, 1e-6), 1.0)


def _pull(weighed: Weighed, count: int) -> tuple[np.ndarray, np.ndarray]:
    return weighed.gram[:count, -1], np.diag(weighed.gram)[:count]


def _by_epoch(data: Filtered) -> Iterator[tuple[int, Filtered]]:
    numbers = np.floor(data.time / EPOCH).astype(int)
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), data.time.size]
    for a, b in pairwise(cuts):
        if b > a:
            yield int(numbers[a]), data.rows(slice(a, b))
