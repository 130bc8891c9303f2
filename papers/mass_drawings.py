"""The figures of `atkeson1986` ch. 5, drawn."""

from __future__ import annotations

import numpy as np

from armwise.report import Figure, Series
from papers.atkeson_loads import set_ups
from papers.drawings import Drawing, line
from papers.mass_trials import (
    FORCE_NOISE,
    RUNS,
    VELOCITY_NOISE,
    cloud,
    example_gain,
    grid_trial,
    load_errors,
    redundant_noise,
)

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
