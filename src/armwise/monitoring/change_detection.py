"""Generalised likelihood-ratio test for a shift of a gain or an offset.

Each epoch k yields, for every unknown, an apparent shift s_k: its pull g_k on the
unknown over its information I_k, less the bias of undisturbed motion. With weights
w_k = 1 / (noise / I_k + wander) the mean shift since an onset j is
m_j = Σ w_k s_k / Σ w_k, with variance v_j = 1 / Σ w_k + floor, sums over k ≥ j.

* Hypotheses: none (mean zero for all epochs) against a constant shift since onset j,
  for every j among the last epochs and every unknown by itself.
* Statistic: Λ = max_j m_j² / v_j, twice the logarithm of the likelihood ratio at the
  shift's and the onset's maximum-likelihood estimates.
* Without a change m_j² / v_j follows χ² with one degree of freedom for each onset if
  errors are Gaussian. The maximum over onsets and unknowns is bounded by the sum of
  their probabilities (Bonferroni): see `WatchdogSettings.drift_threshold` for the
  false-alarm rate.
* The variance has three terms since noise averages out over an epoch's samples, errors
  of the model that vary with the motion over epochs (`wander`), and others not at all
  (`floor`); all are learnt from undisturbed motion.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.monitoring.settings import DEFAULT_SETTINGS, WatchdogSettings

if TYPE_CHECKING:
    from jaxtyping import Float


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
