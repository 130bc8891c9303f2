"""Drift: gains and offsets that no longer fit the weight of the arm's links.

What jumps miss, this finds: what creeps, and what moved while nothing was recorded. It
takes seconds to minutes, and only joints that gravity turns can be judged; which, and
how finely, is known as soon as ordinary motion has been seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.dynamics import Dynamics
from armwise.monitoring.change_detection import Shift, Shifts, Usual
from armwise.monitoring.gravity_residuals import Scales, Weighed
from armwise.monitoring.stream import Filtered, joined

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.calibration import Calibration, Structure
    from armwise.monitoring.jumps import Jump


# Gains, offsets and parameters followed through time, with their uncertainty.

_BELIEVED = {"gain": 0.02, "offset": np.deg2rad(2.0), "parameter": 0.1}
"""How far values may have moved since the calibration: the pull back to it."""

_REPEATED = 8.0
"""Filtered torques repeat themselves: so many readings count as one."""


class Tracked(NamedTuple):
    """Values as they seem to be now.

    Attributes:
        alpha, beta: Gains and offsets.
        alpha_std, beta_std: Their standard deviations.
        parameters: Base parameters, in the order of the structure's base.
        parameters_std: Their standard deviations.
        load: Mass in the hand in [kg] beyond the usual.
    """

    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    alpha_std: Float[np.ndarray, " dof"]
    beta_std: Float[np.ndarray, " dof"]
    parameters: Float[np.ndarray, " base"]
    parameters_std: Float[np.ndarray, " base"]
    load: float


class Tracker:
    """Least squares with forgetting around a calibration, and what has moved since.

    Args:
        structure: What is known of the arm.
        calibration: Where everything was.
        forgetting: Share of the information that is forgotten each epoch.

    Attributes:
        alpha, beta: Gains and offsets around which it looks.
    """

    def __init__(
        self, structure: Structure, calibration: Calibration, forgetting: float
    ) -> None:
        self.alpha, self.beta = calibration.alpha.copy(), calibration.beta.copy()
        self._jumped = np.zeros(self.beta.size)
        self._sensors = len(structure.unknowns)
        self._keep = 1.0 - forgetting
        values = structure.base.values(
            np.where(structure.is_free, calibration.parameters, 0.0)
        )
        kinds = [name.rsplit(".", 1)[1] for name in structure.unknowns]
        usual = np.maximum(np.abs(values), 0.01 * np.abs(values).max(initial=1e-9))
        scale = [*(_BELIEVED[k] for k in kinds), *(_BELIEVED["parameter"] * usual)]
        self._prior = np.diag(1.0 / np.square(scale))
        self.restart(values)

    def restart(self, values: Float[np.ndarray, " base"]) -> None:
        """Forget everything but where to begin from."""
        self._values, self._load = values, 0.0
        self._gram = np.zeros((len(self._prior) + 1, len(self._prior) + 1))
        self._count = 1e-9

    def add(self, weighed: Weighed) -> None:
        """Take an epoch in; what was known before fades a little."""
        self._gram = self._keep * self._gram + weighed.gram
        self._count = self._keep * self._count + float(weighed.heard.sum())
        self._load = weighed.load

    def fit(self, weighed: Sequence[Weighed]) -> Float[np.ndarray, " base"]:
        """Begin from parameters that explain epochs, the sensors as they are.

        Returns:
            By how much they differ from those before.
        """
        self._gram = np.sum([x.gram for x in weighed], axis=0)
        self._count = float(sum(x.heard.sum() for x in weighed)) + 1e-9
        first = self._sensors
        precision = self._gram[first:-1, first:-1] / self._noise
        pull = self._gram[first:-1, -1] / self._noise
        step = np.linalg.solve(precision + self._prior[first:, first:], pull)
        self.restart(self._values + step)
        return np.asarray(step)

    def jump(self, joint: int, size: float, std: float) -> None:
        """A reading is too large by so much from now on."""
        self.beta[joint] -= size
        self._jumped[joint] = np.hypot(self._jumped[joint], std)

    def shift(self, unknown: int, size: float) -> None:
        """A gain, relative to itself, or an offset is another one from now on."""
        joint = unknown - (self._sensors - self.beta.size)
        if joint >= 0:
            self.beta[joint] += size
        else:
            self.alpha[unknown] *= 1.0 + size
        self.restart(self._values)

    @property
    def _noise(self) -> float:
        return float(_REPEATED * max(self._gram[-1, -1] / self._count, 1e-12))

    def now(self) -> Tracked:
        """Solve for what has changed since the calibration."""
        inverse = np.linalg.inv(self._gram[:-1, :-1] / self._noise + self._prior)
        moved = inverse @ (self._gram[:-1, -1] / self._noise)
        std = np.sqrt(np.diag(inverse))
        n, sensors = self.beta.size, self._sensors
        change = np.zeros((2, n))
        if sensors > n:
            change = np.array([moved[: sensors - n], std[: sensors - n]])
        return Tracked(
            alpha=self.alpha * (1.0 + change[0]),
            beta=self.beta + moved[sensors - n : sensors],
            alpha_std=np.abs(self.alpha) * change[1],
            beta_std=np.hypot(std[sensors - n : sensors], self._jumped),
            parameters=self._values + moved[sensors:],
            parameters_std=std[sensors:],
            load=self._load,
        )


# Drift: gains and offsets that no longer fit the weight of the arm's links.

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
