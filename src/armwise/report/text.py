"""A report as text, for terminals, mails and diffs."""

from __future__ import annotations

import textwrap

from armwise.report.html import cell_to_text
from armwise.report.report import Block, Figure, Items, Report, Table, Words

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
