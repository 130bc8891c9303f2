"""Has a gain or an offset moved, and since when? Asked of the last minute's epochs.

Each epoch pulls every unknown somewhere. Sums from every possible onset until now are
compared with what an undisturbed arm shows (generalised likelihood ratio): noise, which
averages out, and errors of the model, which do not.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


_NOTHING = 1e-12
"""Information that counts as none."""

_LOUDEST = 4.0
"""Shift in standard deviations beyond which an epoch is trusted no further."""

_FARTHEST = 0.5
"""Shift in [rad], or of a gain relative to itself, beyond which none is looked for."""

_SPANS = (4, 12, 36)
"""Numbers of epochs over which errors that stay are looked for."""


class Shift(NamedTuple):
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


class Usual(NamedTuple):
    """What undisturbed motion shows of each unknown.

    Attributes:
        bias: Apparent shift, that counts as zero.
        noise: Variance of an epoch's pull by its information.
        wander: Variance of epochs' apparent shifts however much information they have:
            errors of the model, that change with the motion.
        floor: Variance of apparent shifts over long spans: it does not average out.
        most: Largest information of an epoch: what tells more is beyond experience.
        weights: One over the variance of what each epoch showed.
    """

    bias: Float[np.ndarray, " unknowns"]
    noise: Float[np.ndarray, " unknowns"]
    wander: Float[np.ndarray, " unknowns"]
    floor: Float[np.ndarray, " unknowns"]
    most: Float[np.ndarray, " unknowns"]
    weights: Float[np.ndarray, "epochs unknowns"]

    @classmethod
    def of(
        cls,
        pulls: Float[np.ndarray, "epochs unknowns"],
        information: Float[np.ndarray, "epochs unknowns"],
    ) -> Usual:
        """Learn from epochs of undisturbed motion."""
        # An unknown of which nothing was seen keeps next to no weight for ever.
        information = np.maximum(information, _NOTHING)
        bias = pulls.sum(axis=0) / information.sum(axis=0)
        for _ in range(3):  # the weights tell the bias, the bias the weights
            apparent = pulls / information - bias
            is_quiet = information <= np.median(information, axis=0)
            noise = _mean(apparent**2 * information, is_quiet) + _NOTHING
            beyond = apparent**2 - noise / information
            wander = np.maximum(_mean(beyond, ~is_quiet), 0.0)
            weights = 1.0 / (noise / information + wander)
            bias = bias + np.sum(weights * apparent, axis=0) / weights.sum(axis=0)
        floor, most = _floor(apparent, weights), information.max(axis=0)
        return cls(bias, noise, wander, floor, most, weights)

    def weight(
        self, information: Float[np.ndarray, " unknowns"]
    ) -> Float[np.ndarray, " unknowns"]:
        """One over the variance of what an epoch of so much information shows."""
        known = np.clip(information, _NOTHING, self.most)
        return np.asarray(1.0 / (self.noise / known + self.wander))

    def variance(
        self, weight: Float[np.ndarray, "... unknowns"]
    ) -> Float[np.ndarray, "... unknowns"]:
        """Of the apparent shift over epochs of so much weight together."""
        return 1.0 / np.maximum(weight, _NOTHING) + self.floor

    def smallest(self, epochs: int, threshold: float) -> Float[np.ndarray, " unknowns"]:
        """Smallest shift found in so many epochs, were they the least telling known."""
        found = np.full(self.bias.size, np.inf)
        span = min(epochs, len(self.weights))
        for size in np.geomspace(_FARTHEST, 1e-5, 100) if span else ():
            least = _moving_sum(_trusted(self.weights, size), span).min(axis=0)
            found[size**2 >= threshold * self.variance(least)] = size
        return found


def _mean(x: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return np.asarray((x * chosen).sum(axis=0) / np.maximum(chosen.sum(axis=0), 1))


def _floor(apparent: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What sums over long spans show beyond what their epochs' scatter explains."""
    floor = np.zeros(apparent.shape[1])
    for span in _SPANS:
        if 2 * span <= len(apparent):
            total = _moving_sum(weights, span)
            seen = _moving_sum(weights * apparent, span) / total
            floor = np.maximum(floor, np.mean(seen**2 - 1.0 / total, axis=0))
    return floor


class Shifts:
    """Looks for shifts in a sequence of epochs.

    Args:
        usual: What undisturbed motion shows.
        threshold: Evidence that tells a shift.
        span: Number of epochs among which an onset is looked for.
    """

    def __init__(self, usual: Usual, threshold: float, span: int) -> None:
        self._usual, self._threshold = usual, threshold
        self._epochs: deque[_Epoch] = deque(maxlen=span)
        self.evidence = np.zeros(usual.bias.size)

    def restart(self) -> None:
        """Forget the last epochs."""
        self._epochs.clear()

    def add(
        self, begin: float, pull: np.ndarray, information: np.ndarray
    ) -> Shift | None:
        """Take an epoch in; return the shift it completes, if any."""
        apparent = pull / np.maximum(information, _NOTHING) - self._usual.bias
        weight = self._usual.weight(information)
        self._epochs.append(_Epoch(begin, apparent, weight, information))
        begins, shown, weights, known = map(np.array, zip(*self._epochs, strict=True))
        weights = _trusted(weights, shown)
        total = _until_now(weights)
        variance = self._usual.variance(total)
        ratios = (_until_now(weights * shown) / total) ** 2 / variance
        self.evidence = ratios.max(axis=0)
        if self.evidence.max() < self._threshold:
            return None
        k = int(ratios.max(axis=1).argmax())
        unknown = self._cause(ratios[k], shown[k:], weights[k:], known[k:])
        k = int(ratios[:, unknown].argmax())
        size = float(np.average(shown[k:, unknown], weights=weights[k:, unknown]))
        std = float(np.sqrt(variance[k, unknown]))
        return Shift(unknown, float(begins[k]), size, std)

    def _cause(
        self,
        ratios: np.ndarray,
        shown: np.ndarray,
        weights: np.ndarray,
        known: np.ndarray,
    ) -> int:
        """What stands out may be another's echo: which one explains most torque?"""
        known = np.maximum(known, _NOTHING)
        explained = (known * shown).sum(axis=0) ** 2 / known.sum(axis=0)
        sizes = np.average(shown, axis=0, weights=weights)
        likely = (np.abs(sizes) < _FARTHEST) & (ratios > 0.1 * self._threshold)
        return int(np.where(likely, explained, 0.0).argmax())


class _Epoch(NamedTuple):
    begin: float
    apparent: np.ndarray
    weight: np.ndarray
    information: np.ndarray


def _trusted(weights: np.ndarray, shown: np.ndarray | float) -> np.ndarray:
    """However precise, no epoch counts for more than _LOUDEST²: none decides."""
    return np.minimum(weights, _LOUDEST**2 / np.maximum(np.square(shown), 1e-300))


def _until_now(x: np.ndarray) -> np.ndarray:
    """Sums from each epoch to the last."""
    return np.asarray(np.cumsum(x[::-1], axis=0)[::-1])


def _moving_sum(x: np.ndarray, span: int) -> np.ndarray:
    sums = np.cumsum(np.concatenate([np.zeros((1, x.shape[1])), x]), axis=0)
    return np.asarray(sums[span:] - sums[:-span])
