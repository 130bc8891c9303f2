"""Drift: gains and offsets that no longer fit the weight of the arm's links.

What jumps miss, this finds: what creeps, and what moved while nothing was recorded. It
takes seconds to minutes, and only joints that gravity turns can be judged; which, and
how finely, is known as soon as ordinary motion has been learnt.

`DriftDetector` cuts the stream into epochs, `gravity_residuals` turns each into normal
equations, `ShiftTest` tests them for a shift, and `Tracker` follows the values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.dynamics import Dynamics
from armwise.monitoring.gravity_residuals import EpochSums, GravityResiduals
from armwise.monitoring.settings import DEFAULT_SETTINGS, WatchdogSettings
from armwise.monitoring.stream import FilteredSamples, joined

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.calibration import Calibration, Structure
    from armwise.monitoring.faults import Jump


class DriftEvent(NamedTuple):
    """A shift, and when it was noticed in [s]."""

    shift: SensorShift
    time: float


class DriftDetector:
    """Compares samples with the weight of the links.

    Args:
        structure: The arm, and what is known of it.
        calibration: Gains, offsets and parameters as they should be.
        residuals: Torque residuals of epochs.
        learning: How long to learn what undisturbed motion looks like in [s].
        settling: Time in [s] the samples' filter needs to forget a jump.
        settings: Epochs, test and tracking.

    Attributes:
        tracker: Follows gains, offsets and parameters.
        baseline: Statistics of undisturbed motion, once they are known.
    """

    def __init__(
        self,
        structure: Structure,
        calibration: Calibration,
        residuals: GravityResiduals,
        learning: float,
        settling: float,
        settings: WatchdogSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._structure, self._settling = structure, settling
        self._model = Dynamics(structure.arm.with_parameters(calibration.parameters))
        self._residuals, self._learning, self._settings = residuals, learning, settings
        # Calibrations of noise-free simulations have errors of zero.
        self._std = np.maximum(calibration.torque_std, 1e-9)
        self._calibration = calibration
        self.tracker = Tracker(structure, calibration, settings)
        self._open: list[FilteredSamples] = []
        self._number: int | None = None
        self._masked_until = -np.inf
        self._epochs: list[FilteredSamples] = []
        self._test: ShiftTest | None = None
        self.baseline: Baseline | None = None

    @property
    def evidence(self) -> float:
        """Largest evidence at present, as a fraction of what raises an alarm."""
        if self._test is None:
            return 0.0
        return float(self._test.evidence.max() / self._settings.drift_threshold)

    def smallest(self, seconds: float) -> Float[np.ndarray, " unknowns"]:
        """Smallest shift found in so many seconds of ordinary motion."""
        if self.baseline is None:
            return np.full(self._count, np.inf)
        epochs = int(seconds / self._settings.epoch_time)
        epochs = min(epochs, self._settings.onset_epochs)
        return self.baseline.smallest(epochs, self._settings)

    def correct(self, jump: Jump) -> None:
        """From now on allow for a jump of a reading."""
        self.tracker.jump(jump.joint, jump.size, jump.std)
        # Until the filter has forgotten the jump its samples fit neither offset.
        self._masked_until = jump.onset + self._settling
        self._open = [x.rows(x.time < jump.onset) for x in self._open]

    def feed(self, data: FilteredSamples) -> list[DriftEvent]:
        """Take samples; return the shifts they complete."""
        first = int(np.searchsorted(data.time, self._masked_until, side="right"))
        data = data.rows(slice(first, None))
        events: list[DriftEvent] = []
        for number, part in self._by_epoch(data):
            if number != self._number:
                events += self._close()
            self._number = number
            self._open.append(self._corrected(part))
        return events

    def _corrected(self, data: FilteredSamples) -> FilteredSamples:
        """Positions by the gains and offsets tracked since the calibration."""
        stretch = self.tracker.alpha / self._calibration.alpha
        q = self.tracker.beta + stretch * (data.q - self._calibration.beta)
        return FilteredSamples(
            data.time, q, stretch * data.qd, stretch * data.qdd, data.tau
        )

    def _by_epoch(self, data: FilteredSamples) -> Iterator[tuple[int, FilteredSamples]]:
        # Epochs are counted by the clock, so that blocks of any length give the same.
        numbers = np.floor(data.time / self._settings.epoch_time).astype(int)
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), data.time.size]
        for a, b in pairwise(cuts):
            if b > a:
                yield int(numbers[a]), data.rows(slice(a, b))

    def _close(self) -> list[DriftEvent]:
        """Test the epoch that has just ended, or learn from it."""
        parts, self._open = [x for x in self._open if x.time.size], []
        if sum(x.time.size for x in parts) < self._settings.epoch_samples:
            return []
        epoch = joined(parts)
        if self._test is None:
            self._learn(epoch)
            return []
        (sums,) = self._sums([epoch])
        self.tracker.add(sums)
        shift = self._test.add(float(epoch.time[0]), *_pull(sums, self._count))
        if shift is None:
            return []
        self._test.restart()
        self.tracker.shift(shift.unknown, shift.size)
        return [DriftEvent(shift, float(epoch.time[-1]))]

    def _learn(self, epoch: FilteredSamples) -> None:
        """Collect epochs in which the arm moves until there are enough of them."""
        if np.abs(epoch.qd).max() > self._settings.slow_speed:
            self._epochs.append(epoch)
        if len(self._epochs) * self._settings.epoch_time >= self._learning:
            epochs, self._epochs = self._epochs, []
            self._end_learning(epochs)

    @property
    def _count(self) -> int:
        return len(self._structure.unknowns)

    def _end_learning(self, epochs: list[FilteredSamples]) -> None:
        """Fit the parameters to the learnt epochs; their residuals are the baseline."""
        # Weights depend on residuals, residuals on parameters: two rounds settle both.
        for _ in range(2):
            self._fit(self._sums(epochs))
        pulls, information = map(
            np.array,
            zip(*(_pull(x, self._count) for x in self._sums(epochs)), strict=True),
        )
        self.baseline = Baseline.from_epochs(pulls, information, self._settings)
        self._test = ShiftTest(self.baseline, self._settings)

    def _sums(self, epochs: list[FilteredSamples]) -> list[EpochSums]:
        return [
            self._residuals.epoch_sums(self._model, self._std, part, self.tracker.beta)
            for part in epochs
        ]

    def _fit(self, sums: list[EpochSums]) -> None:
        """Move parameters and expected errors to those of this motion."""
        step = np.linalg.pinv(self._structure.base.matrix) @ self.tracker.fit(sums)
        arm = self._model.arm
        self._model = Dynamics(arm.with_parameters(arm.parameters + step))
        squares = sum(x.residual_squares for x in sums)
        count = np.asarray(sum(x.rows for x in sums))
        error = np.sqrt(squares / np.maximum(count, 1.0))
        self._std = self._std * np.where(count > 0, np.maximum(error, 1e-6), 1.0)


def _pull(sums: EpochSums, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gradient Jᵀr and information diag(JᵀJ) of the sensors' unknowns."""
    return sums.gram[:count, -1], np.diag(sums.gram)[:count]


