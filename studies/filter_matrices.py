"""Filters of a preparation as banded matrices, measured on the filters themselves.

Filtering, differentiating and decimating are linear: one banded matrix each, which a
GPU applies to thousands of recordings alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.recordings import Preparation
from armwise.recordings.filters import thinned
from armwise.recordings.smoothing import early_decimation, smooth
from armwise.recordings.stretches import Stretch
from armwise.regression import low_pass

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LinearFilter = Callable[["Float[np.ndarray, ' size']"], Sequence[np.ndarray]]
"""Takes a signal and returns one or several, all of one length, linear in it."""

_MEMORY = 30.0
"""Periods of a cut-off after which its impulse response is below rounding."""


@dataclass(frozen=True, eq=False)
class BandedMatrix:
    """A matrix whose rows are zero but for one stretch of columns each.

    Attributes:
        first: First column of every row's stretch.
        weights: The stretches.
    """

    first: Int[np.ndarray, " rows"]
    weights: Float[np.ndarray, "rows reach"]

    def __matmul__(
        self, signal: Float[np.ndarray, " size"]
    ) -> Float[np.ndarray, " rows"]:
        """Multiply a signal."""
        columns = self.first[:, None] + np.arange(self.weights.shape[1])
        product: np.ndarray = np.sum(self.weights * signal[columns], axis=1)
        return product


def bands_of(
    linear_filter: LinearFilter, size: int, reach: int
) -> tuple[BandedMatrix, ...]:
    """Measure the matrices of a linear filter by its response to combs of impulses.

    The teeth stand `reach` apart, so that no result is touched by two of them: a band
    is known after as many calls as it is wide, whatever the length of the signal.

    Args:
        linear_filter: Each of its results depends on a stretch of the input centred
            on the result, and shorter than `reach`.
        size: Length of the signal.
        reach: Spacing of the teeth in samples.
    """
    reach = min(reach, size)
    rows = len(linear_filter(np.zeros(size))[0])
    centre = np.round(np.linspace(0, size - 1, rows)).astype(int)
    first = np.clip(centre - reach // 2, 0, size - reach)
    weights: list[np.ndarray] = []
    for shift in range(reach):
        comb = np.zeros(size)
        comb[shift::reach] = 1.0
        responses = linear_filter(comb)
        weights = weights or [np.zeros((rows, reach)) for _ in responses]
        column = (shift - first) % reach
        for band, response in zip(weights, responses, strict=True):
            band[np.arange(rows), column] = response
    return tuple(BandedMatrix(first, band) for band in weights)


@dataclass(frozen=True, eq=False)
class PreparationBands:
    """A preparation as matrices, for recordings of one length without gaps or rests.

    Attributes:
        thin: From the recording to fewer samples a second.
        q, qd, qdd: From the thinned position to the motion.
        tau: From the thinned torque to the torque.
        direction: From the sign of a speed to friction's direction in the torque.
    """

    thin: BandedMatrix
    q: BandedMatrix
    qd: BandedMatrix
    qdd: BandedMatrix
    tau: BandedMatrix
    direction: BandedMatrix


def preparation_bands(preparation: Preparation, size: int) -> PreparationBands:
    """Return the matrices of a preparation.

    Args:
        preparation: How samples were made: with a low-pass, velocity from position by
            differences.
        size: Samples of a recording.
    """
    settings = preparation.settings
    rate, cutoff = preparation.sample_rate_hz, preparation.cutoff_hz
    if rate is None or cutoff is None or preparation.torque_bandwidth_hz is None:
        raise ArgumentError("Only samples that were low-passed have such matrices.")
    if settings.velocity == "measured" or settings.derivatives == "spline":
        raise ArgumentError(
            "Only preparations with velocity by differences of the position have such "
            "matrices."
        )
    early = early_decimation(settings, rate)
    slow = rate / early
    (thin,) = bands_of(lambda x: [thinned(x, early)], size, 8 * early + 8)
    later = replace(
        settings, decimation=settings.decimation // early, sample_rate_hz=None
    )
    reach = int(_MEMORY * slow / cutoff)
    q, qd, qdd, tau = bands_of(
        lambda x: _motion(x, slow, later), len(thin.first), reach
    )
    final_rate, bandwidth = slow / later.decimation, preparation.torque_bandwidth_hz
    (direction,) = bands_of(
        lambda x: [low_pass(x, bandwidth, final_rate, "constant")],
        len(q.first),
        int(_MEMORY * final_rate / bandwidth),
    )
    return PreparationBands(thin, q, qd, qdd, tau, direction)


def _motion(
    signal: np.ndarray, rate_hz: float, settings: Preparation
) -> tuple[np.ndarray, ...]:
    """Filter one signal as a position and as a torque."""
    smoothed = smooth(Stretch(0.0, rate_hz, (signal,), tau=(signal,)), settings)
    if smoothed is None:
        raise ArgumentError(
            f"{signal.size / rate_hz:.3g} s are too short for a cut-off of "
            f"{settings.cutoff_hz:.3g} Hz."
        )
    return tuple(x[:, 0] for x in (smoothed.q, smoothed.qd, smoothed.qdd, smoothed.tau))
