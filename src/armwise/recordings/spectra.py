"""Spectra: noise on redundant signals, and the band in which there is motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Complex, Float

# Judgement: more samples refine a spectrum that is only averaged over bands.
LONGEST = 200_000
"""Samples used at most when a spectrum is only needed roughly: minutes at 1 kHz."""


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
    if first.shape != second.shape or first.ndim != 1:
        raise ArgumentError(
            f"Two signals of one length are needed, not {first.shape} and "
            f"{second.shape}."
        )
    # Judgement: some 31 half-overlapping windows; 256 samples at least, for resolution.
    length = segment or min(first.size, max(256, first.size // 16))
    frequency, power_1, power_2, cross = (
        spectrum[1:]  # at zero frequency a derivative says nothing
        for spectrum in cross_spectrum(first, second, rate_hz, length)
    )
    transfer = gain * (2j * np.pi * frequency) ** derivatives
    # Independent noises average out of the cross-spectrum, the signal does not.
    true_1 = np.real(cross / transfer)
    true_2 = np.real(np.conj(transfer) * cross)
    return NoiseSpectra(
        frequency=frequency,
        first=power_1,
        second=power_2,
        cross=cross,
        first_noise=np.clip(power_1 - true_1, 0.0, None),
        second_noise=np.clip(power_2 - true_2, 0.0, None),
        # 1e-300: silence at a frequency has a coherence of zero, not NaN.
        coherence=np.abs(cross) ** 2 / (power_1 * power_2 + 1e-300),
    )


def cross_spectrum(
    first: Float[np.ndarray, " samples"],
    second: Float[np.ndarray, " samples"],
    rate_hz: float,
    length: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return frequencies [Hz] and one-sided densities of both signals and across.

    Welch's method: Hann windows of `length` samples that overlap by half, each without
    its mean.
    """
    length = min(length, first.size)
    taper = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)
    spectra = []
    for signal in (first, second):
        windows = np.lib.stride_tricks.sliding_window_view(signal, length)
        # Half is the usual overlap of Hann windows, whose weights then sum to one.
        windows = windows[:: length - length // 2]
        centred = windows - windows.mean(axis=1, keepdims=True)
        spectra.append(np.fft.rfft(taper * centred))
    x, y = spectra
    # What is at −f is counted at f; zero and half the rate have no such partner.
    sides = np.ones(x.shape[1])
    sides[1 : (length + 1) // 2] = 2.0
    scale = sides / (len(x) * rate_hz * np.sum(taper**2))
    return (
        np.fft.rfftfreq(length, 1.0 / rate_hz),
        scale * np.sum(np.abs(x) ** 2, axis=0),
        scale * np.sum(np.abs(y) ** 2, axis=0),
        scale * np.sum(np.conj(x) * y, axis=0),
    )


def band_powers(
    signal: Float[np.ndarray, " samples"], rate_hz: float, seconds: float = 4.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return centres [Hz] and mean power densities of quarter-octave bands."""
    # Judgement: four seconds resolve a quarter of a hertz, well below an arm's motion.
    length = int(min(signal.size, max(64, seconds * rate_hz)))
    signal = signal[:LONGEST]
    frequency, power, _, _ = cross_spectrum(signal, signal, rate_hz, length)
    # From the third line on: in a Hann window the lines below hold what leaks from
    # drift.
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
    # Judgement: a joint that moves a thousandth of another shows noise only.
    for signal in positions[spread > 1e-3 * spread.max()]:
        centres, power = band_powers(signal, rate_hz)
        acceleration = power * centres**4
        fastest = int(np.argmax(power * centres**2))
        # Judgement: close to half the rate, what folds back hides where the valley is.
        inside = np.flatnonzero(centres[fastest:] < 0.4 * rate_hz) + fastest
        if not inside.size:
            continue
        # A factor of two in power is 3 dB.
        low = acceleration[inside] < 2.0 * acceleration[inside].min()
        valley = int(inside[np.argmax(low)])
        # Density × f² is the velocity's; one more f for bands whose width grows with f.
        moving = np.cumsum(power[: valley + 1] * centres[: valley + 1] ** 3)
        edge = int(np.searchsorted(moving, 0.99 * moving[-1]))
        least.append(float(4.0 * centres[edge]))
        most.append(float(centres[valley]))
    # Nothing moves, or there are too few samples: a low-pass that changes nothing.
    if not most:
        return Band(0.4 * rate_hz, 0.4 * rate_hz)
    lowest = min(float(np.median(least)), 0.4 * rate_hz)
    return Band(lowest, max(lowest, float(np.median(most))))
