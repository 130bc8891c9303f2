"""Report on an estimate: everything about it, in one file."""

from __future__ import annotations

from pathlib import Path

from armwise.identification import Estimate, Identification
from armwise.recordings import Samples
from armwise.report.formats import save_report
from armwise.report.report import Report
from armwise.report.sections.fit import (
    preparation_section,
    residuals_section,
    spectrum_section,
    summary_section,
    torques_section,
    warnings_section,
)
from armwise.report.sections.parameters import friction_section, parameters_section
from armwise.report.sections.unidentified import unidentified_section
from armwise.report.subject import Subject

SECTIONS = (
    summary_section,
    warnings_section,
    torques_section,
    residuals_section,
    parameters_section,
    unidentified_section,
    spectrum_section,
    friction_section,
    preparation_section,
)
"""In the order to read them."""


def make_report(
    result: Identification | Estimate,
    *,
    fitted: Samples | None = None,
    validated: Samples | None = None,
    title: str | None = None,
) -> Report:
    """Collect all there is to say about an estimate.

    Args:
        result: What came of a log, or an estimate alone.
        fitted: Samples behind an estimate alone; figures need them.
        validated: Samples left out of it.
        title: The heading; names the arm if not given.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):  # small matrices: one is faster
        subject = Subject.of(result, fitted, validated)
        heading = title or f"{subject.arm.name}: what its motion tells of its body"
        return Report(heading, tuple(section(subject) for section in SECTIONS))


def write_report(
    result: Identification | Estimate,
    path: str | Path,
    *,
    fitted: Samples | None = None,
    validated: Samples | None = None,
    title: str | None = None,
) -> Path:
    """Write a report: .html (self-contained, interactive), .json or .txt.

    Args:
        result: What `identify_recordings` returned, or an estimate alone.
        path: Where to; its suffix says which kind.
        fitted: Samples behind an estimate alone; figures need them.
        validated: Samples left out of it, to validate on.
        title: The heading; names the arm if not given.

    Returns:
        The path written.
    """
    return save_report(
        path,
        lambda: make_report(result, fitted=fitted, validated=validated, title=title),
    )