# Gains, offsets and parameters followed through time, with their uncertainty.


class TrackedValues(NamedTuple):
    """Values as estimated now.

    Attributes:
        alpha, beta: Gains and offsets.
        alpha_std, beta_std: Their standard deviations.
        parameters: Base parameters, in the order of the structure's base.
        parameters_std: Their standard deviations.
        load: Mass in the hand in [kg] beyond the ordinary.
    """

    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    alpha_std: Float[np.ndarray, " dof"]
    beta_std: Float[np.ndarray, " dof"]
    parameters: Float[np.ndarray, " base"]
    parameters_std: Float[np.ndarray, " base"]
    load: float


class Tracker:
    """Recursive least squares with forgetting around a calibration.

    Args:
        structure: What is known of the arm.
        calibration: Where everything was.
        settings: Forgetting, prior, correlation of filtered torques.

    Attributes:
        alpha, beta: Gains and offsets around which it linearises.
    """

    def __init__(
        self, structure: Structure, calibration: Calibration, settings: WatchdogSettings
    ) -> None:
        self.alpha, self.beta = calibration.alpha.copy(), calibration.beta.copy()
        self._jump_std = np.zeros(self.beta.size)
        self._sensors = len(structure.unknowns)
        self._keep = 1.0 - settings.epoch_time / settings.tracking_time
        self._repeated = settings.repeated_samples
        values = structure.base.values(
            np.where(structure.is_free, calibration.parameters, 0.0)
        )
        prior = {"gain": settings.gain_prior, "offset": settings.offset_prior}
        kinds = [name.rsplit(".", 1)[1] for name in structure.unknowns]
        # A parameter near zero may still move by a percent of the largest.
        size = np.maximum(np.abs(values), 0.01 * np.abs(values).max(initial=1e-9))
        scale = [*(prior[k] for k in kinds), *(settings.parameter_prior * size)]
        self._prior = np.diag(1.0 / np.square(scale))
        self.restart(values)

    def restart(self, values: Float[np.ndarray, " base"]) -> None:
        """Forget everything but where to begin from."""
        self._values, self._load = values, 0.0
        self._gram = np.zeros((len(self._prior) + 1, len(self._prior) + 1))
        self._count = 1e-9

    def add(self, sums: EpochSums) -> None:
        """Take an epoch; earlier ones lose some of their weight."""
        self._gram = self._keep * self._gram + sums.gram
        self._count = self._keep * self._count + float(sums.rows.sum())
        self._load = sums.load

    def fit(self, epochs: Sequence[EpochSums]) -> Float[np.ndarray, " base"]:
        """Begin from parameters that explain epochs, the sensors as they are.

        Returns:
            By how much they differ from those before.
        """
        self._gram = np.sum([x.gram for x in epochs], axis=0)
        self._count = float(sum(x.rows.sum() for x in epochs)) + 1e-9
        first = self._sensors
        precision = self._gram[first:-1, first:-1] / self._noise
        pull = self._gram[first:-1, -1] / self._noise
        step = np.linalg.solve(precision + self._prior[first:, first:], pull)
        self.restart(self._values + step)
        return np.asarray(step)

    def jump(self, joint: int, size: float, std: float) -> None:
        """A reading is too large by so much from now on."""
        self.beta[joint] -= size
        self._jump_std[joint] = np.hypot(self._jump_std[joint], std)

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
        """Variance of a weighted residual, enlarged by its correlation in time."""
        return float(self._repeated * max(self._gram[-1, -1] / self._count, 1e-12))

    def now(self) -> TrackedValues:
        """Solve for the changes since the calibration."""
        inverse = np.linalg.inv(self._gram[:-1, :-1] / self._noise + self._prior)
        moved = inverse @ (self._gram[:-1, -1] / self._noise)
        std = np.sqrt(np.diag(inverse))
        n, sensors = self.beta.size, self._sensors
        change = np.zeros((2, n))
        if sensors > n:
            change = np.array([moved[: sensors - n], std[: sensors - n]])
        return TrackedValues(
            alpha=self.alpha * (1.0 + change[0]),
            beta=self.beta + moved[sensors - n : sensors],
            alpha_std=np.abs(self.alpha) * change[1],
            beta_std=np.hypot(std[sensors - n : sensors], self._jump_std),
            parameters=self._values + moved[sensors:],
            parameters_std=std[sensors:],
            load=self._load,
        )


