"""One report, one file: its suffix says which kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from armwise.errors import ArgumentError
from armwise.files import write_atomically
from armwise.report.html import report_to_html
from armwise.report.report import Report
from armwise.report.text import report_to_text


def report_to_json(report: Report) -> str:
    """Write a report as JSON; what is not finite is null."""
    return json.dumps(report.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)


_WRITERS: dict[str, Callable[[Report], str]] = {
    ".html": report_to_html,
    ".json": report_to_json,
    ".txt": report_to_text,
}


def save_report(path: str | Path, make: Callable[[], Report]) -> Path:
    """Write a report as .html (self-contained), .json or .txt, whole or not at all.

    Args:
        path: Where to.
        make: Collects the report; not asked if the file's kind is unknown.
    """
    place = Path(path)
    writer = _WRITERS.get(place.suffix.lower())
    if writer is None:
        raise ArgumentError(
            f"{place.name}: a report is written as {', '.join(_WRITERS)}, not "
            f"{place.suffix or 'a file without a suffix'}."
        )
    write_atomically(place, writer(make()).encode())
    return place
