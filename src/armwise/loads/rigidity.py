"""Whether what is left of the wrench looks like noise, or like something that moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.loads.noise_spectrum import Rows, cosine_coefficients, shapes
from armwise.recordings import WRENCH_NAMES

if TYPE_CHECKING:
    from jaxtyping import Float


MOTION_SHARE = 0.95
"""The motion's band holds this share of what the load's wrench varies."""

_LOUD = 3.0
_PLAIN = 0.03


@dataclass(frozen=True)
class Rigidity:
    """How the residual compares with noise in the band of the motion.

    Attributes:
        is_rigid: Whether a rigid load explains the data.
        excess: Power of the residual in the motion's band over that of the noise
            expected there from the other frequencies; about 1 for a rigid load.
        unexplained: Residual there as a fraction of the wrench that motion causes.
        band_hz: Upper end of the motion's band in [Hz].
        statement: All of it in words.
    """

    is_rigid: bool
    excess: float
    unexplained: float
    band_hz: float
    statement: str


def assess_rigidity(
    rows: Rows, values: Float[np.ndarray, " parameters"], parameters: int
) -> Rigidity | None:
    """Compare the residual in the motion's band with the noise outside it.

    The noise is taken to be white plus a drift, told from frequencies above the
    motion's band; a load that sloshes, slips or swings leaves more inside it.

    Args:
        rows: The regression.
        values: Its solution.
        parameters: How many were fitted, in all channels together.
    """
    known = np.isfinite(values)
    coefficients = cosine_coefficients(rows)
    predicted = coefficients.regressor[:, :, known] @ values[known]
    left = coefficients.target - predicted
    f = coefficients.frequency
    scale = np.sqrt(np.mean(predicted**2, axis=0)) + 1e-300
    order = np.argsort(f)
    share = np.cumsum(np.sum((predicted[order] / scale) ** 2, axis=1))
    band = float(f[order][np.searchsorted(share, MOTION_SHARE * share[-1])])
    inside, outside = f <= band, (f > 2.0 * band) & (f < 0.9 * f.max())
    if outside.sum() < 20 or inside.sum() <= parameters:
        return None
    floor = np.median(left[outside] ** 2, axis=0) / 0.455 + 1e-12 * scale**2
    drift = _drift(left, coefficients.chord, floor)
    expected = floor + drift * shapes(coefficients.chord)[0][:, None]
    freedom = max(1.0, inside.sum() - parameters / left.shape[1])
    ratios = np.sum(left[inside] ** 2 / expected[inside], axis=0) / freedom
    excess = float(np.max(ratios))
    power = np.sum(left[inside] ** 2, axis=0), np.sum(predicted[inside] ** 2, axis=0)
    shares = np.sqrt(power[0] / (power[1] + 1e-300))
    unexplained = float(np.max(shares[_driven(power[1], rows.channels)]))
    is_rigid = excess < _LOUD or unexplained < _PLAIN
    return Rigidity(
        is_rigid, excess, unexplained, band, _say(is_rigid, excess, unexplained, band)
    )


def _drift(left: np.ndarray, chord: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Steps of a random walk that the few slowest coefficients show."""
    slow = np.argsort(chord)[:4]
    return np.maximum(
        np.median(left[slow] ** 2 * chord[slow, None], axis=0) / 0.455
        - floor * np.median(chord[slow]),
        0.0,
    )


def _driven(moved: np.ndarray, channels: tuple[str, ...]) -> np.ndarray:
    """Channels that the motion drives at all, compared with their like."""
    kinds = np.array([name[0] if name in WRENCH_NAMES else "" for name in channels])
    driven = np.zeros(len(moved), dtype=bool)
    for kind in set(kinds):
        like = kinds == kind
        driven |= like & (moved >= 0.05 * moved[like].max())
    return driven


def _say(is_rigid: bool, excess: float, unexplained: float, band: float) -> str:
    if is_rigid:
        return (
            f"A rigid load explains the data: below {band:.1f} Hz, "
            f"{100 * unexplained:.1f} % of the wrench is left over."
        )
    return (
        f"The load does not behave like a rigid body: below {band:.1f} Hz, "
        f"{100 * unexplained:.1f} % of the wrench is left over, {excess:.0f} times the "
        "noise. It may slosh, slip or swing; or the sensor is misaligned or compliant."
    )
