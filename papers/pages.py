"""Gallery as a static site that opens from disk."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from armwise.files import write_atomically
from armwise.programs import fill
from armwise.progress import Progress
from armwise.report import (
    PLOTLY,
    Figure,
    PlotlyFigure,
    Series,
    figure_to_html,
    page_to_html,
    plotly_source,
)
from papers.catalogue import PAPERS, Group, Paper, groups
from papers.drawings import Drawing, paper_points, tics
from papers.experiments import Experiment
from papers.gallery import (
    OUTCOMES,
    Exhibit,
    Gallery,
    arrange,
    cell,
    count_exhibits,
    count_verdicts,
)
from papers.rows import MEANINGS, VERDICTS, Row
from papers.running import Store, run_groups

_TEMPLATES = Path(__file__).parent / "templates"

_INTRO = (
    "Five classic papers done again. Every number under “ours” was computed by the "
    "program that wrote this page, and every verdict is one comparison with a stated "
    "tolerance. A test perturbs every number and asks that its verdict changes. Where "
    "ours differ, a sentence says why, with the number of a computation that could "
    "have refuted it."
)


def write_gallery(
    folder: str | Path,
    selection: Sequence[Group] | None = None,
    progress: Progress | None = None,
    *,
    workers: int = 2,
) -> Gallery:
    """Redo groups and write the site of all that its folder has by then.

    Finished groups are kept beside the pages, in `parts/`: an interrupted run goes on
    where it stopped, and what other runs finished is shown as well.

    Args:
        folder: Where the site goes.
        selection: The groups to redo; all of them when not given.
        progress: Called with what is being done and how much of it is done.
        workers: Processes to share the work among.
    """
    every = [group for paper in PAPERS for group in groups(paper.name)]
    store = Store(Path(folder) / "parts")
    results = run_groups(
        every if selection is None else selection,
        progress,
        workers=workers,
        store=store,
    )
    for group in every:
        stored = None if group in results else store.read(group.module)
        if stored is not None:
            results[group] = stored
    gallery = arrange(results)
    write_pages(folder, gallery)
    return gallery


def write_pages(folder: str | Path, gallery: Gallery) -> list[Path]:
    """Write the site; returns the files written, index first."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    contents = {
        "index.html": _index_page(gallery),
        **{f"{p.name}.html": _paper_page(p, x) for p, x in gallery.exhibits.items()},
        "gallery.json": json.dumps(gallery.to_dict(), ensure_ascii=False),
        PLOTLY: plotly_source(),
    }
    for name, text in reversed(contents.items()):  # the index last: it means complete
        write_atomically(target / name, text)
    return [target / name for name in contents]


def _index_page(gallery: Gallery) -> str:
    cards = "\n".join(
        _fill(
            "card",
            name=paper.name,
            title=escape(paper.title),
            citation=escape(paper.citation),
            about=escape(paper.about),
            counts=_counts(shown, gallery.rows(paper)),
        )
        for paper, shown in gallery.exhibits.items()
    )
    every = [x for shown in gallery.exhibits.values() for x in shown]
    body = _fill(
        "index",
        intro=escape(_INTRO),
        kinds=_kinds(
            [row for paper in gallery.exhibits for row in gallery.rows(paper)]
        ),
        papers=f'<div class="cards">{cards}</div>',
        filter=_filter(count_exhibits(every)),
        lines="\n".join(_line(x) for x in every),
    )
    return _page("Armwise: five papers done again", body)


def _page(title: str, body: str, figures: Sequence[Figure | PlotlyFigure] = ()) -> str:
    return page_to_html(
        title,
        body,
        figures,
        style=(_TEMPLATES / "gallery.css").read_text("utf-8"),
        script=(_TEMPLATES / "filter.js").read_text("utf-8"),
        is_shared=True,
    )


def _fill(template: str, **values: object) -> str:
    """Return a template of this folder with its placeholders replaced."""
    capitals = {name.upper(): value for name, value in values.items()}
    return fill(_TEMPLATES / f"{template}.html", **capitals).rstrip("\n")


def _line(exhibit: Exhibit) -> str:
    own, verdict = exhibit.experiment, exhibit.verdict
    return _fill(
        "index_row",
        verdict=verdict,
        paper=own.paper,
        anchor=own.anchor,
        name=escape(own.name),
        title=escape(own.title),
        rows=len(exhibit.rows) or "",
        figures=len(exhibit.drawings) or "",
        cell=f'<td class="verdict {_css_class(verdict)}">{verdict}</td>',
    )


