"""The gallery: every experiment of every paper, a static site that opens from disk."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from armwise.files import write_atomically
from armwise.papers.catalogue import PAPERS, Group, Paper, Progress, groups, run_groups
from armwise.papers.rows import KEYS, Row
from armwise.report.html import page_to_html, table_to_html
from armwise.report.report import Cell, Table

_INDEX = Template("""<p>$intro</p>
$table
<ul>
$links
</ul>
<p class="soft">All rows for machines: <a href="rows.json">rows.json</a>.</p>""")

_PAPER = Template("""<p class="soft"><a href="index.html">All papers</a></p>
<p>$citation</p>
<p>$about</p>
<nav>$links</nav>
$sections""")

_SECTION = Template("""<section id="$name">
<h2>$title</h2>
$table
</section>""")


def write_gallery(folder: str | Path, progress: Progress | None = None) -> list[Path]:
    """Redo every paper and write the site; returns the files written, index first."""
    chosen = [group for paper in PAPERS for group in groups(paper.name)]
    return write_pages(folder, run_groups(chosen, progress))


def write_pages(folder: str | Path, made: Mapping[Group, Sequence[Row]]) -> list[Path]:
    """Write the site of rows that have been made."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = []
    for paper in PAPERS:
        own = {g: rows for g, rows in made.items() if g.paper == paper.name}
        files.append(place / f"{paper.name}.html")
        write_atomically(files[-1], _paper_page(paper, own).encode())
    files.append(place / "rows.json")
    text = json.dumps(_plain_rows(made), indent=1, ensure_ascii=False)
    write_atomically(files[-1], text.encode())
    files.insert(0, place / "index.html")
    write_atomically(files[0], _index_page(made).encode())
    return files


def cell(value: Any) -> str:
    """Write what a row holds for people: numbers short, several with commas."""
    if isinstance(value, bool | str):
        return str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Iterable):
        return ", ".join(cell(item) for item in value)
    return str(value)


def count_verdicts(rows: Iterable[Row]) -> Counter[str]:
    """How many rows agree, differ, are only shown, or were not run."""
    return Counter(str(row["verdict"]) for row in rows)


def _index_page(made: Mapping[Group, Sequence[Row]]) -> str:
    lines: list[tuple[Cell, ...]] = []
    for paper in PAPERS:
        rows = [r for g, found in made.items() if g.paper == paper.name for r in found]
        counts = count_verdicts(rows)
        told = [counts[v] for v in ("agrees", "differs", "shown", "not run")]
        lines.append((paper.name, len(rows), *told))
    columns = ("paper", "rows", "agree", "differ", "only shown", "not run")
    table = table_to_html(Table(columns, tuple(lines), "Ours beside the papers'."))
    links = "\n".join(
        f'<li><a href="{p.name}.html">{escape(p.name)}</a>: {escape(p.citation)}. '
        f"{escape(p.about)}</li>"
        for p in PAPERS
    )
    intro = (
        "Five classic papers redone. Every number under “ours” was computed when this "
        "page was written; notes give conditions and, where known, why numbers differ."
    )
    body = _INDEX.substitute(intro=intro, table=table, links=links)
    return page_to_html("Armwise: five papers redone", body)


def _paper_page(paper: Paper, made: Mapping[Group, Sequence[Row]]) -> str:
    links = " ".join(f'<a href="#{g.name}">{escape(g.name)}</a>' for g in made)
    sections = "\n".join(
        _SECTION.substitute(
            name=group.name,
            title=escape(group.title.replace("`", "")),
            table=table_to_html(_table(rows)),
        )
        for group, rows in made.items()
    )
    body = _PAPER.substitute(
        citation=escape(paper.citation),
        about=escape(paper.about),
        links=links,
        sections=sections,
    )
    return page_to_html(paper.name, body)


def _table(rows: Sequence[Row]) -> Table:
    counts = count_verdicts(rows)
    caption = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return Table(KEYS, tuple(tuple(cell(r[k]) for k in KEYS) for r in rows), caption)


def _plain_rows(made: Mapping[Group, Sequence[Row]]) -> list[dict[str, str]]:
    return [
        {"source": group.paper, "group": group.name, **{k: cell(r[k]) for k in KEYS}}
        for group, rows in made.items()
        for r in rows
    ]