# Generalised likelihood-ratio test for a shift of a gain or an offset.
#
# Each epoch k yields, for every unknown, an apparent shift s_k: its pull g_k on the
# unknown over its information I_k, less the bias of undisturbed motion. With weights
# w_k = 1 / (noise / I_k + wander) the mean shift since an onset j is m_j = Σ w_k s_k /
# Σ w_k, with variance v_j = 1 / Σ w_k + floor, sums over k ≥ j.
#
# * Hypotheses: none (mean zero for all epochs) against a constant shift since onset j,
#   for every j among the last epochs and every unknown by itself.
# * Statistic: Λ = max_j m_j² / v_j, twice the logarithm of the likelihood ratio at the
#   shift's and the onset's maximum-likelihood estimates.
# * Without a change m_j² / v_j follows χ² with one degree of freedom for each onset if
#   errors are Gaussian. The maximum over onsets and unknowns is bounded by the sum of
#   their probabilities (Bonferroni): see `WatchdogSettings.drift_threshold` for the
#   false-alarm rate.
# * The variance has three terms since noise averages out over an epoch's samples,
#   errors of the model that vary with the motion over epochs (`wander`), and others not
#   at all (`floor`); all are learnt from undisturbed motion.

_NO_INFORMATION = 1e-12
"""Information, and variance of noise, that counts as none: far below that of a single
torque (1, in units of its error), and safe to divide by."""


