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

# How a page looks, on a dark or light screen and on paper; and how it draws.

CSS = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c1f23; --soft: #5c6670;
  --line: #d9dee3; --panel: #f5f7f9; --measured: #2563a8; --predicted: #d9650b;
  --third: #1f8a62; --fourth: #8450b5; --fifth: #b3265c; --sixth: #7a6a12;
  --good: #1a7f4b; --look: #9a6700; --bad: #c0302b; --link: #2563a8; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e4e8ec;
  --soft: #98a3ad; --line: #333a41; --panel: #1d2226; --measured: #6cb0f5;
  --predicted: #ff9f4a; --third: #4cc38a; --fourth: #c39af0; --fifth: #ff7fa8;
  --sixth: #d8c65a; --good: #4cc38a; --look: #e0b13f; --bad: #ff7b72;
  --link: #6cb0f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 0 20px 60px; }
header h1 { margin: 28px 0 4px; font-size: 26px; }
h2 { margin: 38px 0 10px; font-size: 20px; border-bottom: 1px solid var(--line); }
a { color: var(--link); }
nav { position: sticky; top: 0; background: var(--paper); padding: 8px 0; z-index: 2;
  border-bottom: 1px solid var(--line); display: flex; flex-wrap: wrap; gap: 4px 16px; }
nav a { text-decoration: none; font-size: 14px; }
p.soft, caption, summary { color: var(--soft); }
.scroll { overflow-x: auto; margin: 10px 0 18px; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric:
  tabular-nums; }
caption { text-align: left; padding-bottom: 4px; }
th, td { text-align: left; padding: 3px 12px 3px 0; border-bottom: 1px solid
  var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
td.number { text-align: right; white-space: nowrap; }
td.verdict { font-weight: 600; white-space: nowrap; }
.pass, .agrees { color: var(--good); } .look, .shown { color: var(--look); }
.fail, .differs { color: var(--bad); } .not-evaluated { color: var(--soft); }
.figure { height: 270px; margin: 4px 0 14px; }
@media (hover: none) { .figure .modebar { display: none !important; } }
details { margin: 8px 0; } summary { cursor: pointer; }
@media print { :root { --paper: #fff; --ink: #000; --soft: #444; --line: #bbb;
  --measured: #1f4e8c; --predicted: #c25500; --good: #14663c; --look: #7a5200;
  --bad: #a02020; }
  nav, .modebar { display: none !important; }
  h2 { break-after: avoid; } .figure, tr { break-inside: avoid; }
  main { max-width: none; padding: 0; } .scroll { overflow: visible; } }
"""

DRAWING = """
const figures = JSON.parse(document.getElementById('figures').textContent);
const places = [...document.querySelectorAll('.figure')];
const colour = name => getComputedStyle(document.documentElement)
  .getPropertyValue('--' + name).trim();
const roles = { measured: 'measured', predicted: 'predicted', residual: 'measured',
  other: 'predicted', level: 'soft', printed: 'ink' };
const widths = { measured: 3.2, predicted: 1.3, residual: 1.2, other: 1.2, level: 1,
  series: 1.6 };
const palette = ['measured', 'predicted', 'third', 'fourth', 'fifth', 'sixth'];
function hue(figure, curve) {
  const alike = figure.curves.filter(c => c.role === 'series');
  const turn = palette[alike.indexOf(curve) % palette.length];
  return colour(curve.role === 'series' ? turn : roles[curve.role]);
}
function traces(figure) {
  return figure.curves.map((curve, i) => ({ x: curve.x, y: curve.y, name: curve.name,
    type: 'scatter', connectgaps: false,
    mode: curve.role === 'printed' || (figure.stems && curve.role !== 'level')
      ? 'markers' : 'lines',
    showlegend: figure.curves.findIndex(c => c.name === curve.name) === i
      && figure.curves.length > 1,
    line: { color: hue(figure, curve), width: widths[curve.role],
      dash: curve.role === 'level' ? 'dash' : 'solid' },
    marker: { color: hue(figure, curve), size: curve.role === 'printed' ? 9 : 6,
      symbol: curve.role === 'printed' ? 'diamond-open' : 'circle' } }));
}
function layout(figure) {
  const axis = { gridcolor: colour('line'), zerolinecolor: colour('line'),
    linecolor: colour('line'), exponentformat: 'power' };
  const many = new Set(figure.curves.map(c => c.name)).size > 1;
  return { title: { text: figure.title, x: 0, xanchor: 'left', y: 1, yanchor: 'top',
      pad: { t: 6 }, font: { size: 14 } },
    margin: { l: 60, r: 10, t: many ? 50 : 32, b: 40 }, paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)', font: { color: colour('ink'), size: 12 },
    xaxis: { ...axis, title: { text: figure.x_label }, automargin: true,
      type: figure.x_log ? 'log' : 'linear', ...(figure.x_names.length
        ? { tickvals: figure.x_names.map((_, i) => i), ticktext: figure.x_names,
          range: [-0.6, figure.x_names.length - 0.4] }
        : {}) },
    yaxis: { ...axis, title: { text: figure.y_label }, automargin: true,
      type: figure.log ? 'log' : 'linear' },
    legend: { orientation: 'h', x: 0, xanchor: 'left', y: 1, yanchor: 'bottom' },
    hovermode: 'x unified' };
}
function draw(place) {
  const figure = figures[Number(place.dataset.figure)];
  place.dataset.drawn = 'yes';
  Plotly.react(place, traces(figure), layout(figure),
    { responsive: true, displaylogo: false });
}
const seen = new IntersectionObserver(entries => entries.forEach(entry => {
  if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
}), { rootMargin: '400px' });
places.forEach(place => seen.observe(place));
const redraw = () => places.filter(p => p.dataset.drawn).forEach(draw);
for (const query of ['(prefers-color-scheme: dark)', 'print'])
  matchMedia(query).addEventListener('change', redraw);
addEventListener('beforeprint', () => {
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  places.forEach(draw);
});
addEventListener('afterprint', redraw);
"""


# A report as one HTML file that needs nothing else.

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
