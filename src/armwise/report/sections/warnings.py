"""Warnings: what the residuals say about the data."""

from __future__ import annotations

from armwise.report.report import Block, Items, Section, Words
from armwise.report.subject import Subject


def doubts_section(subject: Subject) -> Section:
    """Repeat every warning, and what the estimate itself remarks."""
    notes = subject.estimate.notes
    if subject.warnings:
        first: Block = Items(subject.warnings)
    elif subject.fitted is None:
        first = Words("Not evaluated: the data behind the estimate were not given.")
    else:
        first = Words("The residuals raise no doubt about the data.")
    blocks = (first, Items(notes)) if notes else (first,)
    return Section(
        "doubts",
        "Warnings",
        blocks,
        {
            "warnings": None if subject.fitted is None else list(subject.warnings),
            "notes": list(notes),
        },
    )