class SensorShift(NamedTuple):
    """An unknown that moved.

    Attributes:
        unknown: Its index.
        onset: When in [s].
        size, std: By how much in [rad], or relative for gains.
    """

    unknown: int
    onset: float
    size: float
    std: float


class ShiftTest:
    """Tests the last epochs for a shift, at a constant cost per epoch.

    Args:
        baseline: Statistics of undisturbed motion.
        settings: Threshold, number of onsets, clipping.

    Attributes:
        evidence: Largest ratio of each unknown over all onsets.
    """

    def __init__(
        self, baseline: Baseline, settings: WatchdogSettings = DEFAULT_SETTINGS
    ) -> None:
        self._baseline, self._settings = baseline, settings
        self._epochs: deque[_Epoch] = deque(maxlen=settings.onset_epochs)
        self.evidence = np.zeros(baseline.bias.size)

    def restart(self) -> None:
        """Forget the last epochs."""
        self._epochs.clear()

    def add(
        self, begin: float, pull: np.ndarray, information: np.ndarray
    ) -> SensorShift | None:
        """Take an epoch; return the shift it completes, if any."""
        baseline = self._baseline
        apparent = pull / np.maximum(information, _NO_INFORMATION) - baseline.bias
        weight = baseline.weight(information)
        self._epochs.append(_Epoch(begin, apparent, weight, information))
        begins, shifts, weights, amounts = map(
            np.array, zip(*self._epochs, strict=True)
        )
        weights = _clipped(weights, shifts, self._settings.epoch_clip)
        # Row j of these sums is the hypothesis of an onset at epoch j.
        total = _sum_from_each(weights)
        variance = baseline.variance(total)
        ratios = (_sum_from_each(weights * shifts) / total) ** 2 / variance
        self.evidence = ratios.max(axis=0)
        if self.evidence.max() < self._settings.drift_threshold:
            return None
        k = int(ratios.max(axis=1).argmax())
        unknown = self._cause(ratios[k], shifts[k:], weights[k:], amounts[k:])
        # The cause may have its largest ratio at another onset than the first suspect.
        k = int(ratios[:, unknown].argmax())
        size = float(np.average(shifts[k:, unknown], weights=weights[k:, unknown]))
        std = float(np.sqrt(variance[k, unknown]))
        return SensorShift(unknown, float(begins[k]), size, std)

    def _cause(
        self,
        ratios: np.ndarray,
        shifts: np.ndarray,
        weights: np.ndarray,
        information: np.ndarray,
    ) -> int:
        """The unknown whose shift explains most torque.

        Unknowns are tested one by one, but their torques are alike: the shift of one
        shows as an apparent shift of its neighbours, whose ratio may even be larger
        where their baseline happens to be quieter. What a shift explains of the
        torques' squares, (Σ I s)² / Σ I, is not subject to that.
        """
        information = np.maximum(information, _NO_INFORMATION)
        explained = (information * shifts).sum(axis=0) ** 2 / information.sum(axis=0)
        sizes = np.average(shifts, axis=0, weights=weights)
        least = self._settings.cause_fraction * self._settings.drift_threshold
        is_candidate = (np.abs(sizes) < self._settings.largest_shift) & (ratios > least)
        return int(np.where(is_candidate, explained, 0.0).argmax())


class _Epoch(NamedTuple):
    begin: float
    apparent: np.ndarray
    weight: np.ndarray
    information: np.ndarray


