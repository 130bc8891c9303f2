"""Report on an estimate: everything about it, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from armwise.identification import Estimate, Identification
from armwise.recordings import Samples
from armwise.regression import few_threads
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
from armwise.report.sections.story import story_section
from armwise.report.sections.unidentified import unidentified_section
from armwise.report.subject import Subject
from armwise.version import __version__

SECTIONS = (
    story_section,
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
"""In the order to read them: the story in one screen, then details, folded."""


def make_report(
    result: Identification | Estimate,
    *,
    fitted: Samples | None = None,
    validated: Samples | None = None,
    title: str | None = None,
    sources: Sequence[str | Path] = (),
) -> Report:
    """Collect all there is to say about an estimate.

    Args:
        result: What came of a log, or an estimate alone.
        fitted: Samples behind an estimate alone; figures need them.
        validated: Samples left out of it.
        title: The heading; names the arm if not given.
        sources: Files behind it, named below the heading.
    """
    with few_threads():
        subject = Subject.of(result, fitted, validated)
        heading = title or f"{subject.arm.name}: what its motion tells of its body"
        story, *details = (section(subject) for section in SECTIONS)
        folded = [replace(section, is_folded=True) for section in details]
        return Report(heading, (story, *folded), _origin(sources))


def _origin(sources: Sequence[str | Path]) -> str:
    """Files, version and date."""
    # Names alone: a report is handed on, and folders tell of somebody's machine.
    files = ", ".join(Path(source).name for source in sources)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{files + ' · ' if files else ''}Armwise {__version__} · {now}"


def write_report(
    result: Identification | Estimate,
    path: str | Path,
    *,
    fitted: Samples | None = None,
    validated: Samples | None = None,
    title: str | None = None,
    sources: Sequence[str | Path] = (),
) -> Path:
    """Write a report: .html (self-contained, interactive), .json or .txt.

    Args:
        result: What `identify_recordings` returned, or an estimate alone.
        path: Where to; its suffix says which kind.
        fitted: Samples behind an estimate alone; figures need them.
        validated: Samples left out of it, to validate on.
        title: The heading; names the arm if not given.
        sources: Files behind it, named below the heading.

    Returns:
        The path written.
    """
    return save_report(
        path,
        lambda: make_report(
            result, fitted=fitted, validated=validated, title=title, sources=sources
        ),
    )
