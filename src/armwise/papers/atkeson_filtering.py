"""`atkeson1986` ch. 5: optimal filtering, over a grid of noise and on a whole load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.identification.load.mass_filter import (
    mass_by_differentiation,
    mass_by_integration,
    mass_by_optimal_filter,
)
from armwise.papers.atkeson_loads import inertia_errors, set_ups
from armwise.papers.rows import row
from armwise.recordings import noise_spectra

if TYPE_CHECKING:
    from jaxtyping import Float

RATE_HZ = 100.0
SAMPLES = 1000
BAND_HZ = (0.5, 8.0)
MASS = 1.0

VELOCITY_NOISE = (0.02, 0.05, 0.1, 0.3)
"""Noise of the velocity as a fraction of its root mean square."""

FORCE_NOISE = (0.03, 0.1, 0.3, 1.0)
"""Noise of the force as a fraction of its root mean square."""

_CALIBRATION = 40
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


def grid_trial(
    velocity_noise: float, force_noise: float, runs: int, seed: int
) -> Trial:
    """Run one cell of the grid; the noise spectra come from a calibration run."""
    random = np.random.default_rng(seed)
    v, f = _measured(random, _CALIBRATION * SAMPLES, velocity_noise, force_noise)
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


def rows(runs: int = 200) -> list[dict[str, Any]]:
    """The grid: root-mean-square error of the three, and plain bias against theory."""
    made, worst = [], 0.0
    for velocity_noise in VELOCITY_NOISE:
        bias = []
        for force_noise in FORCE_NOISE:
            trial = grid_trial(velocity_noise, force_noise, runs, seed=1)
            made.append(_cell(velocity_noise, force_noise, trial))
            worst = max(worst, float(trial.rmse[2] / trial.rmse[:2].min()))
            bias.append(trial)
        made.append(_bias_row(velocity_noise, bias, runs))
    made.append(
        row(
            "ch. 5, grid of noise",
            "largest ratio of the filtered error to the better of the other two",
            "at most 1 in every cell",
            f"{worst:.2f}",
            worst <= 1.0,
            f"{runs} runs of {SAMPLES / RATE_HZ:.0f} s a cell",
        )
    )
    return [*made, *_load_rows()]


def _load_rows(runs: int = 12) -> list[dict[str, Any]]:
    """The full load problem on Table 2's set-ups, which the thesis left for later."""
    made = []
    for set_up in set_ups():
        plain, optimal = (
            np.abs(inertia_errors(set_up, method, runs)).max(axis=(1, 2))
            for method in ("paper", "optimal")
        )
        before, after = float(np.median(plain)), float(np.median(optimal))
        is_puma = set_up.name.startswith("PUMA")
        made.append(
            row(
                "ch. 5, ten parameters",
                f"{set_up.name}: largest inertia error [10⁻³ kg m²], differentiated "
                f"at {set_up.cutoff_hz:.0f} Hz and plain; optimally filtered",
                "not done",
                f"{1e3 * before:.1f}; {1e3 * after:.1f} ({before / after:.1f} times "
                "lower)",
                before >= 2.0 * after if is_puma else None,
                f"median of {runs} runs; the paper's motion and noise of its sensors",
            )
        )
    return made


def _cell(velocity_noise: float, force_noise: float, trial: Trial) -> dict[str, Any]:
    a, b, c = trial.rmse
    return row(
        "ch. 5, grid of noise",
        f"rms error of 1 kg [kg]: velocity noise {100 * velocity_noise:.0f} %, force "
        f"noise {100 * force_noise:.0f} %",
        "filtered least",
        f"differentiated {a:.4f}, integrated {b:.4f}, filtered {c:.4f}",
        c <= min(a, b),
        "noise spectra from redundant sensing on a run with a known mass",
    )


def _bias_row(velocity_noise: float, trials: list[Trial], runs: int) -> dict[str, Any]:
    quiet = trials[0]  # the least force noise shows the bias best
    expected = np.array(attenuation(velocity_noise))
    spread = quiet.std[:2] / np.sqrt(runs)
    close = np.all(np.abs(quiet.mean[:2] - expected) < 4.0 * spread + 0.005)
    return row(
        "ch. 5, plain least squares is attenuated",
        f"mean of 1 kg [kg] at velocity noise {100 * velocity_noise:.0f} %: "
        "differentiated, integrated; filtered",
        f"{expected[0]:.3f}, {expected[1]:.3f}; 1.000 (theory)",
        f"{quiet.mean[0]:.3f}, {quiet.mean[1]:.3f}; {quiet.mean[2]:.3f}",
        bool(close) and abs(quiet.mean[2] - 1.0) < 0.02,
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
