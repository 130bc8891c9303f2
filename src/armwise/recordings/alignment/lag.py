"""Delay, earlier low-pass and useful band between motion and torque."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.smoothing import shifted
from armwise.recordings.spectra import band_powers

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.regression import TorqueProjection

# With ten, the variance of a lag is itself known to √(2/9), about a half.
BLOCKS = 10
"""Stretches of time left out in turn (a jackknife) for the standard error of a lag:
few enough that each is longer than the noise is correlated."""

LONGEST_LAG = 0.1
"""Largest delay looked for, either way, in [s]: more than buses, filters and control
cycles of an arm add up to."""

# Judgement: 0.4² = 0.16 of the power.
EXPLAINED = 0.4
"""Largest residual, as a fraction of the torque's amplitude, in a band worth keeping:
there, motion still explains five sixths of the torque's power."""

# Judgement: a fall of 30 %, in the median over the joints.
CLEARLY_BETTER = 0.7
"""Fraction to which an earlier low-pass must bring the residual's power before it is
assumed: one more parameter that only fits noise gains far less."""


@dataclass(frozen=True)
class Lag:
    """A delay of the torque behind the motion.

    Attributes:
        seconds: The delay in [s].
        std: Its standard error in [s], by leaving out stretches of time.
    """

    seconds: float
    std: float


def find_lag(projection: TorqueProjection, bandwidth_hz: float) -> Lag:
    """Find the delay of the torque that lets the motion explain it best.

    Args:
        projection: What the motion explains.
        bandwidth_hz: Low-pass through which Coulomb friction is seen in [Hz].
    """
    tau, rate = projection.signals.tau, projection.signals.rate_hz

    def powers(lags: np.ndarray) -> Float[np.ndarray, "lags blocks joints"]:
        """Residual powers over blocks of time; all lags in one matrix product."""
        delayed = [shifted(tau, lag * rate) for lag in lags]
        residual = projection.residuals(np.stack(delayed, axis=2), bandwidth_hz)
        blocks = np.array_split(residual**2, BLOCKS)
        return np.array([block.sum(axis=0) for block in blocks]).transpose(2, 0, 1)

    # The valley of the residual's power is as wide as the motion is slow: steps of 5 ms
    # do not miss it, steps of 1.25 ms and a parabola resolve it.
    coarse = np.linspace(-LONGEST_LAG, LONGEST_LAG, 41)
    centre = coarse[np.argmin(_score(powers(coarse).sum(axis=1)))]
    step = coarse[1] - coarse[0]
    fine = centre + step * np.linspace(-1.0, 1.0, 9)
    table = powers(fine)
    total = table.sum(axis=1)
    best = _minimum(fine, _score(total))
    without = [_minimum(fine, _score(total - table[:, b])) for b in range(BLOCKS)]
    # Delete-a-block jackknife: (B − 1)/B Σ (d − mean)² = (B − 1) var.
    return Lag(best, float(np.sqrt((BLOCKS - 1) * np.var(without))))


def find_bandwidth(
    projection: TorqueProjection,
    torque: Float[np.ndarray, "samples joints"],
    highest_hz: float,
) -> float:
    """Find how far the torque was low-passed before it was recorded, in [Hz].

    Coulomb friction turns over in a step; its rounding tells the filter. The highest
    value is returned unless a lower one explains the torque clearly better.

    Args:
        projection: What the motion explains.
        torque: Torque without its lag.
        highest_hz: Largest bandwidth tried.
    """
    # Half octaves down to a 45th; between them a parabola interpolates.
    candidates = highest_hz / 2.0 ** np.arange(0.0, 6.0, 0.5)
    # A filter that takes more than a quarter of the log to settle cannot be seen in it.
    duration = len(torque) / projection.signals.rate_hz
    candidates = candidates[candidates > 4.0 / duration]
    if not candidates.size:
        return highest_hz
    residuals = [projection.residuals(torque, hz) for hz in candidates]
    powers = np.stack([(residual**2).sum(axis=0) for residual in residuals])
    scores = _score(powers)
    best = int(np.argmin(scores))
    # The median: one joint with odd friction must not decide for the others.
    gain = np.median(powers[best] / np.maximum(powers[0], 1e-300))
    if gain > CLEARLY_BETTER:
        return highest_hz
    return float(2.0 ** _minimum(np.log2(candidates), scores))


def explained_band(
    residual: Float[np.ndarray, "samples joints"],
    torque: Float[np.ndarray, "samples joints"],
    rate_hz: float,
    highest_hz: float,
) -> float:
    """Return up to which frequency the motion explains the torque, in [Hz].

    The residual's amplitude stays below the fraction EXPLAINED of the torque's up to
    there, in the median over the joints.
    """
    scaled = torque / np.maximum(np.linalg.norm(torque, axis=0), 1e-12)
    ratios = []
    for unexplained, whole in zip(residual.T, scaled.T, strict=True):
        # Windows of 2 s instead of 4: what is looked at may be a few seconds long.
        centres, power = band_powers(whole, rate_hz, 2.0)
        noise = band_powers(unexplained, rate_hz, 2.0)[1]
        ratios.append(noise / np.maximum(power, 1e-300))
    ratio = np.median(ratios, axis=0)
    # Judgement: from the best explained band upwards; the lowest bands hold few
    # periods, and their ratio is chance.
    strongest = int(np.argmin(np.where(centres < 0.25 * highest_hz, ratio, np.inf)))
    above = np.flatnonzero(ratio[strongest:] > EXPLAINED**2)
    if not above.size:
        return highest_hz
    return float(min(centres[strongest + above[0]], highest_hz))


def _score(powers: np.ndarray) -> np.ndarray:
    """Weigh the joints' residual powers alike, however badly one is explained."""
    return np.asarray(np.log(np.maximum(powers, 1e-300)).sum(axis=-1))


def _minimum(x: np.ndarray, y: np.ndarray) -> float:
    """Return where a parabola through the three lowest neighbours is lowest."""
    # A minimum on the edge takes the parabola beside it; the shift is then clipped.
    i = int(np.clip(np.argmin(y), 1, len(y) - 2))
    before, middle, after = y[i - 1], y[i], y[i + 1]
    bend = before - 2.0 * middle + after
    # Three values on a line, or bent downwards, have no minimum: stay in the middle.
    shift = 0.5 * (before - after) / bend if bend > 0 else 0.0
    return float(x[i] + np.clip(shift, -1.0, 1.0) * (x[1] - x[0]))
