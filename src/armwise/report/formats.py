"""A report as one self-contained HTML page, as JSON or as text."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from armwise.errors import ArgumentError
from armwise.files import json_text, write_atomically
from armwise.programs import fill
from armwise.report.report import (
    VERDICTS,
    Block,
    BulletList,
    Cell,
    Drawing,
    Figure,
    KeyNumbers,
    Paragraph,
    PlotlyFigure,
    Report,
    ReportTable,
    Section,
    Series,
)

PLOTLY = "plotly.js"
"""File name of the drawing library where several pages share it."""

_TEMPLATES = Path(__file__).parent / "templates"
_COLOURED = (*VERDICTS, "agrees", "differs", "shown")
"""Cells that the style sheet colours."""

# Judgement: fits terminals and mails.
_TEXT_WIDTH = 100
"""Columns of running text; tables take what they need."""


def save_report(path: str | Path, make: Callable[[], Report]) -> Path:
    """Write a report as .html (self-contained), .json or .txt, whole or not at all.

    Args:
        path: Where to.
        make: Collects the report; not called if the file's kind is unknown.
    """
    target = Path(path)
    # Before the report is collected, which may take long.
    writer = _WRITERS.get(target.suffix.lower())
    if writer is None:
        raise ArgumentError(
            f"{target.name}: a report is written as {', '.join(_WRITERS)}, not "
            f"{target.suffix or 'a file without a suffix'}."
        )
    write_atomically(target, writer(make()).encode())
    return target


# HTML.


def report_to_html(report: Report) -> str:
    """Write a report as one self-contained page."""
    figures: list[Figure | PlotlyFigure] = []
    links = " ".join(
        f'<a href="#{s.name}">{escape(s.title)}</a>' for s in report.sections
    )
    sections = "\n".join(_section_to_html(s, figures) for s in report.sections)
    origin = f'<p class="soft">{escape(report.origin)}</p>\n' if report.origin else ""
    body = f"{origin}<nav>{links}</nav>\n{sections}"
    script = (_TEMPLATES / "folds.js").read_text("utf-8")
    return page_to_html(report.title, body, figures, script=script)


def page_to_html(
    title: str,
    body: str,
    figures: Sequence[Figure | PlotlyFigure] = (),
    *,
    style: str = "",
    script: str = "",
    is_shared: bool = False,
) -> str:
    """Put a body (HTML already) and the figures it has room for into a page.

    Args:
        title: Its heading.
        body: What is below that.
        figures: In the order `figure_to_html` made room for them.
        style: CSS beside what every page has.
        script: JavaScript that runs last.
        is_shared: Whether the drawing library is a file beside the page, `PLOTLY`,
            rather than in the page.
    """
    scripts = _drawing_scripts(figures, is_shared) if figures else []
    scripts += [f"<script>\n{script}</script>"] if script else []
    return fill(
        _TEMPLATES / "page.html",
        TITLE=escape(title),
        CSS=(_TEMPLATES / "style.css").read_text("utf-8") + style,
        BODY=body,
        SCRIPTS="\n".join(scripts),
        SOURCES=" 'self' file:" if is_shared and figures else "",
    )


def figure_to_html(
    figure: Figure | PlotlyFigure, figures: list[Figure | PlotlyFigure]
) -> str:
    """Make room for a figure in a page, and append it to those the page draws."""
    figures.append(figure)
    label = escape(figure.title, quote=True)
    kind = "figure tall" if isinstance(figure, PlotlyFigure) else "figure"
    if isinstance(figure, Figure) and _has_residual_below(figure):
        kind += " paired"
    return (
        f'<div class="{kind}" role="img" aria-label="{label}" '
        f'data-figure="{len(figures) - 1}"></div>'
    )


def _has_residual_below(figure: Figure) -> bool:
    """Whether a figure has what was measured and, below, what is not explained."""
    return {"measured", "residual"} <= {curve.role for curve in figure.curves}


def plotly_source() -> str:
    """Return the drawing library as JavaScript."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _drawing_scripts(
    figures: Sequence[Figure | PlotlyFigure], is_shared: bool
) -> list[str]:
    text = json.dumps([_figure_to_dict(f) for f in figures], separators=(",", ":"))
    # Inside a script element only "<" could end it.
    safe = text.replace("<", "\\u003c")
    drawing = (_TEMPLATES / "figures.js").read_text("utf-8")
    scripts = [f'<script type="application/json" id="figures">{safe}</script>']
    # Five megabytes: curves are drawn without it.
    if any(isinstance(figure, PlotlyFigure) for figure in figures):
        scripts.append(
            f'<script src="{PLOTLY}"></script>'
            if is_shared
            else f"<script>{plotly_source()}</script>"
        )
    return [*scripts, f"<script>\n{drawing}</script>"]


