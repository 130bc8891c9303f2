"""f = m a with noise on both: the prototype of `atkeson1986` ch. 5."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.loads import (
    MassEstimate,
    mass_by_differentiation,
    mass_by_integration,
    mass_by_optimal_filter,
)
from armwise.recordings import NoiseSpectra, noise_spectra
from papers.atkeson_loads import inertia_errors, set_ups

if TYPE_CHECKING:
    from jaxtyping import Float

RATE_HZ = 100.0
SAMPLES = 1000
BAND_HZ = (0.5, 8.0)
MASS = 1.0
RUNS = 200
"""Of each cell of the grid."""

VELOCITY_NOISE = (0.02, 0.05, 0.1, 0.3)
"""Noise of the velocity as a fraction of its root mean square."""

FORCE_NOISE = (0.03, 0.1, 0.3, 1.0)
"""Noise of the force as a fraction of its root mean square."""

CALIBRATION = 40
"""The noise is told from a run with a known mass, this many times as long."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What became of many noisy runs: differentiated, integrated, filtered.

    Attributes:
        mean, std, rmse: Of the mass found in [kg]; the truth is 1 kg.
    """

    mean: Float[np.ndarray, " 3"]
    std: Float[np.ndarray, " 3"]
    rmse: Float[np.ndarray, " 3"]


def signals(
    random: np.random.Generator, samples: int
) -> tuple[Float[np.ndarray, " samples"], Float[np.ndarray, " samples"]]:
    """Draw a velocity of unit size within the band, and its derivative."""
    frequency = np.fft.rfftfreq(samples, 1.0 / RATE_HZ)
    inside = (frequency > BAND_HZ[0]) & (frequency < BAND_HZ[1])
    drawn = random.normal(size=(2, int(inside.sum())))
    spectrum = np.zeros(frequency.size, dtype=complex)
    spectrum[inside] = (drawn[0] + 1j * drawn[1]) / frequency[inside]
    velocity = np.fft.irfft(spectrum, samples)
    acceleration = np.fft.irfft(2j * np.pi * frequency * spectrum, samples)
    size = float(velocity.std())
    return velocity / size, acceleration / size


def attenuation(velocity_noise: float) -> tuple[float, float]:
    """Mass [kg] that theory says plain least squares finds, noise making it small.

    m Σ|A|² / (Σ|A|² + Σ ω²|N|²) when differentiating, m Σ|V|² / (Σ|V|² + Σ|N|²) when
    integrating, |N|² the same at all frequencies and V as in `signals`.
    """
    frequency = np.fft.rfftfreq(SAMPLES, 1.0 / RATE_HZ)[1:-1]
    inside = (frequency > BAND_HZ[0]) & (frequency < BAND_HZ[1])
    power = np.where(inside, frequency**-2.0, 0.0)
    power = power / power.sum()
    noise = velocity_noise**2 / frequency.size
    squares = frequency**2
    differentiated = power @ squares / (power @ squares + noise * squares.sum())
    integrated = 1.0 / (1.0 + noise * frequency.size)
    return float(MASS * differentiated), float(MASS * integrated)


@cache
def grid_trial(
    velocity_noise: float, force_noise: float, runs: int, seed: int
) -> Trial:
    """Run one cell of the grid; the noise spectra come from a calibration run."""
    random = np.random.default_rng(seed)
    v, f = _measured(random, CALIBRATION * SAMPLES, velocity_noise, force_noise)
    noise = noise_spectra(v, f, RATE_HZ, gain=MASS, segment=SAMPLES)
    found = np.empty((runs, 3))
    for k in range(runs):
        v, f = _measured(random, SAMPLES, velocity_noise, force_noise)
        found[k] = (
            mass_by_differentiation(f, v, RATE_HZ),
            mass_by_integration(f, v, RATE_HZ),
            mass_by_optimal_filter(f, v, RATE_HZ, noise).mass,
        )
    rmse = np.sqrt(np.mean((found - MASS) ** 2, axis=0))
    return Trial(found.mean(axis=0), found.std(axis=0), rmse)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Fig. 5.3: points with noise on both axes, and the lines put through them.

    Attributes:
        a, f: Measured acceleration in [m/s²] and force in [N].
        plain: Slope by least squares in [kg].
        total: By total least squares: the smallest singular vector of [a f].
        scaled: The same with both divided by their noise.
    """

    a: Float[np.ndarray, " points"]
    f: Float[np.ndarray, " points"]
    plain: float
    total: float
    scaled: float


