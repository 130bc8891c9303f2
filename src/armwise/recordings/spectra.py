"""What the spectra say: where the motion ends, and how much of a signal is noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Complex, Float

LONGEST = 200_000
"""Samples looked at, at most, when a spectrum only has to be told roughly."""


@dataclass(frozen=True, eq=False)
class NoiseSpectra:
    """Power spectra of two redundant signals and of the noise on each.

    One-sided densities: their sum times the frequency step is the variance.

    Attributes:
        frequency: In [Hz].
        first, second: Spectra of the measured signals, squared units per [Hz].
        cross: Measured cross-spectrum E[first* second].
        first_noise, second_noise: Spectra of the noise on them.
        coherence: How far one signal explains the other, 0 … 1.
    """

    frequency: Float[np.ndarray, " frequencies"]
    first: Float[np.ndarray, " frequencies"]
    second: Float[np.ndarray, " frequencies"]
    cross: Complex[np.ndarray, " frequencies"]
    first_noise: Float[np.ndarray, " frequencies"]
    second_noise: Float[np.ndarray, " frequencies"]
    coherence: Float[np.ndarray, " frequencies"]


def noise_spectra(
    first: Float[np.ndarray, " samples"],
    second: Float[np.ndarray, " samples"],
    rate_hz: float,
    *,
    gain: float = 1.0,
    derivatives: int = 1,
    segment: int | None = None,
) -> NoiseSpectra:
    """Tell the noise on two signals apart, knowing how they are related.

    The second signal is `gain` times a derivative of the first: H = gain (jω)^k. With
    force f = m a and velocity v, H = jωm; then S_nv = S_v − S_vf / H and
    S_nf = S_f − H* S_vf (`atkeson1986` Eq. 5.58–5.67). Noises are taken as stationary
    and independent of each other; small negative estimates are set to zero.

    Args:
        first, second: The signals, evenly spaced.
        rate_hz: Their sampling rate in [Hz].
        gain: The known constant of the relation, such as a mass in [kg].
        derivatives: How many times the first is differentiated to give the second.
        segment: Length of the averaged stretches in samples.
    """
    from scipy.signal import csd, welch

    if first.shape != second.shape or first.ndim != 1:
        raise ArgumentError(
            f"Two signals of one length are needed, not {first.shape} and "
            f"{second.shape}."
        )
    length = segment or min(first.size, max(256, first.size // 16))
    options = {"fs": rate_hz, "nperseg": length, "detrend": "constant"}
    frequency, power_1 = welch(first, **options)
    _, power_2 = welch(second, **options)
    _, cross = csd(first, second, **options)
    kept = slice(1, None)  # at zero frequency a derivative says nothing
    transfer = gain * (2j * np.pi * frequency[kept]) ** derivatives
    common = cross[kept]
    true_1 = np.real(common / transfer)
    true_2 = np.real(np.conj(transfer) * common)
    coherence = np.abs(common) ** 2 / (power_1[kept] * power_2[kept] + 1e-300)
    return NoiseSpectra(
        frequency=frequency[kept],
        first=power_1[kept],
        second=power_2[kept],
        cross=common,
        first_noise=np.clip(power_1[kept] - true_1, 0.0, None),
        second_noise=np.clip(power_2[kept] - true_2, 0.0, None),
        coherence=coherence,
    )


def band_powers(
    signal: Float[np.ndarray, " samples"], rate_hz: float, seconds: float = 4.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return centres [Hz] and mean power densities of quarter-octave bands."""
    from scipy.signal import welch

    length = int(min(signal.size, max(64, seconds * rate_hz)))
    frequency, power = welch(signal[:LONGEST], rate_hz, nperseg=length, window="hann")
    edges = 2.0 ** np.arange(np.log2(frequency[2]), np.log2(frequency[-1]), 0.25)
    index = np.digitize(frequency, edges)
    bands = np.unique(index[(index > 0) & (frequency > 0)])
    centres = np.array([frequency[index == b].mean() for b in bands])
    return centres, np.array([power[index == b].mean() for b in bands])


@dataclass(frozen=True)
class Band:
    """Where a cut-off makes sense.

    Attributes:
        least: Below this the low-pass would change the motion itself, in [Hz].
        most: Above this the measured positions are mostly noise, in [Hz].
    """

    least: float
    most: float


def motion_band(positions: Float[np.ndarray, "joints samples"], rate_hz: float) -> Band:
    """Tell between which frequencies a low-pass keeps the motion and drops the noise.

    The spectrum of the acceleration, ω⁴ S_q, falls where motion ends and rises where
    differentiated noise takes over; the valley between is the best place to cut (its
    near side, 3 dB up). But the filter halves what is at its cut-off, so that lies at
    least four times above 99 % of the velocity's power. The medians over the joints
    that move are taken.
    """
    least, most = [], []
    spread = positions.std(axis=1)
    for signal in positions[spread > 1e-3 * spread.max()]:
        centres, power = band_powers(signal, rate_hz)
        acceleration = power * centres**4
        fastest = int(np.argmax(power * centres**2))
        inside = np.flatnonzero(centres[fastest:] < 0.4 * rate_hz) + fastest
        if not inside.size:
            continue
        low = acceleration[inside] < 2.0 * acceleration[inside].min()
        valley = int(inside[np.argmax(low)])
        moving = np.cumsum(power[: valley + 1] * centres[: valley + 1] ** 3)
        edge = int(np.searchsorted(moving, 0.99 * moving[-1]))
        least.append(float(4.0 * centres[edge]))
        most.append(float(centres[valley]))
    if not most:
        return Band(0.4 * rate_hz, 0.4 * rate_hz)
    lowest = min(float(np.median(least)), 0.4 * rate_hz)
    return Band(lowest, max(lowest, float(np.median(most))))
