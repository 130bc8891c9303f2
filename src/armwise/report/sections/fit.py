"""Sections on the fit: summary, warnings, torques, residuals, spectrum, preparation."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from armwise.recordings import Samples
from armwise.report.report import (
    Block,
    BulletList,
    Cell,
    Figure,
    Paragraph,
    ReportTable,
    Role,
    Section,
    Series,
    continued_time,
    envelope_rows,
    finite,
    points_per_curve,
    with_breaks,
)
from armwise.report.subject import BAND_LEVEL, PredictedRun, Subject, judge


def summary_section(subject: Subject) -> Section:
    """Say in a few lines whether the model can be trusted."""
    estimate = subject.estimate
    judgements = judge(subject)
    extra = len(estimate.columns.friction)
    terms = f" and {extra} friction terms" if extra else ""
    opening = (
        f"{subject.base_parameter_count} base parameters{terms} of {subject.arm.name} "
        f"({subject.arm.dof} joints) by {estimate.method} from {estimate.fit.samples} "
        "samples."
    )
    verdicts = ReportTable(
        ("question", "verdict", "because"),
        tuple((j.question, j.verdict, j.why) for j in judgements),
        "Verdicts",
    )
    # The validation error stands beside that of the fit, never instead of it.
    checked = subject.validation
    blocks: list[Block] = [Paragraph(opening), verdicts, _errors(subject)]
    band = subject.band
    if band is not None:
        blocks.append(Paragraph(_band_in_words(subject, band)))
    return Section(
        "summary",
        "Summary",
        tuple(blocks),
        {
            "arm": subject.arm.name,
            "method": estimate.method,
            "base_parameter_count": subject.base_parameter_count,
            "condition_number": finite([estimate.condition_number])[0],
            "verdicts": [
                {"question": j.question, "verdict": j.verdict, "because": j.why}
                for j in judgements
            ],
            "fit": estimate.fit.to_dict(),
            "validation": checked.to_dict() if checked else None,
            "band": None
            if band is None
            else {"level": BAND_LEVEL, "holds": band.tolist()},
            "notes": list(estimate.notes),
        },
    )


def _band_in_words(subject: Subject, holds: np.ndarray) -> str:
    fractions = ", ".join(
        f"{name} {100 * x:.0f} %"
        for name, x in zip(subject.arm.coordinate_names, holds, strict=True)
    )
    return (
        f"The {100 * BAND_LEVEL:.0f} % band of draws from this uncertainty, with what "
        f"the fit left unexplained, holds of the torques not used to fit: {fractions}."
    )


def _errors(subject: Subject) -> ReportTable:
    fit, checked = subject.estimate.fit, subject.validation
    rows = []
    for j, name in enumerate(subject.arm.coordinate_names):
        unit = subject.torque_units[j]
        errors: tuple[Cell, ...] = ("not evaluated", "not evaluated")
        if checked is not None:
            errors = (100 * checked.relative_error[j], checked.rmse[j])
        row = (
            name,
            100 * fit.relative_error[j],
            fit.rmse[j],
            *errors,
            f"{fit.r2[j]:.4f}",
            unit,
        )
        rows.append(row)
    columns = (
        "joint",
        "fit error [%]",
        "fit RMSE",
        "validation error [%]",
        "validation RMSE",
        "fit R²",
        "RMSE in",
    )
    caption = "Unexplained torque: error is ‖τ − τ̂‖ / ‖τ‖."
    return ReportTable(columns, tuple(rows), caption, 3)


# Warnings.


def warnings_section(subject: Subject) -> Section:
    """Repeat every warning, and what the estimate itself remarks."""
    notes, warnings = subject.estimate.notes, subject.estimate.warnings
    texts = [warning.text for warning in warnings]
    if warnings:
        rows = tuple((warning.code, warning.text) for warning in warnings)
        first: Block = ReportTable(("code", "warning"), rows)
    elif subject.fitted is None:
        first = Paragraph("Not evaluated: the data behind the estimate were not given.")
    else:
        first = Paragraph("The residuals show nothing wrong with the data.")
    blocks = (first, BulletList(notes)) if notes else (first,)
    return Section(
        "warnings",
        "Warnings",
        blocks,
        {
            "warnings": None if subject.fitted is None else texts,
            "codes": [warning.code for warning in warnings],
            "notes": list(notes),
        },
    )


# Measured and predicted torque, joint by joint.


def torques_section(subject: Subject) -> Section:
    """Draw the torques of validation data first, then those of the fit."""
    blocks: list[Block] = []
    # Validation comes first and open, the fit folded: it is the harder test.
    for k, run in enumerate(subject.runs):
        blocks += _figures(subject, run, k > 0)
    shown = [run.name for run in subject.runs]
    if subject.validated is None:
        note = (
            "Validation was not evaluated: there were no data besides those of the fit."
        )
        blocks.insert(0, Paragraph(note))
    if not shown:
        blocks.append(Paragraph("The data behind the estimate were not given."))
    return Section(
        "torques", "Measured and predicted torque", tuple(blocks), {"shown": shown}
    )


# Judgement: as many as two rows of small figures on a wide page.
_SHOWN = 6
"""Joints whose torques are shown at once; those of further ones are folded."""


def _figures(subject: Subject, run: PredictedRun, folded: bool) -> list[Figure]:
    return [
        torque_figure(
            subject, j, f"{name}, {run.name} data", run, folded or j >= _SHOWN
        )
        for j, name in enumerate(subject.arm.coordinate_names)
    ]


def torque_figure(
    subject: Subject,
    joint: int,
    title: str,
    run: PredictedRun,
    is_folded: bool = False,
) -> Figure:
    """Draw a joint's torque: measured, described, identified; the residual below.

    Args:
        subject: Whose.
        joint: Which of its coordinates.
        title: Of the figure.
        run: The motion and its torques.
        is_folded: Whether it is shown only when asked for.
    """
    samples, identified = run.samples, run.identified[:, joint]
    measured = samples.tau[:, joint]
    # Seven numbers a point, for data of the fit and others, with the residuals'.
    rows = envelope_rows(measured - identified, points_per_curve(14 * subject.arm.dof))
    t = with_breaks(rows, continued_time(samples), samples)
    curves: tuple[tuple[str, np.ndarray, Role], ...] = (
        ("measured", measured, "measured"),
        ("description", run.described[:, joint], "described"),
        ("identified", identified, "predicted"),
        ("residual", measured - identified, "residual"),
    )
    return Figure(
        title,
        "time [s]",
        subject.torque_units[joint],
        tuple(
            Series(name, t, with_breaks(rows, values, samples), role)
            for name, values, role in curves
        ),
        is_folded=is_folded,
        is_small=True,
    )


# Residuals.


def residuals_section(subject: Subject) -> Section:
    """Draw the residuals, and say how much of them is not noise."""
    runs = [
        (run.name, run.samples, run.samples.tau - run.identified)
        for run in reversed(subject.runs)
    ]
    blocks: list[Block] = [_numbers(subject)]
    for j in range(subject.arm.dof) if runs else ():
        blocks.append(_figure(subject, j, runs))
    if not runs:
        blocks.append(
            Paragraph("Not drawn: the data behind the estimate were not given.")
        )
    checked = subject.validation
    return Section(
        "residuals",
        "Residuals",
        tuple(blocks),
        {
            "std": finite(subject.estimate.torque_std),
            "rmse": finite(subject.estimate.fit.rmse),
            "fit_whiteness": finite(subject.estimate.fit.whiteness),
            "validation_whiteness": finite(checked.whiteness) if checked else None,
        },
    )


def _numbers(subject: Subject) -> ReportTable:
    fit, checked = subject.estimate.fit, subject.validation
    rows = tuple(
        (
            name,
            fit.rmse[j],
            subject.estimate.torque_std[j],
            subject.torque_units[j],
            fit.whiteness[j],
            checked.whiteness[j] if checked else "not evaluated",
        )
        for j, name in enumerate(subject.arm.coordinate_names)
    )
    columns = ("joint", "fit RMSE", "learnt from", "in", "correlation", "validation")
    caption = (
        "“fit RMSE” is of all rows; “learnt from” of those without reversals and "
        "sticking, which is the standard deviation that intervals count with. "
        "Correlation of the residual one period of the low-pass apart, in the fit and "
        "in validation: 0 is noise, 1 is something the model does not describe."
    )
    return ReportTable(columns, rows, caption, 3)


def _figure(
    subject: Subject, joint: int, runs: list[tuple[str, Samples, np.ndarray]]
) -> Figure:
    most = points_per_curve(14 * subject.arm.dof)
    curves = []
    last = 0.0
    for name, samples, residual in runs:
        rows = envelope_rows(residual[:, joint], most)
        time = continued_time(samples)
        t = with_breaks(rows, time, samples)
        r = with_breaks(rows, residual[:, joint], samples)
        curves.append(Series(name, t, r, "residual" if name == "fit" else "other"))
        last = max(last, float(time[-1]) if time.size else 0.0)
    # Two standard deviations: 95 % of the samples of a residual that is noise.
    band = 2.0 * float(subject.estimate.torque_std[joint])
    for level in (band, -band):
        x, y = np.array([0.0, last]), np.array([level, level])
        curves.append(Series("±2 standard deviations, rows learnt from", x, y, "level"))
    name = subject.arm.coordinate_names[joint]
    unit = subject.torque_units[joint]
    return Figure(
        name,
        "time [s]",
        f"residual [{unit}]",
        tuple(curves),
        is_folded=joint >= _SHOWN,
        is_small=True,
    )


# Singular spectrum of the regressor.

# Judgement: the first few explain a large condition number.
_WEAKEST = 5
"""Directions to name; the singular values of all are drawn."""


def spectrum_section(subject: Subject) -> Section:
    """Draw the singular values, and name the weakest directions."""
    estimate = subject.estimate
    values = estimate.singular_values
    # Zero has no place on a logarithmic axis.
    shown = np.where(values > 0, values, np.nan)
    curve = Series("singular value", np.arange(1.0, values.size + 1), shown, "measured")
    figure = Figure(
        "Singular values",
        "direction",
        "singular value",
        (curve,),
        is_logarithmic=True,
        is_stems=True,
    )
    intro = "Of the weighted base regressor with columns scaled to one. " + (
        f"Their ratio, the condition number, is {estimate.condition_number:.4g}."
        if np.isfinite(estimate.condition_number)
        else "The least are rounding: the motion leaves those directions free."
    )
    weakest = _weakest(subject)
    caption = "The least determined directions, by their largest members."
    table = ReportTable(("singular value", "mostly"), tuple(weakest), caption, 3)
    return Section(
        "spectrum",
        "Singular spectrum",
        (Paragraph(intro), figure, table),
        {
            "singular_values": finite(values),
            "condition_number": finite([estimate.condition_number])[0],
            "weakest": [{"singular_value": s, "mostly": text} for s, text in weakest],
        },
    )


def _weakest(subject: Subject) -> list[tuple[float, str]]:
    estimate = subject.estimate
    names = [estimate.base.names[i] for i in estimate.base.indices]
    weakest = []
    for k in range(estimate.singular_values.size - 1, -1, -1)[:_WEAKEST]:
        row = estimate.directions[k]
        # Three, as in the warning on weak directions.
        top = np.argsort(-np.abs(row))[:3]
        text = ", ".join(f"{row[i]:+.2f} {names[i]}" for i in top)
        weakest.append((float(estimate.singular_values[k]), text))
    return weakest


# Preparation of the samples.


def preparation_section(subject: Subject) -> Section:
    """Say what was filtered, shifted and dropped."""
    fitted = subject.fitted
    if fitted is None:
        words = "Not known: the data behind the estimate were not given."
        return Section("preparation", "Preparation", (Paragraph(words),), {"fit": None})
    blocks: list[Block] = [ReportTable(("step", "value"), _steps(fitted))]
    if fitted.preparation.notes:
        blocks.append(BulletList(fitted.preparation.notes))
    checked = subject.validated
    if checked is not None:
        blocks.append(
            Paragraph(f"Validation data were prepared alike: {len(checked)} samples.")
        )
    return Section(
        "preparation",
        "Preparation",
        tuple(blocks),
        {
            "fit": asdict(fitted.preparation),
            "validation": None if checked is None else asdict(checked.preparation),
        },
    )


def _steps(samples: Samples) -> tuple[tuple[Cell, ...], ...]:
    done = samples.preparation
    cutoff: Cell = "not filtered"
    if done.cutoff_hz is not None:
        reason = "chosen from the data" if done.cutoff_is_automatic else "as requested"
        cutoff = f"{done.cutoff_hz:.4g} Hz, zero phase, {reason}"
    dropped = ", ".join(f"{count} {why}" for why, count in done.rows_dropped)
    rate = done.sample_rate_hz
    return (
        ("low-pass", cutoff),
        ("derivatives", done.differentiation),
        ("lag of the torque, taken out before the fit [ms]", 1e3 * done.lag),
        ("lag of the velocity, taken out [ms]", 1e3 * done.velocity_lag),
        ("rate before decimation [Hz]", rate),
        ("one sample kept of", done.decimation),
        ("rows read", done.rows_read),
        ("rows dropped", dropped or "none"),
        ("gaps", done.gaps),
        ("samples used", len(samples)),
        ("segments", len(samples.segments)),
    )
