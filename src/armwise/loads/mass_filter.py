"""The prototype of optimal filtering: one mass, force and velocity measured.

f = m dv/dt with noise on both (`atkeson1986` ch. 5). Differentiating the velocity
amplifies its noise at high frequency, integrating the force amplifies bias and drift at
low frequency. With the noise spectra known, the error m A − F has the spectrum
m² S_na + S_nf, S_na = ω² S_nv, and weighing by its inverse decides at each frequency:
the same filter 1/√(m² S_na + S_nf) on both signals, then total least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.loads.noise_spectrum import non_negative
from armwise.recordings import NoiseSpectra

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class MassEstimate:
    """A mass and the filters that found it.

    Attributes:
        mass: In [kg].
        std: Its standard deviation in [kg].
        frequency: In [Hz].
        force_filter: Gain on the force at those frequencies.
        velocity_filter: Gain on the velocity: the same, times ω.
        iterations: Times the filter was designed anew for a better mass.
    """

    mass: float
    std: float
    frequency: Float[np.ndarray, " frequencies"]
    force_filter: Float[np.ndarray, " frequencies"]
    velocity_filter: Float[np.ndarray, " frequencies"]
    iterations: int


def mass_by_differentiation(
    force: Float[np.ndarray, " samples"],
    velocity: Float[np.ndarray, " samples"],
    rate_hz: float,
) -> float:
    """Differentiate the velocity, then least squares: m = a·f / a·a.

    Noise on the velocity makes it too small, by Σ|A|² / (Σ|A|² + Σ ω²|N_v|²).
    """
    a, f, _ = _spectra(force, velocity, rate_hz)
    return float(np.real(np.vdot(a, f)) / np.real(np.vdot(a, a)))


def mass_by_integration(
    force: Float[np.ndarray, " samples"],
    velocity: Float[np.ndarray, " samples"],
    rate_hz: float,
) -> float:
    """Integrate the force, then least squares against the velocity.

    Noise on the velocity makes it too small, by Σ|V|² / (Σ|V|² + Σ|N_v|²).
    """
    a, f, omega = _spectra(force, velocity, rate_hz)
    v, momentum = a / (1j * omega), f / (1j * omega)
    return float(np.real(np.vdot(v, momentum)) / np.real(np.vdot(v, v)))


def mass_by_optimal_filter(
    force: Float[np.ndarray, " samples"],
    velocity: Float[np.ndarray, " samples"],
    rate_hz: float,
    noise: NoiseSpectra,
    iterations: int = 50,
) -> MassEstimate:
    """Filter both signals optimally, then total least squares; iterate.

    Minimises Σ |m A − F|² / (m² S_na + S_nf), the maximum of the likelihood. For a
    given filter that is an eigenvalue problem (Koopmans 1937); the filter depends on
    the mass, so the two alternate until the mass stays.

    Args:
        force: In [N].
        velocity: In [m/s], evenly spaced like the force.
        rate_hz: Their rate in [Hz].
        noise: Spectra of the noise on velocity (first) and force (second), as from
            `noise_spectra` on a run with a known mass.
        iterations: At most.
    """
    a, f, omega = _spectra(force, velocity, rate_hz)
    frequency = omega / (2.0 * np.pi)
    noise_v = _smooth(noise.frequency, noise.first_noise, noise.first, frequency)
    noise_f = _smooth(noise.frequency, noise.second_noise, noise.second, frequency)
    noise_a = omega**2 * noise_v
    mass = mass_by_integration(force, velocity, rate_hz)
    step = 0
    while step < iterations:
        step += 1
        weight = 1.0 / (mass**2 * noise_a + noise_f)
        renewed = _total_least_squares(a, f, weight, noise_a, noise_f, mass)
        moved = abs(renewed - mass)
        mass = renewed
        if moved < 1e-9 * abs(mass):
            break
    gain = np.sqrt(1.0 / (mass**2 * noise_a + noise_f))
    gain = gain / gain.max()
    density = 2.0 / (rate_hz * len(force) * _WINDOW_POWER)
    true = np.maximum(np.abs(a) ** 2 * density - noise_a, 0.0)
    information = 2.0 * np.sum(true / (mass**2 * noise_a + noise_f)) / _WINDOW_LEAK
    std = float(1.0 / np.sqrt(max(information, 1e-300)))
    return MassEstimate(mass, std, frequency, gain, gain * omega, step)


def _total_least_squares(
    a: np.ndarray,
    f: np.ndarray,
    weight: np.ndarray,
    noise_a: np.ndarray,
    noise_f: np.ndarray,
    mass: float,
) -> float:
    """Smallest eigenvector of the filtered data's matrix against the noise's own.

    Frequencies whose error is larger than expected hold back, as the likelihood says:
    their noise is weighed by the squared error they show.
    """
    error = np.abs(mass * a - f) ** 2
    expected = np.sum(error * weight) / len(a)
    share = error * weight / expected
    M = np.array(
        [
            [np.sum(weight * np.abs(a) ** 2), np.sum(weight * np.real(np.conj(a) * f))],
            [0.0, np.sum(weight * np.abs(f) ** 2)],
        ]
    )
    M[1, 0] = M[0, 1]
    N = np.diag([np.sum(weight * noise_a * share), np.sum(weight * noise_f * share)])
    root = np.sqrt(np.diag(N))
    values, vectors = np.linalg.eigh(M / np.outer(root, root))
    v = vectors[:, int(np.argmin(values))] / root
    return float(-v[0] / v[1])


_WINDOW_POWER = 0.375
"""Mean square of Hann's window."""

_WINDOW_LEAK = 1.944
"""How many frequencies one independent number of a Hann-windowed record takes up."""


def _spectra(
    force: np.ndarray, velocity: np.ndarray, rate_hz: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return spectra of acceleration and force, and ω, without zero and Nyquist."""
    if force.shape != velocity.shape or force.ndim != 1 or force.size < 16:
        raise ArgumentError(
            f"Force and velocity must be two signals of one length, not "
            f"{force.shape} and {velocity.shape}."
        )
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(force.size) / force.size)
    turn = 2.0 * np.pi / force.size
    slope = 0.5 * turn * np.sin(turn * np.arange(force.size)) * rate_hz
    kept = slice(1, (force.size - 1) // 2)
    omega = 2.0 * np.pi * np.fft.rfftfreq(force.size, 1.0 / rate_hz)[kept]
    # (window · v)' = window · a + window' · v, so the window costs no accuracy.
    v = velocity - velocity.mean()
    a = 1j * omega * np.fft.rfft(window * v)[kept] - np.fft.rfft(slope * v)[kept]
    f = np.fft.rfft(window * force)[kept]
    return a, f, omega


def _smooth(
    frequency: np.ndarray, density: np.ndarray, total: np.ndarray, wanted: np.ndarray
) -> Float[np.ndarray, " wanted"]:
    """Draw a drift and a white part through a noise spectrum told from redundancy.

    Where the signal is strong its noise is a small difference of large numbers: those
    frequencies count by the inverse square of the whole spectrum.
    """
    slowest = float(frequency[0])

    def unit(f: np.ndarray) -> np.ndarray:
        return np.stack([(slowest / f) ** 2, np.ones_like(f)])

    shapes = unit(frequency)
    weighted = shapes / np.maximum(total, 1e-12 * float(total.max())) ** 2
    M, v = weighted @ shapes.T, weighted @ density
    strengths = non_negative(M[None], v[None])[0]
    floor = 1e-6 * float(np.mean(total)) + 1e-300
    return np.maximum(strengths @ unit(wanted), floor)
