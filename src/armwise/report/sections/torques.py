"""Measured and predicted torque, joint by joint."""

from __future__ import annotations

import numpy as np

from armwise.recordings import Samples
from armwise.report.report import Block, Curve, Figure, Section, Words
from armwise.report.subject import Subject
from armwise.report.thinning import (
    continued_time,
    points_per_curve,
    telling_rows,
    with_breaks,
)


def torques_section(subject: Subject) -> Section:
    """Draw the torques of data left out first, then those of the fit."""
    runs = [
        ("validation", subject.validated, subject.validation_prediction),
        ("fit", subject.fitted, subject.fit_prediction),
    ]
    blocks: list[Block] = []
    shown: list[str] = []
    for name, samples, predicted in runs:
        if samples is None or predicted is None:
            continue
        folded = bool(shown)
        blocks += _figures(subject, name, samples, predicted, folded)
        shown.append(name)
    if subject.validated is None:
        note = "Validation was not evaluated: no data were left out of the fit."
        blocks.insert(0, Words(note))
    if not shown:
        blocks.append(Words("The data behind the estimate were not given."))
    return Section(
        "torques", "Measured and predicted torque", tuple(blocks), {"shown": shown}
    )


def _figures(
    subject: Subject, run: str, samples: Samples, predicted: np.ndarray, folded: bool
) -> list[Figure]:
    most = points_per_curve(12 * subject.arm.dof)
    time = continued_time(samples)
    figures = []
    for j, name in enumerate(subject.arm.coordinate_names):
        measured = samples.tau[:, j]
        rows = telling_rows(measured - predicted[:, j], most)
        t = with_breaks(rows, time, samples)
        curves = (
            Curve("measured", t, with_breaks(rows, measured, samples), "measured"),
            Curve(
                "predicted", t, with_breaks(rows, predicted[:, j], samples), "predicted"
            ),
        )
        unit = subject.torque_units[j]
        title = f"{name}, {run} data"
        figures.append(Figure(title, "time [s]", unit, curves, is_folded=folded))
    return figures
