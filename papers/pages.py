"""The gallery as a static site that opens from disk: pages, one library, one JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from armwise.files import write_atomically
from armwise.report.html import (
    PLOTLY,
    figure_to_html,
    page_to_html,
    plotly_source,
    scripts_of,
)
from armwise.report.report import Figure
from papers.catalogue import PAPERS, Group, Paper, Progress, groups
from papers.drawings import Drawing
from papers.gallery import (
    VERDICTS,
    Exhibit,
    Gallery,
    arrange,
    count_exhibits,
    count_verdicts,
)
from papers.page_style import CSS, FILTER
from papers.page_tables import css_class, rows_to_html
from papers.rows import Row
from papers.running import run_groups
from papers.store import Store

_INDEX = Template("""<p>$intro</p>
$papers
<h2>Every table and figure</h2>
$filter
<table class="index"><thead><tr><th scope="col">paper</th>
<th scope="col">experiment</th><th scope="col">what</th><th scope="col">rows</th>
<th scope="col">figures</th><th scope="col">verdict</th></tr></thead>
<tbody>
$lines
</tbody></table>
<p class="soft">The same for machines: <a href="gallery.json">gallery.json</a>.</p>""")

_CARD = Template("""<section class="card">
<h2><a href="$name.html">$name</a></h2>
<p>$citation</p>
<p class="soft">$about</p>
<p class="counts">$counts</p>
</section>""")

_LINE = Template("""<tr data-verdict="$verdict"><td>$paper</td>
<td><a href="$paper.html#$anchor">$name</a></td><td>$title</td>
<td class="number">$rows</td><td class="number">$figures</td>$cell</tr>""")

_PAPER = Template("""<p class="soft"><a href="index.html">All papers</a></p>
<p>$citation</p>
<p class="soft">$about</p>
<p class="counts">$counts</p>
$filter
<nav>$links</nav>
$exhibits""")

_EXHIBIT = Template("""<section class="exhibit" id="$anchor" data-verdict="$verdict">
<h3><span class="badge $kind">$verdict</span> $name
<span class="title">$title</span></h3>
$body
</section>""")

_MANY = {"agrees": "agree", "differs": "differ", "illustration": "illustrations"}

_ILLUSTRATION = Template("""<p class="soft">A $what: it reports no result, so there is
nothing to compute.</p>""")

_INTRO = (
    "Five classic papers done again. Every number under “ours” was computed by the "
    "program that wrote this page. “Agrees” and “differs” compare with what the paper "
    "prints or says; “shown” has nothing to compare with, or says why; an illustration "
    "is a photograph or a diagram. Notes give conditions and reasons."
)


def write_gallery(
    folder: str | Path,
    chosen: Sequence[Group] | None = None,
    progress: Progress | None = None,
    *,
    workers: int = 2,
) -> Gallery:
    """Redo groups and write the site of all that its folder has by then.

    Finished groups are kept beside the pages, in `parts/`: an interrupted run goes on
    where it stopped, and what other runs finished is shown as well.

    Args:
        folder: Where the site goes.
        chosen: The groups to redo; all of them when not given.
        progress: Called with what is being done and how much of it is done.
        workers: Processes to share the work among.
    """
    every = [group for paper in PAPERS for group in groups(paper.name)]
    store = Store(Path(folder) / "parts")
    made = run_groups(
        every if chosen is None else chosen, progress, workers=workers, store=store
    )
    for group in every:
        kept = None if group in made else store.read(group.module)
        if kept is not None:
            made[group] = kept
    gallery = arrange(made)
    write_pages(folder, gallery)
    return gallery


def write_pages(folder: str | Path, gallery: Gallery) -> list[Path]:
    """Write the site; returns the files written, index first."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    contents = {
        "index.html": _index_page(gallery),
        **{f"{p.name}.html": _paper_page(p, x) for p, x in gallery.exhibits.items()},
        "gallery.json": json.dumps(gallery.to_dict(), ensure_ascii=False),
        PLOTLY: plotly_source(),
    }
    for name, text in reversed(contents.items()):  # the index last: it means complete
        write_atomically(place / name, text)
    return [place / name for name in contents]


