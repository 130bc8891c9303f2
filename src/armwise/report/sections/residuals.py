"""Residuals: what the model leaves of the torque."""

from __future__ import annotations

import numpy as np

from armwise.recordings import Samples
from armwise.report.report import Block, Curve, Figure, Section, Table, Words, finite
from armwise.report.subject import Subject
from armwise.report.thinning import (
    continued_time,
    points_per_curve,
    telling_rows,
    with_breaks,
)


def residuals_section(subject: Subject) -> Section:
    """Draw what is left, and say how much of it is not noise."""
    runs = [
        (name, samples, samples.tau - predicted)
        for name, samples, predicted in (
            ("fit", subject.fitted, subject.fit_prediction),
            ("validation", subject.validated, subject.validation_prediction),
        )
        if samples is not None and predicted is not None
    ]
    blocks: list[Block] = [_numbers(subject)]
    for j in range(subject.arm.dof) if runs else ():
        blocks.append(_figure(subject, j, runs))
    if not runs:
        blocks.append(Words("Not drawn: the data behind the estimate were not given."))
    checked = subject.validation
    return Section(
        "residuals",
        "Residuals",
        tuple(blocks),
        {
            "std": finite(subject.estimate.torque_std),
            "fit_whiteness": finite(subject.estimate.fit.whiteness),
            "validation_whiteness": finite(checked.whiteness) if checked else None,
        },
    )


def _numbers(subject: Subject) -> Table:
    fit, checked = subject.estimate.fit, subject.validation
    rows = tuple(
        (
            name,
            subject.estimate.torque_std[j],
            subject.torque_units[j],
            fit.whiteness[j],
            checked.whiteness[j] if checked else "not evaluated",
        )
        for j, name in enumerate(subject.arm.coordinate_names)
    )
    columns = ("joint", "standard deviation", "in", "fit", "validation")
    caption = (
        "Correlation of the residual from sample to sample: 0 is noise, 1 is something "
        "the model does not know (filtered data are never quite 0)."
    )
    return Table(columns, rows, caption, 3)


def _figure(
    subject: Subject, joint: int, runs: list[tuple[str, Samples, np.ndarray]]
) -> Figure:
    most = points_per_curve(12 * subject.arm.dof)
    curves = []
    last = 0.0
    for name, samples, residual in runs:
        rows = telling_rows(residual[:, joint], most)
        time = continued_time(samples)
        t = with_breaks(rows, time, samples)
        r = with_breaks(rows, residual[:, joint], samples)
        curves.append(Curve(name, t, r, "residual" if name == "fit" else "other"))
        last = max(last, float(time[-1]) if time.size else 0.0)
    band = 2.0 * float(subject.estimate.torque_std[joint])
    for level in (band, -band):
        x, y = np.array([0.0, last]), np.array([level, level])
        curves.append(Curve("±2 standard deviations of the fit", x, y, "level"))
    name = subject.arm.coordinate_names[joint]
    unit = subject.torque_units[joint]
    return Figure(name, "time [s]", f"residual [{unit}]", tuple(curves))
