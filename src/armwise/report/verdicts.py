"""Verdicts on an estimate: each from numbers that were computed, or "not evaluated"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armwise.report.report import Verdict
from armwise.report.subject import Subject

CONDITION = (100.0, 300.0)
"""Condition numbers up to which a motion tells parameters apart well, or at all."""

FIT = (0.15, 0.5)
"""Share of a joint's torque that may stay unexplained: unremarkable, or at all."""

VALIDATION = (2.0, 3.0)
"""Error on data left out over the error of the fit: unremarkable, or at all."""

_SMALLEST_ERROR = 0.01
"""Fit errors below this are not taken as a measure for validation."""


@dataclass(frozen=True)
class Judgement:
    """One question and its answer.

    Attributes:
        question: What was asked.
        verdict: The answer.
        why: The numbers behind it.
    """

    question: str
    verdict: Verdict
    why: str


def judge(subject: Subject) -> tuple[Judgement, ...]:
    """Ask what a careful reader would."""
    return (
        _excited(subject),
        _determined(subject),
        _fitted(subject),
        _predicted(subject),
        _physical(subject),
        _friction(subject),
    )


def graded(value: float, bounds: tuple[float, float]) -> Verdict:
    """Pass below the first bound, look below the second, fail beyond and for NaN."""
    return "pass" if value <= bounds[0] else "look" if value <= bounds[1] else "fail"


def _excited(subject: Subject) -> Judgement:
    number = subject.estimate.condition_number
    return Judgement(
        "Did the motion tell the parameters apart?",
        graded(number, CONDITION),
        f"condition number {number:.1f}; below {CONDITION[0]:g} is good",
    )


def _determined(subject: Subject) -> Judgement:
    std = subject.estimate.base_std
    known = int(np.isfinite(std).sum())
    return Judgement(
        "Did it determine all that motion can show?",
        "pass" if known == std.size else "look" if known else "fail",
        f"{known} of {std.size} combinations have a finite uncertainty",
    )


def _fitted(subject: Subject) -> Judgement:
    fit = subject.estimate.fit
    question = "Does the model explain the data it was fitted to?"
    if not fit.samples:
        return Judgement(question, "not evaluated", "there were no samples")
    return Judgement(
        question,
        graded(float(fit.relative_error.max()), FIT),
        "unexplained share of torque: " + _per_joint(subject, fit.relative_error),
    )


def _predicted(subject: Subject) -> Judgement:
    checked = subject.validation
    question = "Does it predict data it has not seen?"
    if checked is None or not checked.samples:
        return Judgement(
            question, "not evaluated", "no data were left out; give --validate LOG"
        )
    usual = np.maximum(subject.estimate.fit.relative_error, _SMALLEST_ERROR)
    verdict = graded(float((checked.relative_error / usual).max()), VALIDATION)
    if verdict == "pass" and graded(float(checked.relative_error.max()), FIT) != "pass":
        verdict = "look"
    return Judgement(
        question,
        verdict,
        "unexplained share of torque: " + _per_joint(subject, checked.relative_error),
    )


def _physical(subject: Subject) -> Judgement:
    defects = subject.estimate.arm.defects()
    first = next(iter(defects.items()), None)
    return Judgement(
        "Could bodies have these inertias?",
        "fail" if first else "pass",
        f"{first[0]}: {first[1]}" if first else "every link is a possible body",
    )


def _friction(subject: Subject) -> Judgement:
    names, values = subject.estimate.base.names, subject.estimate.all_parameters
    endings = (".viscous", ".coulomb")
    chosen = [k for k, name in enumerate(names) if name.endswith(endings)]
    question = "Does friction only brake?"
    if not chosen:
        return Judgement(question, "not evaluated", "no friction was estimated")
    driving = [names[k] for k in chosen if values[k] < 0]
    return Judgement(
        question,
        "look" if driving else "pass",
        f"negative: {', '.join(driving)}" if driving else "no coefficient is negative",
    )


def _per_joint(subject: Subject, shares: Sequence[float] | np.ndarray) -> str:
    names = subject.arm.coordinate_names
    return ", ".join(f"{n} {100 * s:.1f} %" for n, s in zip(names, shares, strict=True))