@cache
def cloud(
    noise: tuple[float, float] = (0.3, 0.6), points: int = 20_000, seed: int = 0
) -> Cloud:
    """Draw accelerations of unit size, their forces, and noise on both."""
    random = np.random.default_rng(seed)
    true = random.normal(size=points)
    a = true + noise[0] * random.normal(size=points)
    f = MASS * true + noise[1] * random.normal(size=points)
    return Cloud(
        a, f, float(a @ f / (a @ a)), _slope(a, f), _slope(a, f, noise)
    )  # fmt: skip


def _slope(
    a: np.ndarray, f: np.ndarray, noise: tuple[float, float] = (1.0, 1.0)
) -> float:
    data = np.stack([a / noise[0], f / noise[1]], axis=1)
    x, y = np.linalg.svd(data, full_matrices=False)[2][-1]
    return float(-x / noise[0] / (y / noise[1]))


@cache
def example_filters(samples: int = 8 * SAMPLES, seed: int = 0) -> MassEstimate:
    """§5.3: the filters for white noise of variance 1 on both, mass 1."""
    random = np.random.default_rng(seed)
    v, a = signals(random, samples)
    frequency = np.fft.rfftfreq(samples, 1.0 / RATE_HZ)[1:]
    one = np.ones(frequency.size)
    noise = NoiseSpectra(frequency, one, one, one.astype(complex), one, one, 0.0 * one)
    return mass_by_optimal_filter(MASS * a, v, RATE_HZ, noise)


def example_gain() -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, " w"]]:
    """ω in [rad/s], even on a log scale, and the force filter, scaled at the lowest."""
    found = example_filters()
    rows = np.unique(np.geomspace(1, found.frequency.size, 150).astype(int)) - 1
    omega, gain = 2.0 * np.pi * found.frequency[rows], found.force_filter[rows]
    return omega, gain / gain[0] / np.sqrt(omega[0] ** 2 + 1.0)


@cache
def redundant_noise(
    velocity_noise: float = 0.3, force_noise: float = 1.0, seed: int = 2
) -> tuple[NoiseSpectra, tuple[float, float]]:
    """§5.4: noise told from redundancy, and the true densities, per [Hz]."""
    random = np.random.default_rng(seed)
    v, a = signals(random, CALIBRATION * SAMPLES)
    noise = random.normal(size=(2, v.size))
    sizes = velocity_noise, force_noise * MASS * float(a.std())
    found = noise_spectra(
        v + sizes[0] * noise[0],
        MASS * a + sizes[1] * noise[1],
        RATE_HZ,
        gain=MASS,
        segment=SAMPLES,
    )
    return found, (2.0 * sizes[0] ** 2 / RATE_HZ, 2.0 * sizes[1] ** 2 / RATE_HZ)


@cache
def load_errors(runs: int = 12) -> Float[np.ndarray, "set_ups 2"]:
    """The whole load: largest inertia error [kg m²], plain as printed and filtered."""
    return np.array(
        [
            [
                np.median(np.abs(inertia_errors(x, method, runs)).max(axis=(1, 2)))
                for method in ("paper", "optimal")
            ]
            for x in set_ups()
        ]
    )


def _measured(
    random: np.random.Generator, samples: int, velocity_noise: float, force_noise: float
) -> tuple[np.ndarray, np.ndarray]:
    v, a = signals(random, samples)
    force = MASS * a
    noise = random.normal(size=(2, samples))
    return (
        v + velocity_noise * noise[0],
        force + force_noise * float(force.std()) * noise[1],
    )