def _paper_page(paper: Paper, shown: Sequence[Exhibit]) -> str:
    figures: list[Figure | PlotlyFigure] = []
    links = " ".join(
        f'<a href="#{x.experiment.anchor}" data-verdict="{x.verdict}">'
        f"{escape(x.experiment.name)}</a>"
        for x in shown
    )
    rows = [r for x in shown if not x.counted_for for r in x.rows]
    rows = list({id(row): row for row in rows}.values())
    body = _fill(
        "paper",
        citation=escape(paper.citation),
        about=escape(paper.about),
        counts=_counts(shown, rows),
        filter=_filter(count_exhibits(shown)),
        links=links,
        exhibits="\n".join(_exhibit(x, figures) for x in shown),
    )
    return _page(paper.title, body, figures)


def _exhibit(exhibit: Exhibit, figures: list[Figure | PlotlyFigure]) -> str:
    own, verdict = exhibit.experiment, exhibit.verdict
    where = (
        f" Counted for {exhibit.counted_for}, which has it, too."
        if exhibit.counted_for
        else ""
    )
    reason = f" {exhibit.reason}." if exhibit.reason else ""
    story = {
        "What the paper did": own.did,
        "What it says": exhibit.claims,
        "What we did": exhibit.ours,
        "What came out": exhibit.outcome + reason + where if exhibit.outcome else "",
    }
    parts = [
        f'<p><span class="step">{name}:</span> {escape(text)}</p>'
        for name, text in story.items()
        if text
    ]
    if own.illustration:
        what = escape(own.illustration)
        parts.append(
            f'<p class="soft">A {what}: it reports no result, so there is\n'
            "nothing to compute.</p>"
        )
    elif not exhibit.rows and not exhibit.drawings:
        run = f"armwise papers {own.paper} {own.group}"
        parts.append(f'<p class="soft">Not run yet: {escape(run)}</p>')
    compared = (ratio_drawing(exhibit), claim_drawing(exhibit))
    drawings = (*(x for x in compared if x is not None), *exhibit.drawings)
    drawn = [_drawing(drawing, figures) for drawing in drawings]
    parts.append(f'<div class="figures">{"".join(drawn)}</div>')
    if exhibit.rows:
        parts.append(_rows_to_html(own, exhibit.rows))
    return _fill(
        "exhibit",
        anchor=own.anchor,
        verdict=verdict,
        kind=_css_class(verdict),
        name=escape(f"{own.name} ({own.at})" if own.at else own.name),
        title=escape(own.title),
        body="\n".join(parts),
    )


def ratio_drawing(exhibit: Exhibit) -> Drawing | None:
    """Ours over the paper's, number by number, with the tolerance; the paper is 1."""
    names, ratios, widths = [], [], []
    for number, row in enumerate(exhibit.rows, start=1):
        if row["kind"] not in ("agrees", "better", "recovered"):
            continue
        low, high = (np.asarray(row[k], float) for k in ("low", "high"))
        values, target = np.asarray(row["values"], float), 0.5 * (low + high)
        for k in np.flatnonzero(np.abs(target) > (high - low)):
            if np.isfinite(values[k]):
                names.append(str(number) + ("abcdefgh"[k] if values.size > 1 else ""))
                ratios.append(values[k] / target[k])
                widths.append(0.5 * (high[k] - low[k]) / abs(target[k]))
    if not names:
        return None
    x = np.arange(len(names), dtype=float)
    ones = np.ones_like(x)
    figure = Figure(
        "Ours over the paper's", "row", "ratio",
        (
            Series("ours", x, np.array(ratios), "series"),
            paper_points("the paper", x, ones),
            tics("tolerance", x, ones, np.array(widths)),
        ),
        is_stems=True, x_names=tuple(names),
    )  # fmt: skip
    return Drawing(exhibit.experiment.name, figure, "rows as numbered below")


_FARTHEST = 1e3
"""Where values are clipped that lie far from a claim's bound."""


def claim_drawing(exhibit: Exhibit) -> Drawing | None:
    """Ours over the bound at which each claim of the paper would fail; that is 1."""
    names, ratios, bands = [], [], []
    for number, row in enumerate(exhibit.rows, start=1):
        if row["kind"] != "claim":
            continue
        bounds = zip(row["values"], row["low"], row["high"], strict=True)
        for k, (value, low, high) in enumerate(bounds):
            low, high = float(low), float(high)
            has_low, has_high = low > 0.0, np.isfinite(high)
            middle = np.sqrt(low * high) if has_low and has_high else max(low, 0.0)
            middle = middle if has_low else high
            sign = "" if has_low and has_high else "≥" if has_low else "≤"
            letter = "abcdefgh"[k] if len(row["values"]) > 1 else ""
            names.append(f"{number}{letter} {sign}".strip())
            ratios.append(np.clip(float(value) / middle, 1 / _FARTHEST, _FARTHEST))
            bands.append((low / middle, high / middle) if not sign else (1.0, 1.0))
    if not names:
        return None
    x, edges = np.arange(len(names), dtype=float), np.array(bands)
    figure = Figure(
        "Ours over the bounds of the claims", "row", "ratio",
        (
            Series("ours", x, np.array(ratios), "series"),
            paper_points("the claim's bound", np.repeat(x, 2), edges.ravel()),
        ),
        is_logarithmic=True, is_stems=True, x_names=tuple(names),
    )  # fmt: skip
    note = (
        "rows as numbered below; ≥ holds above 1, ≤ below, others between the two "
        "bounds; what is farther than a thousand is drawn there"
    )
    return Drawing(exhibit.experiment.name, figure, note)


