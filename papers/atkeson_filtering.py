"""`atkeson1986` ch. 5: optimal filtering, over a grid of noise and on a whole load."""

from __future__ import annotations

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
from papers.rows import Row, agrees, claim, own, recovered

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


def rows(runs: int = RUNS) -> list[Row]:
    """Figures 5.3 and 5.4, the grid of noise, and the whole load problem."""
    return [
        *_cloud_rows(),
        *_filter_rows(),
        _redundancy_row(),
        *_grid_rows(runs),
        *_load_rows(),
    ]


def _cloud_rows() -> list[Row]:
    found = cloud()
    note = "true 1 kg; noise 0.3 m/s² on accelerations of 1 m/s², 0.6 N on the force"
    return [
        own("Fig. 5.3", "slope by least squares [kg]",
            "1/1.09 = 0.917, what its own noise makes of 1 kg in theory", found.plain,
            above=0.897, below=0.937, note=note),
        recovered("Fig. 5.3", "slope by total least squares, scaled by the noise [kg]",
                  1.0, found.scaled, within=0.02, note=note),
        claim("Fig. 5.3", "error of the slope, unscaled over scaled",
              "errors must be scaled by their noise",
              abs(found.total - 1.0) / abs(found.scaled - 1.0), above=3.0,
              why="scaling removes most of the error",
              shown=f"{abs(found.total - 1.0) / abs(found.scaled - 1.0):.0f} "
              f"({found.total:.3f} and {found.scaled:.3f} kg)", note=note),
    ]  # fmt: skip


def _filter_rows() -> list[Row]:
    omega, force = example_gain()
    at = [int(np.abs(omega - w).argmin()) for w in (0.1, 1.0, 10.0)]
    names = ", ".join(f"{omega[k]:.3g}" for k in at)
    printed = 1.0 / np.sqrt(omega[at] ** 2 + 1.0)
    note = "designed for the mass that it finds, 1 kg"
    low, high = float(force[0]), float(force[-1] * omega[-1])
    return [
        agrees("Fig. 5.4", f"gain of the force filter at {names} rad/s (Eq. 5.52)",
               printed, force[at], within=1e-4, note=note, at="Eq. 5.52"),
        agrees("Fig. 5.4", f"gain of the velocity filter at {names} rad/s (Eq. 5.53)",
               omega[at] * printed, omega[at] * force[at], within=1e-4, note=note,
               at="Eq. 5.53"),
        agrees("Fig. 5.5", f"velocity filter / ω at {omega[0]:.2f} rad/s, force filter "
               f"times ω at {omega[-1]:.0f} rad/s: differentiator and integrator in "
               "the limit", (1.0, 1.0), (low, high), within=0.02, at="Eqs. 5.54, 5.55"),
    ]  # fmt: skip


def _redundancy_row() -> Row:
    found, true = redundant_noise()
    inside = (found.frequency > 0.5) & (found.frequency < 40.0)
    spectra = (found.first_noise, found.second_noise)
    ratios = [
        float(np.median(noise[inside]) / level)
        for noise, level in zip(spectra, true, strict=True)
    ]
    return recovered(
        "§5.4",
        "noise found over true noise, median from 0.5 to 40 Hz: velocity, force "
        "(Eq. 5.66, 5.67)",
        (1.0, 1.0),
        ratios,
        note="400 s with a known mass of 1 kg; noise 30 % and 100 % of the signals. "
        "Where they are far above the noise, the difference of two large spectra "
        "tells less",
    )


def _grid_rows(runs: int) -> list[Row]:
    made = []
    for velocity_noise in VELOCITY_NOISE:
        bias = []
        for force_noise in FORCE_NOISE:
            trial = grid_trial(velocity_noise, force_noise, runs, seed=1)
            made.append(_cell(velocity_noise, force_noise, trial, runs))
            bias.append(trial)
        made.append(_bias_row(velocity_noise, bias, runs))
    return made


def _load_rows(runs: int = 12) -> list[Row]:
    """The full load problem on Table 2's set-ups, which the thesis left for later."""
    return [
        own(
            "ch. 5, ten parameters",
            f"{set_up.name}: largest inertia error, differentiated at "
            f"{set_up.cutoff_hz:.0f} Hz and plain, over optimally filtered",
            "not done in the thesis",
            before / after,
            above=2.0,
            shown=f"{before / after:.1f} ({1e3 * before:.1f} and {1e3 * after:.1f} "
            "10⁻³ kg m²)",
            note=f"median of {runs} runs; the paper's motion and noise of its sensors",
        )
        for set_up, (before, after) in zip(set_ups(), load_errors(runs), strict=True)
    ]


def _cell(velocity_noise: float, force_noise: float, trial: Trial, runs: int) -> Row:
    a, b, c = trial.rmse
    return claim(
        "ch. 5, grid of noise",
        f"rms error of 1 kg, filtered over the better of the other two: velocity noise "
        f"{100 * velocity_noise:.0f} %, force noise {100 * force_noise:.0f} %",
        "the optimal filter is best (Eq. 5.51)",
        c / min(a, b),
        below=1.0,
        why="the best in every cell",
        shown=f"{c / min(a, b):.2f} (differentiated {a:.4f}, integrated {b:.4f}, "
        f"filtered {c:.4f} kg)",
        note=f"{runs} runs of {SAMPLES / RATE_HZ:.0f} s; noise spectra from redundant "
        "sensing on a run with a known mass",
    )


def _bias_row(velocity_noise: float, trials: list[Trial], runs: int) -> Row:
    quiet = trials[0]  # the least force noise shows the bias best
    expected = np.array(attenuation(velocity_noise))
    spread = quiet.std[:2] / np.sqrt(runs)
    width = np.append(4.0 * spread + 0.005, 0.02)
    target = np.append(expected, 1.0)
    return own(
        "ch. 5, plain least squares is attenuated",
        f"mean of 1 kg [kg] at velocity noise {100 * velocity_noise:.0f} %: "
        "differentiated, integrated; filtered",
        f"theory: {expected[0]:.3f}, {expected[1]:.3f}; 1",
        quiet.mean[:3],
        above=target - width,
        below=target + width,
    )