def _section_to_html(section: Section, figures: list[Figure | PlotlyFigure]) -> str:
    shown = [b for b in section.blocks if not getattr(b, "is_folded", False)]
    folded = [b for b in section.blocks if getattr(b, "is_folded", False)]
    blocks = _blocks_to_html(shown, figures)
    if folded:
        summary = f"More: {len(folded)} of this kind" if shown else "Show"
        inner = _blocks_to_html(folded, figures)
        blocks += f"\n<details><summary>{summary}</summary>\n{inner}\n</details>"
    heading = f"<h2>{escape(section.title)}</h2>"
    if section.is_folded:
        inner = f"<summary>{heading}</summary>\n{blocks}"
        blocks = f'<details class="part">{inner}\n</details>'
    else:
        blocks = f"{heading}\n{blocks}"
    name = escape(section.name, quote=True)
    return f'<section id="{name}">\n{blocks}\n</section>'


def _blocks_to_html(
    blocks: Sequence[Block], figures: list[Figure | PlotlyFigure]
) -> str:
    """Write blocks one below the other, small figures side by side."""
    parts: list[str] = []
    for is_small, group in groupby(blocks, lambda b: getattr(b, "is_small", False)):
        text = "\n".join(_block_to_html(block, figures) for block in group)
        parts.append(f'<div class="multiples">\n{text}\n</div>' if is_small else text)
    return "\n".join(parts)


def _block_to_html(block: Block, figures: list[Figure | PlotlyFigure]) -> str:
    if isinstance(block, Paragraph):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, BulletList):
        items = "".join(f"<li>{escape(text)}</li>" for text in block.texts)
        heading = f"<h3>{escape(block.heading)}</h3>" if block.heading else ""
        return f'<div class="list">{heading}<ul>{items}</ul></div>'
    if isinstance(block, KeyNumbers):
        return _numbers_to_html(block)
    if isinstance(block, Drawing):
        title = escape(block.title, quote=True)
        return f'<div class="drawing" role="img" aria-label="{title}">{block.svg}</div>'
    if isinstance(block, ReportTable):
        return _table_to_html(block)
    return figure_to_html(block, figures)


def _numbers_to_html(block: KeyNumbers) -> str:
    items = "\n".join(
        f"<div><dt>{escape(number.label)}</dt>"
        f'<dd class="{(number.verdict or "").replace(" ", "-")}">'
        f"{escape(number.value)}</dd>"
        f'<dd class="remark">{escape(number.remark)}</dd></div>'
        for number in block.numbers
    )
    return f'<dl class="numbers">\n{items}\n</dl>'