def _drawing(drawing: Drawing, figures: list[Figure | PlotlyFigure]) -> str:
    figure = figure_to_html(drawing.figure, figures)
    note = f'<p class="soft note">{escape(drawing.note)}</p>' if drawing.note else ""
    return f"<div>{figure}{note}</div>"


def _counts(shown: Sequence[Exhibit], rows: Sequence[Row]) -> str:
    kinds = count_verdicts(rows)
    figures = sum(len(x.drawings) for x in shown)
    words = ", ".join(
        f'<span class="{_css_class(v)}">{kinds[v]} {v}</span>'
        for v in VERDICTS
        if kinds[v]
    )
    return (
        f"{len(rows)} rows: {words or 'none'}<br>{len(shown)} experiments, "
        f"{figures} figures"
    )


def _kinds(rows: Sequence[Row]) -> str:
    """The verdicts, what each means, and how many rows of all papers have it."""
    counts = count_verdicts(rows)
    lines = "".join(
        f'<tr><td class="verdict {_css_class(v)}">{v}</td>'
        f'<td class="number">{counts[v]}</td><td>{escape(MEANINGS[v])}</td></tr>'
        for v in VERDICTS
        if counts[v]
    )
    return f'<table class="kinds"><tbody>{lines}</tbody></table>'


def _filter(counts: Counter[str]) -> str:
    boxes = " ".join(
        f'<label><input type="checkbox" value="{v}" checked> '
        f'<span class="{_css_class(v)}">{v}</span> {counts[v]}</label>'
        for v in OUTCOMES
        if counts[v]
    )
    return f'<form class="filter" aria-label="Show by verdict">Show {boxes}</form>'


# An experiment's rows.

_SHORT = 26
"""Characters that stay on one line of a table."""


def _rows_to_html(experiment: Experiment, rows: Sequence[Row]) -> str:
    """A table; notes that rows share stand below it, numbered if several."""
    notes = list(dict.fromkeys(str(row["note"]) for row in rows if row["note"]))
    is_below = len(rows) == 1 or len(notes) < sum(bool(row["note"]) for row in rows)
    has_beside = any(row["beside"] for row in rows)
    has_tolerance = any(row["tolerance"] for row in rows)
    lines = []
    for number, row in enumerate(rows, start=1):
        note = str(row["note"])
        if is_below:
            note = str(notes.index(note) + 1) if note and len(notes) > 1 else ""
        texts = [str(number), _quantity(experiment, row), cell(row["paper"])]
        texts += [str(row["beside"])] if has_beside else []
        texts += [cell(row["ours"])]
        texts += [str(row["tolerance"])] if has_tolerance else []
        lines.append((texts, str(row["verdict"]), note))
    heading = "note" if notes and not (is_below and len(notes) == 1) else ""
    columns = ["", "quantity", "paper", *(["beside"] if has_beside else []), "ours"]
    columns += [*(["tolerance"] if has_tolerance else []), "verdict", heading]
    table = _fill(
        "rows",
        columns="".join(f'<th scope="col">{name}</th>' for name in columns),
        rows="\n".join(_row(*line, columns) for line in lines),
    )
    return table + (_notes_to_html(notes) if is_below else "")


def _row(texts: Sequence[str], verdict: str, note: str, columns: Sequence[str]) -> str:
    word = f'<td class="verdict {_css_class(verdict)}">{verdict}</td>'
    cells = map(_text_cell, texts, columns)
    return f"<tr>{''.join(cells)}{word}{_text_cell(note, columns[-1])}</tr>"


def _text_cell(text: str, column: str) -> str:
    kind = ' class="short"' if len(text) <= _SHORT else ""
    # On a phone cells stand below one another, each behind its column's name.
    name = f' data-column="{column}"' if column and text else ""
    return f"<td{kind}{name}>{escape(text)}</td>"


def _notes_to_html(notes: Sequence[str]) -> str:
    if len(notes) == 1:
        return f'<p class="soft note">{escape(notes[0])}</p>'
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ol class="soft note">{items}</ol>' if notes else ""


def _quantity(experiment: Experiment, row: Row) -> str:
    """What is compared, and which part of the experiment it belongs to."""
    label = str(row["experiment"])
    own = next(x for x in experiment.labels if label == x or label.startswith(f"{x},"))
    part = label.removeprefix(own).removeprefix(",").strip()
    return f"{part}: {row['quantity']}" if part else str(row["quantity"])


def _css_class(verdict: str) -> str:
    """The class that colours a verdict."""
    return verdict.replace(" ", "-").replace("'", "")
