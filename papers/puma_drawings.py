"""Figures 1 to 5 and Table 1 of `izaguirre1992`, drawn."""

from __future__ import annotations

import numpy as np

from armwise.report import Figure, Series
from papers.drawings import Drawing, joint_names, line, lines, tics
from papers.puma_reduction import both_fits, full_samples, reduction, ten_fits
from papers.puma_table_1 import table_1_std

SHOWN = 0
"""Which of the ten trajectories the figures show."""


def figures() -> list[Drawing]:
    """One trajectory, its differences, its torques under both models, all averages."""
    return [*_motion_drawings(), *_torque_drawings(), _table_1_drawing()]


def _motion_drawings() -> list[Drawing]:
    data = reduction().data[SHOWN]
    shown = (
        ("Fig. 1", "Joint positions", "position [°]", data.q),
        ("Fig. 2", "Velocities by central differences", "velocity [°/s]", data.qd),
        ("Fig. 3", "Accelerations by central differences", "acceleration [°/s²]",
         data.qdd),
    )  # fmt: skip
    return [
        Drawing(
            name,
            Figure(
                title, "time [s]", unit, lines(joint_names(6), data.time, np.rad2deg(y))
            ),
            "one of ten polynomials through random points; the paper's are not printed",
        )
        for name, title, unit, y in shown
    ]


def _torque_drawings() -> list[Drawing]:
    data = full_samples()[SHOWN]
    shown = zip(("Fig. 4", "Fig. 5"), both_fits(), strict=True)
    return [
        Drawing(
            name,
            Figure(
                f"Torque of joint {j + 1}", "time [s]", "torque [N m]",
                (
                    line("measured", data.time, data.tau[:, j], "measured"),
                    line("estimated", data.time, fit.predict(data)[:, j], "predicted"),
                ),
            ),
        )
        for name, fit in shown
        for j in range(6)
    ]  # fmt: skip


def _table_1_drawing() -> Drawing:
    fits = ten_fits()
    index = np.arange(len(fits.names), dtype=float)
    scale = table_1_std(fits.names)
    away = (fits.values.mean(axis=0) - fits.truth) / scale
    spread = fits.values.std(axis=0, ddof=1) / scale
    figure = Figure(
        "Average of ten fits, from the printed one",
        "",
        "in printed standard deviations",
        (
            Series("ours", index, away, "series"),
            tics("our own standard deviation", index, away, spread),
        ),
        is_stems=True,
        x_names=fits.names,
    )
    return Drawing("Table 1", figure)