class Baseline(NamedTuple):
    """Statistics of each unknown's apparent shifts in undisturbed motion.

    Attributes:
        bias: Apparent shift, that counts as zero.
        noise: Variance of an epoch's pull by its information.
        wander: Variance of epochs' apparent shifts however much information they have:
            errors of the model, that change with the motion.
        floor: Variance of apparent shifts over long spans: it does not average out.
        most: Largest information of an epoch; weights are not extrapolated beyond it.
        weights: One over the variance of each epoch's apparent shift.
    """

    bias: Float[np.ndarray, " unknowns"]
    noise: Float[np.ndarray, " unknowns"]
    wander: Float[np.ndarray, " unknowns"]
    floor: Float[np.ndarray, " unknowns"]
    most: Float[np.ndarray, " unknowns"]
    weights: Float[np.ndarray, "epochs unknowns"]

    @classmethod
    def from_epochs(
        cls,
        pulls: Float[np.ndarray, "epochs unknowns"],
        information: Float[np.ndarray, "epochs unknowns"],
        settings: WatchdogSettings = DEFAULT_SETTINGS,
    ) -> Baseline:
        """Learn from epochs of undisturbed motion (method of moments)."""
        # An unknown of which nothing was seen keeps next to no weight for ever.
        information = np.maximum(information, _NO_INFORMATION)
        bias = pulls.sum(axis=0) / information.sum(axis=0)
        # Bias and weights depend on each other; three rounds settle both.
        for _ in range(3):
            apparent = pulls / information - bias
            # Epochs of little information are dominated by noise, the others by the
            # model's errors: the median separates the two variances.
            is_quiet = information <= np.median(information, axis=0)
            noise = _mean(apparent**2 * information, is_quiet) + _NO_INFORMATION
            beyond = apparent**2 - noise / information
            wander = np.maximum(_mean(beyond, ~is_quiet), 0.0)
            weights = 1.0 / (noise / information + wander)
            bias = bias + np.sum(weights * apparent, axis=0) / weights.sum(axis=0)
        floor = _floor(apparent, weights, settings.floor_spans)
        return cls(bias, noise, wander, floor, information.max(axis=0), weights)

    def weight(
        self, information: Float[np.ndarray, " unknowns"]
    ) -> Float[np.ndarray, " unknowns"]:
        """One over the variance of the apparent shift of so much information."""
        information = np.clip(information, _NO_INFORMATION, self.most)
        return np.asarray(1.0 / (self.noise / information + self.wander))

    def variance(
        self, weight: Float[np.ndarray, "... unknowns"]
    ) -> Float[np.ndarray, "... unknowns"]:
        """Of the mean apparent shift of epochs with this total weight."""
        return 1.0 / np.maximum(weight, _NO_INFORMATION) + self.floor

    def smallest(
        self, epochs: int, settings: WatchdogSettings = DEFAULT_SETTINGS
    ) -> Float[np.ndarray, " unknowns"]:
        """Smallest shift found in so many epochs, were they the least informative."""
        smallest = np.full(self.bias.size, np.inf)
        span = min(epochs, len(self.weights))
        # Clipping makes the ratio's growth with size uneven: tried size by size.
        for size in np.geomspace(settings.largest_shift, 1e-5, 100) if span else ():
            weights = _clipped(self.weights, size, settings.epoch_clip)
            least = _moving_sum(weights, span).min(axis=0)
            is_found = size**2 >= settings.drift_threshold * self.variance(least)
            smallest[is_found] = size
        return smallest


def _mean(x: np.ndarray, is_selected: np.ndarray) -> np.ndarray:
    total = (x * is_selected).sum(axis=0)
    return np.asarray(total / np.maximum(is_selected.sum(axis=0), 1))


def _floor(
    apparent: np.ndarray, weights: np.ndarray, spans: tuple[int, ...]
) -> np.ndarray:
    """Variance of means over long spans beyond what their epochs' scatter explains."""
    floor = np.zeros(apparent.shape[1])
    for span in spans:
        # Two separate spans at least, or the bias has absorbed the mean itself.
        if 2 * span <= len(apparent):
            total = _moving_sum(weights, span)
            mean = _moving_sum(weights * apparent, span) / total
            floor = np.maximum(floor, np.mean(mean**2 - 1.0 / total, axis=0))
    return floor


def _clipped(
    weights: np.ndarray, shifts: np.ndarray | float, clip: float
) -> np.ndarray:
    """Weights such that w s² ≤ clip²: however precise, no epoch decides by itself."""
    return np.minimum(weights, clip**2 / np.maximum(np.square(shifts), 1e-300))


def _sum_from_each(x: np.ndarray) -> np.ndarray:
    """Sums from each epoch to the last."""
    return np.asarray(np.cumsum(x[::-1], axis=0)[::-1])


def _moving_sum(x: np.ndarray, span: int) -> np.ndarray:
    sums = np.cumsum(np.concatenate([np.zeros((1, x.shape[1])), x]), axis=0)
    return np.asarray(sums[span:] - sums[:-span])