def _table_to_html(table: ReportTable) -> str:
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in table.columns)
    rows = "\n".join(
        "<tr>" + "".join(_cell_to_html(cell, table.digits) for cell in row) + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="scroll"><table><caption>{escape(table.caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cell_to_html(cell: Cell, digits: int) -> str:
    text = escape(_cell_to_text(cell, digits))
    if isinstance(cell, str):
        if cell in _COLOURED:
            return f'<td class="verdict {cell.replace(" ", "-")}">{text}</td>'
        return f"<td>{text}</td>"
    return f'<td class="number">{text}</td>'


def _figure_to_dict(figure: Figure | PlotlyFigure) -> dict[str, Any]:
    if isinstance(figure, PlotlyFigure):
        return figure.description
    curves: list[dict[str, Any]] = []
    before: Series | None = None
    for series in figure.curves:
        # Most curves of a figure are over the same times: a third of the page's size.
        is_same = before is not None and np.array_equal(before.x, series.x)
        x = None if is_same else _numbers(series.x, figure.is_x_logarithmic)
        y = _numbers(series.y, figure.is_logarithmic)
        curves.append({"name": series.name, "role": series.role, "x": x, "y": y})
        before = series
    # Names stay as they are: the script writes them as text, never as markup.
    return {
        "title": figure.title,
        "x_label": figure.x_label,
        "y_label": figure.y_label,
        "log": figure.is_logarithmic,
        "stems": figure.is_stems,
        "x_log": figure.is_x_logarithmic,
        "x_names": list(figure.x_names),
        "curves": curves,
    }


def _numbers(values: np.ndarray, is_logarithmic: bool) -> dict[str, Any]:
    """Whole multiples of a power of ten, as fine as a screen can show when enlarged.

    A third of the page's size, and of the time to write it, of numbers in full. What is
    drawn on a logarithmic axis is in decades.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.log10(values) if is_logarithmic else np.asarray(values, dtype=float)
    finite = np.isfinite(drawn)
    size = float(np.abs(drawn[finite]).max(initial=0.0))
    # Six digits of the largest: an axis enlarged a hundred times still has 10⁴ steps.
    power = math.floor(math.log10(size)) - 6 if size > 1e-290 else -6
    with np.errstate(invalid="ignore"):
        whole = np.rint(drawn * 10.0**-power if power < 0 else drawn / 10.0**power)
    numbers = np.where(finite, whole, 0.0).astype(np.int64).tolist()
    for k in np.flatnonzero(~finite):
        numbers[k] = None
    return {"power": power, "whole": numbers}


# Text, for terminals, mails and diffs; and JSON.


def report_to_text(report: Report) -> str:
    """Write a report as plain text; figures by name only."""
    lines = [report.title, "=" * len(report.title)]
    lines += textwrap.wrap(report.origin, _TEXT_WIDTH)
    for section in report.sections:
        lines += ["", section.title, "-" * len(section.title)]
        for block in section.blocks:
            lines += _block_to_text(block)
        figures = [b for b in section.blocks if isinstance(b, Figure | PlotlyFigure)]
        if figures:
            lines.append(f"({len(figures)} figures: see the HTML report)")
    return "\n".join(lines) + "\n"


def report_to_json(report: Report) -> str:
    """Write a report as JSON; what is not finite is null."""
    return json_text(report.to_dict())


def _block_to_text(block: Block) -> list[str]:
    if isinstance(block, Paragraph):
        return textwrap.wrap(block.text, _TEXT_WIDTH)
    if isinstance(block, KeyNumbers):
        rows = tuple((n.label, n.value, n.remark) for n in block.numbers)
        return _table_to_text(ReportTable(("number", "value", "remark"), rows))
    if isinstance(block, BulletList):
        heading = [f"{block.heading}:"] if block.heading else []
        return heading + [
            line
            for text in block.texts
            for line in textwrap.wrap(
                text, _TEXT_WIDTH, initial_indent="* ", subsequent_indent="  "
            )
        ]
    if isinstance(block, ReportTable):
        return _table_to_text(block)
    return []


def _table_to_text(table: ReportTable) -> list[str]:
    cells = [
        list(table.columns),
        *[[_cell_to_text(cell, table.digits) for cell in row] for row in table.rows],
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(table.columns))]
    lines = [table.caption] if table.caption else []
    for k, row in enumerate(cells):
        padded = [c.ljust(w) for c, w in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
        if k == 0:
            lines.append("  ".join("-" * w for w in widths))
    return ["", *lines, ""]


def _cell_to_text(cell: Cell, digits: int) -> str:
    """Write a cell for people: a dash where there is nothing."""
    if cell is None:
        return "–"
    if isinstance(cell, float | np.floating):
        return f"{cell:.{digits}g}" if np.isfinite(cell) else "–"
    return str(cell)


_WRITERS: dict[str, Callable[[Report], str]] = {
    ".html": report_to_html,
    ".json": report_to_json,
    ".txt": report_to_text,
}
