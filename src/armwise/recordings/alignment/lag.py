"""Delay, earlier low-pass and useful band between motion and torque."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.alignment.torque_basis import Basis, residuals, with_friction
from armwise.recordings.spectra import band_powers

if TYPE_CHECKING:
    from jaxtyping import Float


BLOCKS = 10
"""Stretches of time left out in turn to tell how sure a lag is."""


EXPLAINED = 0.4
"""Largest residual, as a share of the torque's amplitude, in a band worth keeping."""


CLEARLY = 0.7
"""Share to which an earlier low-pass must bring the residual's power to be believed."""


@dataclass(frozen=True)
class Lag:
    """A delay of the torque behind the motion.

    Attributes:
        seconds: The delay in [s].
        std: Its standard error in [s], by leaving out stretches of time.
    """

    seconds: float
    std: float


def find_lag(
    bases: list[Basis],
    torque_at: Callable[[float], np.ndarray],
    rate_hz: float,
    bandwidth_hz: float,
    longest: float = 0.1,
) -> Lag:
    """Find the delay of the torque that lets the motion explain it best.

    Args:
        bases: What explains the torque.
        torque_at: Gives the torque read so many seconds later.
        rate_hz: Sampling rate of both in [Hz].
        bandwidth_hz: Low-pass through which Coulomb friction is seen in [Hz].
        longest: Largest delay looked for, either way, in [s].
    """
    explanations = with_friction(bases, rate_hz, bandwidth_hz)

    def powers(lag: float) -> np.ndarray:
        left = residuals(explanations, torque_at(lag))
        blocks = np.array_split(left**2, BLOCKS)
        return np.array([block.sum(axis=0) for block in blocks])

    coarse = np.linspace(-longest, longest, 41)
    scores = [_score(powers(lag).sum(axis=0)) for lag in coarse]
    centre = coarse[np.argmin(scores)]
    step = coarse[1] - coarse[0]
    fine = centre + step * np.linspace(-1.0, 1.0, 9)
    table = np.stack([powers(lag) for lag in fine])
    total = table.sum(axis=1)
    best = _valley(fine, _score(total))
    others = [_valley(fine, _score(total - table[:, block])) for block in range(BLOCKS)]
    spread = np.sqrt((BLOCKS - 1) * np.var(others))
    return Lag(float(best), float(spread))


def find_bandwidth(
    bases: list[Basis], torque: np.ndarray, rate_hz: float, highest_hz: float
) -> float:
    """Find how far the torque was low-passed before it was recorded, in [Hz].

    Coulomb friction turns over in a step; its rounding tells the filter. The highest
    value is returned unless a lower one explains the torque clearly better.
    """
    tried = highest_hz / 2.0 ** np.arange(0.0, 6.0, 0.5)
    tried = tried[tried > 4.0 * rate_hz / len(torque)]
    if not tried.size:
        return highest_hz
    seen = [residuals(with_friction(bases, rate_hz, b), torque) for b in tried]
    powers = np.stack([(left**2).sum(axis=0) for left in seen])
    scores = _score(powers)
    best = int(np.argmin(scores))
    better = np.median(powers[best] / np.maximum(powers[0], 1e-300))
    if better > CLEARLY:
        return highest_hz
    return float(2.0 ** _valley(np.log2(tried), scores))


def explained_band(
    left: Float[np.ndarray, "samples joints"],
    torque: Float[np.ndarray, "samples joints"],
    rate_hz: float,
    highest_hz: float,
) -> float:
    """Tell up to which frequency the motion explains the torque, in [Hz].

    The residual's amplitude stays below the share EXPLAINED of the torque's up to
    there, in the median over the joints.
    """
    scaled = torque / np.maximum(np.linalg.norm(torque, axis=0), 1e-12)
    ratios = []
    for rest, whole in zip(left.T, scaled.T, strict=True):
        centres, power = band_powers(whole, rate_hz, 2.0)
        ratios.append(band_powers(rest, rate_hz, 2.0)[1] / np.maximum(power, 1e-300))
    ratio = np.median(ratios, axis=0)
    strongest = int(np.argmin(np.where(centres < 0.25 * highest_hz, ratio, np.inf)))
    lost = np.flatnonzero(ratio[strongest:] > EXPLAINED**2)
    if not lost.size:
        return highest_hz
    return float(min(centres[strongest + lost[0]], highest_hz))


def _score(powers: np.ndarray) -> np.ndarray:
    """Weigh the joints' residual powers alike, however badly one is explained."""
    return np.asarray(np.log(np.maximum(powers, 1e-300)).sum(axis=-1))


def _valley(x: np.ndarray, y: np.ndarray) -> float:
    """Return where a parabola through the three lowest neighbours is lowest."""
    i = int(np.clip(np.argmin(y), 1, len(y) - 2))
    left, middle, right = y[i - 1], y[i], y[i + 1]
    bend = left - 2.0 * middle + right
    shift = 0.5 * (left - right) / bend if bend > 0 else 0.0
    return float(x[i] + np.clip(shift, -1.0, 1.0) * (x[1] - x[0]))
