"""The summary: verdicts, and errors joint by joint."""

from __future__ import annotations

from armwise.report.report import Cell, Section, Table, Words, finite
from armwise.report.subject import Subject
from armwise.report.verdicts import judge


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
    verdicts = Table(
        ("question", "verdict", "because"),
        tuple((j.question, j.verdict, j.why) for j in judgements),
        "Verdicts",
    )
    checked = subject.validation
    return Section(
        "summary",
        "Summary",
        (Words(opening), verdicts, _errors(subject)),
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
            "notes": list(estimate.notes),
        },
    )


def _errors(subject: Subject) -> Table:
    fit, checked = subject.estimate.fit, subject.validation
    rows = []
    for j, name in enumerate(subject.arm.coordinate_names):
        unit = subject.torque_units[j]
        seen: tuple[Cell, ...] = ("not evaluated", "not evaluated")
        if checked is not None:
            seen = (100 * checked.relative_error[j], checked.rmse[j])
        row = (
            name,
            100 * fit.relative_error[j],
            fit.rmse[j],
            *seen,
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
    return Table(columns, tuple(rows), caption, 3)
