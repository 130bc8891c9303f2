"""A report as one HTML file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from string import Template
from typing import Any

import numpy as np

from armwise.report.report import (
    VERDICTS,
    Block,
    Cell,
    Curve,
    Figure,
    Items,
    Report,
    Section,
    Table,
    Words,
)
from armwise.report.style import CSS, DRAWING

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
 style-src 'unsafe-inline'; script-src 'unsafe-inline'$beside; img-src data: blob:">
<title>$title</title>
<style>$css</style>
</head>
<body>
<main>
<header><h1>$title</h1></header>
$body
</main>
$scripts
</body>
</html>
""")

_SECTION = Template("""<section id="$name">
<h2>$title</h2>
$blocks
</section>""")

_TABLE = Template("""<div class="scroll"><table><caption>$caption</caption>
<thead><tr>$head</tr></thead>
<tbody>
$rows
</tbody></table></div>""")

_FOLDED = Template("<details><summary>$summary</summary>\n$inner\n</details>")

_SCRIPTS = Template("""<script type="application/json" id="figures">$figures</script>
$plotly
<script>$drawing</script>""")

PLOTLY = "plotly.js"
"""The drawing library's file, where several pages share it."""


def report_to_html(report: Report) -> str:
    """Write a report as one self-contained page."""
    figures: list[Figure] = []
    links = " ".join(
        f'<a href="#{s.name}">{escape(s.title)}</a>' for s in report.sections
    )
    sections = "\n".join(_section(s, figures) for s in report.sections)
    return page_to_html(
        report.title, f"<nav>{links}</nav>\n{sections}", scripts_of(figures)
    )


def page_to_html(
    title: str,
    body: str,
    scripts: str = "",
    style: str = "",
    *,
    is_shared: bool = False,
) -> str:
    """Put a body (HTML already) into a page.

    Args:
        title: Its heading.
        body: What is below that.
        scripts: What comes last.
        style: CSS beside the usual.
        is_shared: Whether scripts from files beside the page may run.
    """
    return _PAGE.substitute(
        title=escape(title),
        css=CSS + style,
        body=body,
        scripts=scripts,
        beside=" 'self' file:" if is_shared else "",
    )


def table_to_html(table: Table) -> str:
    """Write a table down; words that are verdicts are coloured."""
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in table.columns)
    rows = "\n".join(
        "<tr>" + "".join(_cell(cell, table.digits) for cell in row) + "</tr>"
        for row in table.rows
    )
    return _TABLE.substitute(caption=escape(table.caption), head=head, rows=rows)


def cell_to_text(cell: Cell, digits: int) -> str:
    """Write a cell for people: a dash where there is nothing."""
    if cell is None:
        return "–"
    if isinstance(cell, float | np.floating):
        return f"{cell:.{digits}g}" if np.isfinite(cell) else "–"
    return str(cell)


def _cell(cell: Cell, digits: int) -> str:
    text = escape(cell_to_text(cell, digits))
    if isinstance(cell, str):
        if cell in (*VERDICTS, "agrees", "differs", "shown"):
            return f'<td class="verdict {cell.replace(" ", "-")}">{text}</td>'
        return f"<td>{text}</td>"
    return f'<td class="number">{text}</td>'


def _section(section: Section, figures: list[Figure]) -> str:
    parts: list[str] = []
    folded: list[str] = []
    for block in section.blocks:
        target = folded if getattr(block, "is_folded", False) else parts
        target.append(_block(block, figures))
    if folded:
        summary = f"More: {len(folded)} of this kind" if parts else "Show"
        inner = "\n".join(folded)
        parts.append(_FOLDED.substitute(summary=summary, inner=inner))
    return _SECTION.substitute(
        name=escape(section.name, quote=True),
        title=escape(section.title),
        blocks="\n".join(parts),
    )


def _block(block: Block, figures: list[Figure]) -> str:
    if isinstance(block, Words):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Items):
        items = "".join(f"<li>{escape(text)}</li>" for text in block.texts)
        return f"<ul>{items}</ul>"
    if isinstance(block, Table):
        return table_to_html(block)
    return figure_to_html(block, figures)


def figure_to_html(figure: Figure, figures: list[Figure]) -> str:
    """Leave a place for a figure, and put it with those to be drawn."""
    figures.append(figure)
    label = escape(figure.title, quote=True)
    return (
        f'<div class="figure" role="img" aria-label="{label}" '
        f'data-figure="{len(figures) - 1}"></div>'
    )


def scripts_of(figures: Sequence[Figure], *, is_shared: bool = False) -> str:
    """Write what draws the figures of a page.

    Args:
        figures: In the order their places were left.
        is_shared: Whether the library is a file beside the page, `PLOTLY`, rather than
            in the page.
    """
    text = json.dumps([_figure(f) for f in figures], separators=(",", ":"))
    # Inside a script element only "<" could end it.
    safe = text.replace("<", "\\u003c")
    library = f'<script src="{PLOTLY}"></script>'
    if not is_shared:
        library = f"<script>{plotly_source()}</script>"
    return _SCRIPTS.substitute(figures=safe, plotly=library, drawing=DRAWING)


def plotly_source() -> str:
    """The drawing library."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _figure(figure: Figure) -> dict[str, Any]:
    # Plotly reads a little HTML in its labels, so names are escaped for it as well.
    return {
        "title": escape(figure.title),
        "x_label": escape(figure.x_label),
        "y_label": escape(figure.y_label),
        "log": figure.is_logarithmic,
        "stems": figure.is_stems,
        "x_log": figure.is_x_logarithmic,
        "x_names": [escape(name) for name in figure.x_names],
        "curves": [_curve(curve) for curve in figure.curves],
    }


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "name": escape(curve.name),
        "role": curve.role,
        "x": _rounded(curve.x, 6),
        "y": _rounded(curve.y, 5),
    }


def _rounded(values: np.ndarray, digits: int) -> list[float | None]:
    """Keep the digits a screen can show."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values]
