"""`atkeson1986` ch. 5: optimal filtering, over a grid of noise and on a whole load."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.report import Figure, Series
from papers.atkeson_loads import set_ups
from papers.drawings import Drawing, line
from papers.mass_trials import (
    FORCE_NOISE,
    RATE_HZ,
    RUNS,
    SAMPLES,
    VELOCITY_NOISE,
    Trial,
    attenuation,
    cloud,
    example_gain,
    grid_trial,
    load_errors,
    redundant_noise,
)
from papers.rows import row

# Figures.

METHODS = ("differentiated", "integrated", "filtered")


def figures(runs: int = RUNS) -> list[Drawing]:
    """The same, drawn."""
    return [
        _cloud_drawing(),
        *_filter_drawings(),
        *_redundancy_drawings(),
        *_grid_drawings(runs),
        _load_drawing(),
    ]


def _cloud_drawing() -> Drawing:
    found = cloud()
    few = slice(0, 250)
    ends = np.array([-2.5, 2.5])
    figure = Figure(
        "Which error counts: along the force, or towards the line",
        "measured acceleration [m/s²]", "measured force [N]",
        (
            Series("measured", found.a[few], found.f[few], "printed"),
            Series("least squares", ends, found.plain * ends, "series"),
            Series("total least squares", ends, found.total * ends, "series"),
            Series("scaled by the noise", ends, found.scaled * ends, "series"),
            Series("true", ends, ends, "level"),
        ),
    )  # fmt: skip
    note = "noise 0.3 m/s² and 0.6 N; lines fitted to 20,000 points, 250 drawn"
    return Drawing("Fig. 5.3", figure, note)


def _filter_drawings() -> list[Drawing]:
    omega, force = example_gain()
    both = (
        line("force filter", omega, force),
        line("velocity filter", omega, force * omega),
    )
    formula = (
        line("1/√(ω² + 1)", omega, 1.0 / np.sqrt(omega**2 + 1.0), "level"),
        line("ω/√(ω² + 1)", omega, omega / np.sqrt(omega**2 + 1.0), "level"),
    )
    limits = (
        line("differentiator ω", omega[omega < 3], omega[omega < 3], "level"),
        line("integrator 1/ω", omega[omega > 0.5], 1 / omega[omega > 0.5], "level"),
    )
    return [
        Drawing(
            name,
            Figure(
                title, "ω [rad/s]", "gain", (*both, *beside),
                is_logarithmic=True, is_x_logarithmic=True,
            ),
        )
        for name, title, beside in (
            ("Fig. 5.4", "The optimal filters, and Eq. 5.52 and 5.53", formula),
            ("Fig. 5.5", "The same, a differentiator and an integrator", limits),
        )
    ]  # fmt: skip


def _redundancy_drawings() -> list[Drawing]:
    found, true = redundant_noise()
    shown = (
        ("velocity", "[(m/s)²/Hz]", found.first, found.first_noise, true[0]),
        ("force", "[N²/Hz]", found.second, found.second_noise, true[1]),
    )
    return [
        Drawing(
            "§5.4",
            Figure(
                f"Spectrum of the {name}, and of its noise as told from redundancy",
                "frequency [Hz]", f"density {unit}",
                (
                    line("measured", found.frequency, whole),
                    line("noise found", found.frequency, _positive(noise)),
                    line("true noise", found.frequency[[0, -1]], [level] * 2, "level"),
                ),
                is_logarithmic=True,
            ),
        )
        for name, unit, whole, noise, level in shown
    ]  # fmt: skip


def _grid_drawings(runs: int) -> list[Drawing]:
    made = []
    for force_noise in FORCE_NOISE:
        rmse = np.array(
            [grid_trial(v, force_noise, runs, 1).rmse for v in VELOCITY_NOISE]
        )
        figure = Figure(
            f"Error of the mass, force noise {100 * force_noise:.0f} %",
            "velocity noise [%]", "rms error [kg]",
            tuple(
                Series(name, 100.0 * np.array(VELOCITY_NOISE), column, "series")
                for name, column in zip(METHODS, rmse.T, strict=True)
            ),
            is_logarithmic=True, is_x_logarithmic=True,
        )  # fmt: skip
        made.append(Drawing("ch. 5, grid of noise", figure))
    return made


def _load_drawing() -> Drawing:
    errors = 1e3 * load_errors()
    index = np.arange(len(errors), dtype=float)
    figure = Figure(
        "Largest error of the bar's inertia", "", "error [10⁻³ kg m²]",
        (
            Series("differentiated, plain", index, errors[:, 0], "series"),
            Series("optimally filtered", index, errors[:, 1], "series"),
        ),
        is_logarithmic=True, is_stems=True,
        x_names=tuple(set_up.name for set_up in set_ups()),
    )  # fmt: skip
    return Drawing("ch. 5, ten parameters", figure)


def _positive(values: np.ndarray) -> np.ndarray:
    """What a logarithmic axis can show."""
    return np.where(values > 0.0, values, np.nan)


# Tables: our numbers beside the paper's.

__all__ = ["figures", "rows"]


def rows(runs: int = RUNS) -> list[dict[str, Any]]:
    """Figures 5.3 and 5.4, the grid of noise, and the whole load problem."""
    return [
        *_cloud_rows(),
        *_filter_rows(),
        _redundancy_row(),
        *_grid_rows(runs),
        *_load_rows(),
    ]


def _cloud_rows() -> list[dict[str, Any]]:
    found = cloud()
    return [
        row("Fig. 5.3", "slope by least squares [kg]", "attenuated: 1/1.09 = 0.917",
            f"{found.plain:.3f}", abs(found.plain - 1.0 / 1.09) < 0.02,
            "true 1 kg; noise 0.3 m/s² on accelerations of 1 m/s², 0.6 N on the force"),
        row("Fig. 5.3", "slope by total least squares, unscaled and scaled [kg]",
            "right when errors are scaled by their noise",
            f"{found.total:.3f}, {found.scaled:.3f}",
            abs(found.scaled - 1.0) < 0.02 < abs(found.total - 1.0)),
    ]  # fmt: skip


def _filter_rows() -> list[dict[str, Any]]:
    omega, force = example_gain()
    miss = float(np.abs(force * np.sqrt(omega**2 + 1.0) - 1.0).max())
    low, high = float((force * omega)[0] / omega[0]), float(force[-1] * omega[-1])
    return [
        row("Fig. 5.4", "largest deviation from 1/√(ω² + 1), relative", "0",
            f"{miss:.1e}", miss < 1e-6, "designed for the mass that it finds, 1 kg"),
        row("Fig. 5.5", f"velocity filter / ω at {omega[0]:.2f} rad/s, force filter "
            f"times ω at {omega[-1]:.0f} rad/s", "1 and 1 in the limit",
            f"{low:.3f}, {high:.3f}", min(low, high) > 0.8 and max(low, high) < 1.01),
    ]  # fmt: skip


def _redundancy_row() -> dict[str, Any]:
    found, true = redundant_noise()
    inside = (found.frequency > 0.5) & (found.frequency < 40.0)
    told = (found.first_noise, found.second_noise)
    ratios = [
        float(np.median(noise[inside]) / level)
        for noise, level in zip(told, true, strict=True)
    ]
    return row(
        "§5.4",
        "noise found over true noise, median from 0.5 to 40 Hz: velocity, force",
        "1 (Eq. 5.66, 5.67)",
        f"{ratios[0]:.2f}, {ratios[1]:.2f}",
        all(abs(ratio - 1.0) < 0.1 for ratio in ratios),
        "400 s with a known mass of 1 kg; noise 30 % and 100 % of the signals. Where "
        "they are far above the noise, the difference of two large spectra tells less",
    )


def _grid_rows(runs: int) -> list[dict[str, Any]]:
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
    return made


def _load_rows(runs: int = 12) -> list[dict[str, Any]]:
    """The full load problem on Table 2's set-ups, which the thesis left for later."""
    made = []
    for set_up, (before, after) in zip(set_ups(), load_errors(runs), strict=True):
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
