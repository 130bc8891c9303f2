"""One report, one file: its suffix says which kind."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

from armwise.errors import ArgumentError
from armwise.files import write_atomically
from armwise.report.html import cell_to_text, report_to_html
from armwise.report.report import Block, Figure, Items, Report, Table, Words

# A report as text, for terminals, mails and diffs.

_WIDTH = 100
"""Columns to fill with words; tables take what they need."""


def report_to_text(report: Report) -> str:
    """Write a report as plain text; figures by name only."""
    lines = [report.title, "=" * len(report.title)]
    for section in report.sections:
        lines += ["", section.title, "-" * len(section.title)]
        drawn = [b for b in section.blocks if isinstance(b, Figure)]
        for block in section.blocks:
            lines += _block(block)
        if drawn:
            lines.append(f"({len(drawn)} figures: see the HTML report)")
    return "\n".join(lines) + "\n"


def _block(block: Block) -> list[str]:
    if isinstance(block, Words):
        return textwrap.wrap(block.text, _WIDTH)
    if isinstance(block, Items):
        return [
            line
            for text in block.texts
            for line in textwrap.wrap(
                text, _WIDTH, initial_indent="* ", subsequent_indent="  "
            )
        ]
    if isinstance(block, Table):
        return _table(block)
    return []


def _table(table: Table) -> list[str]:
    cells = [
        list(table.columns),
        *[[cell_to_text(cell, table.digits) for cell in row] for row in table.rows],
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(table.columns))]
    lines = [table.caption] if table.caption else []
    for k, row in enumerate(cells):
        padded = [c.ljust(w) for c, w in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
        if k == 0:
            lines.append("  ".join("-" * w for w in widths))
    return ["", *lines, ""]


# One report, one file: its suffix says which kind.


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
