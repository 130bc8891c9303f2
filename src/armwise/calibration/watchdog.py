"""Watch sensors while the arm works: has a gain or an offset moved, and when?

Every half second the torques' residuals are asked how far each gain and each offset
would have to move to explain them. Sums over the last epochs, from every possible
onset, are compared with what an undisturbed arm shows (generalised likelihood ratio).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.calibration.calibration import Calibration
from armwise.calibration.failures import Failures
from armwise.calibration.projection import Point, Projector
from armwise.calibration.streaming import CausalDerivatives
from armwise.calibration.structure import Structure, as_structure
from armwise.calibration.tracking import Tracked, Tracker
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.arms import Arm

_EPOCHS = 24
"""Epochs among which an onset is looked for."""


class Alarm(NamedTuple):
    """Something happened to a sensor.

    Attributes:
        kind: `drift` (gain or offset moved) or `failure`.
        unknown: Which one, such as `joint_2.offset`.
        onset: When it began in [s].
        time: When it was noticed in [s].
        change: By how much in [rad], or relative for gains; NaN for failures.
        evidence: Log-likelihood ratio over that of undisturbed motion.
        message: In words.
    """

    kind: str
    unknown: str
    onset: float
    time: float
    change: float
    evidence: float
    message: str


class Watchdog:
    """Watches an arm's sensors during ordinary motion, at a constant cost a sample.

    Args:
        structure: The arm, and what is known of it.
        calibration: Gains, offsets and parameters as they should be.
        period: Time between two samples in [s].
        bandwidth_hz: Of the filter all signals pass.
        epoch: Length of an epoch in [s].
        learning: How long to learn what undisturbed motion looks like in [s].
        threshold: Evidence that raises an alarm; more if learning showed more.
        largest_speed: Speed in [rad/s] no joint has; three times its limit if None.
        memory: Time constant of the tracked values in [s].

    Attributes:
        alarms: All alarms so far.
        evidence: Largest evidence so far, as a share of the threshold.
        threshold: Evidence that raises an alarm, per unknown.
    """

    def __init__(
        self,
        structure: Structure | Arm,
        calibration: Calibration,
        period: float,
        *,
        bandwidth_hz: float = 8.0,
        epoch: float = 0.5,
        learning: float = 150.0,
        threshold: float = 80.0,
        largest_speed: ArrayLike | None = None,
        memory: float = 60.0,
    ) -> None:
        if not (period > 0 and epoch > 4 * period and learning >= 10 * epoch):
            raise ArgumentError(
                "A watchdog needs a positive period, an epoch of several periods and "
                "at least ten epochs to learn."
            )
        self.structure = as_structure(structure)
        self.epoch, self.learning = epoch, learning
        arm = self.structure.arm
        self._point = Point(calibration.alpha, calibration.beta)
        self._model = Dynamics(arm.with_parameters(calibration.parameters))
        self._signals = CausalDerivatives(period, bandwidth_hz, arm.dof)
        self._std = np.maximum(calibration.torque_std, 1e-9)
        self._failures = Failures(
            arm, self._point, largest_speed, period, arm.coordinate_names
        )
        self._tracker = Tracker(self.structure, calibration, epoch / memory)
        self._names = self.structure.unknowns
        self.threshold = np.full(len(self._names), float(threshold))
        self._open: list[np.ndarray] = []
        self._epoch_index: int | None = None
        self._learned: list[Samples] = []
        self._recent: deque[tuple[float, np.ndarray, np.ndarray]] = deque(
            maxlen=_EPOCHS
        )
        self._bias = self._spread = np.zeros(len(self._names))
        self._begin: float | None = None
        self._largest = np.full(arm.dof, np.inf)
        self._blow = -np.inf
        self.alarms: list[Alarm] = []
        self.evidence = 0.0

    @property
    def is_learning(self) -> bool:
        """Whether it still learns what undisturbed motion looks like."""
        return not self._spread.any()

    @property
    def tracked(self) -> Tracked:
        """Gains, offsets and parameters as they seem to be now, with uncertainty."""
        return self._tracker.now()

    def update(
        self, time: ArrayLike, readings: ArrayLike, torque: ArrayLike
    ) -> tuple[Alarm, ...]:
        """Take one sample, or a block of them; return the alarms it raised.

        Args:
            time: In [s], one number or one per sample.
            readings: Of the sensors, (dof,) or (samples, dof).
            torque: In [N m] or [N], shaped alike.
        """
        t = np.atleast_1d(np.asarray(time, dtype=float))
        s, tau = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (readings, torque))
        if s.shape != tau.shape or s.shape != (t.size, self.structure.arm.dof):
            raise ArgumentError(
                f"A watchdog of {self.structure.arm.dof} joints was given readings of "
                f"shape {s.shape}, torques {tau.shape} and {t.size} times."
            )
        before = len(self.alarms)
        self.alarms += [Alarm(*x) for x in self._failures.check(t, s, tau)]
        if not (np.isfinite(s).all() and np.isfinite(tau).all()):
            return tuple(self.alarms[before:])
        data = self._signals.feed(t, s, tau)
        if len(data):
            self._sort(data)
        return tuple(self.alarms[before:])

    def reset(self) -> None:
        """Go on after an alarm, with what was learned, forgetting what came since."""
        self._recent.clear()
        self.alarms.clear()

    def _sort(self, data: Samples) -> None:
        """Put samples into their epochs; close those that are over."""
        if self.is_learning:
            self._begin = data.time[0] if self._begin is None else self._begin
            end = self._begin + self.learning
            self._learned.append(data[: int(np.searchsorted(data.time, end))])
            if data.time[-1] < end:
                return
            self._learn()
            data = data[int(np.searchsorted(data.time, end)) :]
        rows = self._rows(data)
        index = np.floor(data.time / self.epoch).astype(int)
        for number in np.unique(index):
            if self._epoch_index is not None and number != self._epoch_index:
                self._close()
            self._epoch_index = int(number)
            self._open.append(rows[index == number])

    def _rows(self, data: Samples) -> np.ndarray:
        """Per sample: time, then the pull on and the information of each unknown."""
        return np.concatenate([data.time[:, None], *self._scores(data)], axis=1)

    def _scores(self, data: Samples) -> tuple[np.ndarray, np.ndarray]:
        """Per sample and unknown: the pull Jᵀr, and the information JᵀJ."""
        projector = Projector(self.structure, data, self._std)
        point, everything = self._point, slice(0, len(data))
        q, qd = data.q * point.alpha + point.beta, data.qd * point.alpha
        model = self._model.inverse_dynamics(q, qd, data.qdd * point.alpha)
        r = (data.tau - model) / self._std
        links = 10 * len(self.structure.arm.links)
        dry = (
            self.structure.drive_weights.T @ self._model.arm.parameters[links + 2 :: 4]
        )
        # At rest dry friction may be anything: such torques say nothing.
        r[(np.abs(qd) < _SLOW) & (np.abs(dry) > 0.0)] = 0.0
        r = np.clip(r, -_FARTHEST, _FARTHEST)
        # A jump of the reading itself looks like a blow: only what stays is weighed.
        wild = np.any(np.abs(data.qdd * point.alpha) > self._largest, axis=1)
        last = np.maximum.accumulate(np.where(wild, data.time, self._blow))
        self._blow = float(last[-1])
        r[data.time - last < 2.0 * self._signals.settling] = 0.0
        J = projector.slopes(self._model, point, everything)
        J = np.where((r == 0.0)[:, :, None], 0.0, J)
        self._tracker.add(data, J, r, self._std, point)
        return np.einsum("nix,ni->nx", J, r), np.einsum("nix,nix->nx", J, J)

    def _close(self) -> None:
        """Judge the epoch that has just ended."""
        rows = np.concatenate(self._open)
        self._open = []
        count = len(self._names)
        score, information = rows[:, 1 : count + 1].sum(0), rows[:, count + 1 :].sum(0)
        begin, end = float(rows[0, 0]), float(rows[-1, 0])
        self._tracker.close()
        self._recent.append((begin, score - self._bias * information, information))
        if not any(alarm.kind == "drift" for alarm in self.alarms):
            self._test(end)

    def _learn(self) -> None:
        """Fit the parameters to undisturbed motion; take what is left as noise.

        The apparent shift of each unknown counts as zero from now on, its spread from
        epoch to epoch as noise.
        """
        data = Samples.concatenate(self._learned)
        self._learned = []
        self._fit(data)
        self._largest = 1.5 * np.abs(data.qdd * self._point.alpha).max(axis=0)
        rows = self._rows(data)
        _, first = np.unique(np.floor(data.time / self.epoch), return_index=True)
        sums = np.add.reduceat(rows[:, 1:], first, axis=0)
        scores, information = np.split(sums, 2, axis=1)
        total = np.maximum(information.sum(axis=0), 1e-12)
        self._bias = scores.sum(axis=0) / total
        left = scores - self._bias * information
        self._spread = np.maximum(np.sum(left**2, axis=0) / total, 1e-12)
        seen = [
            _ratios(left[: k + 1], information[: k + 1], self._spread).max(axis=0)
            for k in range(len(left))
        ]
        self.threshold = np.maximum(self.threshold, 3.0 * np.max(seen, axis=0))

    def _fit(self, data: Samples) -> None:
        """Move the parameters to what this motion shows, the sensors as they are."""
        self._scores(data)
        arm, base = self.structure.arm, self.structure.base
        values = self._tracker.parameters_alone()
        full = self._model.arm.parameters + np.linalg.pinv(base.matrix) @ (
            values - base.values(self._model.arm.parameters)
        )
        self._model = Dynamics(arm.with_parameters(full))
        self._tracker.restart(values)

    def _test(self, now: float) -> None:
        begins, scores, information = zip(*self._recent, strict=True)
        ratios = _ratios(np.array(scores), np.array(information), self._spread)
        self.evidence = max(self.evidence, float(np.max(ratios / self.threshold)))
        if np.all(ratios < self.threshold):
            return
        sums = np.cumsum(np.array(scores)[::-1], axis=0)[::-1]
        totals = np.maximum(np.cumsum(np.array(information)[::-1], axis=0)[::-1], 1e-12)
        likely = np.abs(sums / totals) <= _PLAUSIBLE
        gained = np.where(likely, sums**2 / totals, 0.0)
        k, h = np.unravel_index(int(gained.argmax()), gained.shape)
        if ratios[k, h] < self.threshold[h] or now - begins[k] < _PATIENCE:
            return  # what moved shows only after some motion
        change, name = float(sums[k, h] / totals[k, h]), self._names[h]
        unit = f"{np.rad2deg(change):+.2f}°" if h >= len(self._names) - len(
            self._point.beta
        ) else f"{change:+.2%}"  # fmt: skip
        message = f"{name} moved by {unit} at t = {begins[k]:.1f} s"
        self.alarms.append(
            Alarm("drift", name, begins[k], now, change, float(ratios.max()), message)
        )


_PATIENCE = 2.0
"""Time in [s] after an onset before it is said which unknown moved."""

_PLAUSIBLE = 0.35
"""Largest change in [rad], or of a gain relative to itself, that counts as drift."""

_SLOW = 0.1
"""Speed in [rad/s] below which the direction of dry friction is in doubt."""

_FARTHEST = 50.0
"""Residuals beyond so many standard deviations count no more than this."""


def _ratios(
    scores: Float[np.ndarray, "epochs unknowns"],
    information: Float[np.ndarray, "epochs unknowns"],
    spread: Float[np.ndarray, " unknowns"],
) -> Float[np.ndarray, "epochs unknowns"]:
    """Evidence for a change at the beginning of each of the last epochs."""
    sums = np.cumsum(scores[-_EPOCHS:][::-1], axis=0)[::-1]
    totals = np.cumsum(information[-_EPOCHS:][::-1], axis=0)[::-1]
    return np.asarray(sums**2 / (spread * np.maximum(totals, 1e-12)))
