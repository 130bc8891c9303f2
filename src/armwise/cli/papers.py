"""armwise papers: five classic papers redone, ours beside theirs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armwise.cli.output import AsJson, console, print_json, table, warn

if TYPE_CHECKING:
    from armwise.papers.rows import Row

_STYLES = {"agrees": "green", "differs": "red", "shown": "yellow", "not run": "dim"}


def _paper_names(incomplete: str) -> list[str]:
    from armwise.papers import PAPERS

    names = [*(paper.name for paper in PAPERS), "all"]
    return [name for name in names if name.startswith(incomplete)]


def _group_names(context: typer.Context, incomplete: str) -> list[str]:
    from armwise.papers import groups

    if context.params.get("name") in (None, "all"):
        return []
    found = groups(context.params["name"])
    return [group.name for group in found if group.name.startswith(incomplete)]


def papers(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A paper, or all; without one they are listed.",
            autocompletion=_paper_names,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Argument(
            metavar="GROUP",
            help="Only these experiments, such as links.",
            autocompletion=_group_names,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write a static site into this folder."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Redo the experiments of five classic papers; a verdict for every number.

    Example: armwise papers

    Example: armwise papers aah1986 links -o gallery
    """
    if name is None:
        _list(json)
    elif name == "all":
        _all(group, output or Path("gallery"), json)
    else:
        _one(name, group, output, json)


def _list(json: bool) -> None:
    from armwise.papers import PAPERS, groups

    found = {paper: groups(paper.name) for paper in PAPERS}
    if json:
        print_json(
            [
                {
                    "name": paper.name,
                    "citation": paper.citation,
                    "about": paper.about,
                    "groups": [{"name": g.name, "title": g.title} for g in parts],
                }
                for paper, parts in found.items()
            ]
        )
        return
    shown = table("Papers", ["paper", "group", "what"])
    for column in shown.columns:
        column.justify = "left"
    for paper, parts in found.items():
        shown.add_row(paper.name, "", paper.about)
        for part in parts:
            shown.add_row("", part.name, part.title)
    console().print(shown)


def _one(name: str, group: str | None, output: Path | None, json: bool) -> None:
    from armwise.cli.progress import progress_bar
    from armwise.papers.catalogue import find_groups, run_groups
    from armwise.papers.gallery import write_pages

    chosen = find_groups(name, group)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)  # fail now rather than at the end
    with progress_bar("Redo", quiet=json) as tell:
        made = run_groups(chosen, tell)
    if output is not None:
        write_pages(output, made)
    if json:
        print_json([row for rows in made.values() for row in rows])
        return
    for part, rows in made.items():
        _show(f"{part.paper} {part.name}: {part.title}", rows)
    if output is not None:
        console().print(f"Open {output / 'index.html'}", soft_wrap=True)


def _all(group: str | None, output: Path, json: bool) -> None:
    from armwise.cli.progress import progress_bar
    from armwise.papers import PAPERS, groups
    from armwise.papers.catalogue import run_groups
    from armwise.papers.gallery import count_verdicts, write_pages

    if group is not None:
        raise typer.BadParameter("all takes no group; name the paper instead.")
    output.mkdir(parents=True, exist_ok=True)  # fail now rather than at the end
    chosen = [part for paper in PAPERS for part in groups(paper.name)]
    with progress_bar("Redo", quiet=json) as tell:
        made = run_groups(chosen, tell)
    write_pages(output, made)
    rows = [row for found in made.values() for row in found]
    if json:
        print_json(rows)
        return
    counts = ", ".join(f"{n} {what}" for what, n in count_verdicts(rows).items())
    console().print(f"{len(rows)} rows: {counts}")
    for part, found in made.items():
        for row in found:
            if row["verdict"] == "differs":
                warn(f"{part.paper} {row['experiment']}: {row['quantity']} differs.")
    console().print(f"Open {output / 'index.html'}", soft_wrap=True)


def _show(title: str, rows: list[Row]) -> None:
    from rich.text import Text

    from armwise.papers.gallery import cell

    columns = ["experiment", "quantity", "paper", "ours", "verdict"]
    shown = table(title, columns)
    for column in shown.columns:
        column.justify = "left"
    for row in rows:
        texts = [Text(cell(row[key])) for key in columns]
        texts[-1].stylize(_STYLES.get(str(row["verdict"]), ""))
        shown.add_row(*texts)
    out = console()
    out.print(shown)
    told = dict.fromkeys(str(row["note"]) for row in rows if row["note"])
    for note in told:
        out.print(Text(f"  {note}", style="dim"))