def _index_page(gallery: Gallery) -> str:
    cards = "\n".join(
        _CARD.substitute(
            name=paper.name,
            citation=escape(paper.citation),
            about=escape(paper.about),
            counts=_counts(shown, gallery.rows(paper)),
        )
        for paper, shown in gallery.exhibits.items()
    )
    every = [x for shown in gallery.exhibits.values() for x in shown]
    body = _INDEX.substitute(
        intro=escape(_INTRO),
        papers=f'<div class="cards">{cards}</div>',
        filter=_filter(count_exhibits(every)),
        lines="\n".join(_line(x) for x in every),
    )
    script = f"<script>{FILTER}</script>"
    return page_to_html("Armwise: five papers done again", body, script, CSS)


def _line(exhibit: Exhibit) -> str:
    own, verdict = exhibit.experiment, exhibit.verdict
    return _LINE.substitute(
        verdict=verdict,
        paper=own.paper,
        anchor=own.anchor,
        name=escape(own.name),
        title=escape(own.title),
        rows=len(exhibit.rows) or "",
        figures=len(exhibit.drawings) or "",
        cell=f'<td class="verdict {css_class(verdict)}">{verdict}</td>',
    )


def _paper_page(paper: Paper, shown: Sequence[Exhibit]) -> str:
    figures: list[Figure] = []
    links = " ".join(
        f'<a href="#{x.experiment.anchor}" data-verdict="{x.verdict}">'
        f"{escape(x.experiment.name)}</a>"
        for x in shown
    )
    rows = list({id(row): row for x in shown for row in x.rows}.values())
    body = _PAPER.substitute(
        citation=escape(paper.citation),
        about=escape(paper.about),
        counts=_counts(shown, rows),
        filter=_filter(count_exhibits(shown)),
        links=links,
        exhibits="\n".join(_exhibit(x, figures) for x in shown),
    )
    scripts = scripts_of(figures, is_shared=True) + f"\n<script>{FILTER}</script>"
    return page_to_html(paper.name, body, scripts, CSS, is_shared=True)


def _exhibit(exhibit: Exhibit, figures: list[Figure]) -> str:
    own, verdict = exhibit.experiment, exhibit.verdict
    parts = []
    if own.did:
        parts.append(f"<p>{escape(own.did)}</p>")
    if own.illustration:
        parts.append(_ILLUSTRATION.substitute(what=escape(own.illustration)))
    elif not exhibit.rows and not exhibit.drawings:
        run = f"armwise papers {own.paper} {own.group}"
        parts.append(f'<p class="soft">Not run yet: {escape(run)}</p>')
    if exhibit.rows:
        parts.append(rows_to_html(own, exhibit.rows))
    drawn = [_drawing(drawing, figures) for drawing in exhibit.drawings]
    parts.append(f'<div class="figures">{"".join(drawn)}</div>')
    return _EXHIBIT.substitute(
        anchor=own.anchor,
        verdict=verdict,
        kind=css_class(verdict),
        name=escape(own.name),
        title=escape(own.title),
        body="\n".join(parts),
    )


def _drawing(drawing: Drawing, figures: list[Figure]) -> str:
    place = figure_to_html(drawing.figure, figures)
    note = f'<p class="soft note">{escape(drawing.note)}</p>' if drawing.note else ""
    return f"<div>{place}{note}</div>"


def _counts(shown: Sequence[Exhibit], rows: Sequence[Row]) -> str:
    experiments, lines = count_exhibits(shown), count_verdicts(rows)
    figures = sum(len(x.drawings) for x in shown)
    words = [
        f'<span class="{css_class(v)}">{_counted(experiments[v], v)}</span>'
        for v in VERDICTS
        if experiments[v]
    ]
    told = ", ".join(_counted(lines[v], v) for v in VERDICTS if lines[v])
    return (
        f"{len(shown)} experiments: {', '.join(words)}<br>"
        f"{len(rows)} rows: {told or 'none'}; {figures} figures"
    )


def _counted(count: int, verdict: str) -> str:
    return f"{count} {verdict if count == 1 else _MANY.get(verdict, verdict)}"


def _filter(counts: Counter[str]) -> str:
    boxes = " ".join(
        f'<label><input type="checkbox" value="{v}" checked> '
        f'<span class="{css_class(v)}">{v}</span> {counts[v]}</label>'
        for v in VERDICTS
        if counts[v]
    )
    return f'<form class="filter" aria-label="Show by verdict">Show {boxes}</form>'
