"""Test of a rigid load: residual in the band of the motion against the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.loads.noise_spectrum import (
    MEDIAN_SQUARE,
    RegressionRows,
    cosine_coefficients,
    shapes,
)
from armwise.recordings import WRENCH_NAMES

if TYPE_CHECKING:
    from jaxtyping import Float


_MOTION_FRACTION = 0.95
"""Fraction of the wrench's variance that the motion's band holds."""

_LARGEST_EXCESS = 3.0
"""Residual power over expected noise power, in the motion's band, that still counts as
noise. An F-test would reject far smaller ratios at any level: its bound is not chance
but the model, since drift is no exact random walk and derivatives have errors."""

_LARGEST_UNEXPLAINED = 0.03
"""Fraction of the wrench that may remain whatever the noise: misalignments of a degree
or two (sin 2° = 0.03) leave as much, and no load swings by less."""

_DRIVEN = 0.05
"""Power of a channel beside the strongest of its kind, below which the motion does not
drive it and a fraction of it says nothing."""


@dataclass(frozen=True)
class Rigidity:
    """How the residual compares with noise in the band of the motion.

    Attributes:
        is_rigid: Whether a rigid load explains the data.
        excess: Power of the residual in the motion's band over that of the noise
            expected there from the other frequencies; about 1 for a rigid load.
        unexplained: Residual there as a fraction of the wrench that motion causes.
        band_hz: Upper end of the motion's band in [Hz].
        statement: The same in words.
    """

    is_rigid: bool
    excess: float
    unexplained: float
    band_hz: float
    statement: str


def assess_rigidity(
    rows: RegressionRows, values: Float[np.ndarray, " parameters"]
) -> Rigidity | None:
    """Compare the residual in the motion's band with the noise outside it.

    The noise is assumed to be white, at the level above the motion's band, plus a
    drift; a load that sloshes, slips or swings leaves more residual inside the band.
    None if either band holds too little to judge by.

    Args:
        rows: The regression.
        values: Its solution, in all channels together.
    """
    used = np.isfinite(values)
    coefficients = cosine_coefficients(rows)
    predicted = coefficients.regressor[:, :, used] @ values[used]
    residual = coefficients.target - predicted
    f = coefficients.frequency
    scale = np.sqrt(np.mean(predicted**2, axis=0)) + 1e-300
    order = np.argsort(f)
    power = np.cumsum(np.sum((predicted[order] / scale) ** 2, axis=1))
    band = float(f[order][np.searchsorted(power, _MOTION_FRACTION * power[-1])])
    # An octave above the band, away from remains of the motion; and below the
    # cut-off of a low-pass, whose slope would make the noise look smaller.
    inside, outside = f <= band, (f > 2.0 * band) & (f < 0.9 * f.max())
    if outside.sum() < 20 or inside.sum() <= len(values):
        return None
    # A median, so that resonances above the band do not raise the expected noise.
    floor = np.median(residual[outside] ** 2, axis=0) / MEDIAN_SQUARE
    floor = floor + 1e-12 * scale**2
    drift = _drift(residual, coefficients.chord, floor)
    expected = floor + drift * shapes(coefficients.chord)[0][:, None]
    freedom = max(1.0, inside.sum() - len(values) / residual.shape[1])
    ratios = np.sum(residual[inside] ** 2 / expected[inside], axis=0) / freedom
    excess = float(np.max(ratios))
    lost = np.sum(residual[inside] ** 2, axis=0)
    driven = np.sum(predicted[inside] ** 2, axis=0)
    fractions = np.sqrt(lost / (driven + 1e-300))
    unexplained = float(np.max(fractions[_is_driven(driven, rows.channels)]))
    is_rigid = excess < _LARGEST_EXCESS or unexplained < _LARGEST_UNEXPLAINED
    return Rigidity(
        is_rigid, excess, unexplained, band, _say(is_rigid, excess, unexplained, band)
    )


def _drift(residual: np.ndarray, chord: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Variance of a random walk's steps, from the few slowest coefficients."""
    slow = np.argsort(chord)[:4]  # below nearly all of the motion
    return np.maximum(
        np.median(residual[slow] ** 2 * chord[slow, None], axis=0) / MEDIAN_SQUARE
        - floor * np.median(chord[slow]),
        0.0,
    )


def _is_driven(power: np.ndarray, channels: tuple[str, ...]) -> np.ndarray:
    """Channels that the motion drives, forces and torques each among themselves."""
    kinds = np.array([name[0] if name in WRENCH_NAMES else "" for name in channels])
    driven = np.zeros(len(power), dtype=bool)
    for kind in set(kinds):
        same = kinds == kind
        driven |= same & (power >= _DRIVEN * power[same].max())
    return driven


# Judgement: with as much noise as load, neither is known.
_LOST = 0.7
"""Fraction of the wrench that may stay unexplained if there is to be a load at all."""


def _say(is_rigid: bool, excess: float, unexplained: float, band: float) -> str:
    if is_rigid and unexplained > _LOST:
        return (
            f"No load shows in the data: below {band:.1f} Hz, "
            f"{100 * unexplained:.0f} % of its wrench would be noise."
        )
    if is_rigid and unexplained > _LARGEST_UNEXPLAINED:
        return (
            f"A rigid load explains the data up to their noise: below {band:.1f} Hz, "
            f"{100 * unexplained:.1f} % of the wrench."
        )
    if is_rigid:
        return (
            f"A rigid load explains the data: below {band:.1f} Hz, "
            f"{100 * unexplained:.1f} % of the wrench remain unexplained."
        )
    return (
        f"The load does not behave like a rigid body: below {band:.1f} Hz, "
        f"{100 * unexplained:.1f} % of the wrench remain unexplained, {excess:.0f} "
        "times the noise. It may slosh, slip or swing; or the sensor is misaligned or "
        "compliant."
    )
