"""An experiment's rows as a table of the gallery."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from papers.experiments import Experiment
from papers.gallery import cell
from papers.rows import Row

_ROWS = Template("""<div class="scroll"><table><thead><tr>
<th scope="col">quantity</th><th scope="col">paper</th><th scope="col">ours</th>
<th scope="col">verdict</th><th scope="col">$note</th></tr></thead>
<tbody>
$rows
</tbody></table></div>""")

_SHORT = 26
"""Characters that stay on one line of a table."""


def rows_to_html(experiment: Experiment, rows: Sequence[Row]) -> str:
    """A table; notes that rows share stand below it, numbered if several."""
    notes = list(dict.fromkeys(str(row["note"]) for row in rows if row["note"]))
    is_below = len(rows) == 1 or len(notes) < sum(bool(row["note"]) for row in rows)
    lines = []
    for row in rows:
        note = str(row["note"])
        if is_below:
            note = str(notes.index(note) + 1) if note and len(notes) > 1 else ""
        told = [_quantity(experiment, row), cell(row["paper"]), cell(row["ours"])]
        lines.append(_row(told, str(row["verdict"]), note))
    heading = "note" if notes and not (is_below and len(notes) == 1) else ""
    table = _ROWS.substitute(note=heading, rows="\n".join(lines))
    return table + (_notes_to_html(notes) if is_below else "")


def _row(told: Sequence[str], verdict: str, note: str) -> str:
    word = f'<td class="verdict {css_class(verdict)}">{verdict}</td>'
    return f"<tr>{''.join(map(_cell, told))}{word}{_cell(note)}</tr>"


def _cell(text: str) -> str:
    is_short = len(text) <= _SHORT
    return (
        f'<td class="short">{escape(text)}</td>'
        if is_short
        else (f"<td>{escape(text)}</td>")
    )


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


def css_class(verdict: str) -> str:
    """The class that colours a verdict."""
    return verdict.replace(" ", "-")
