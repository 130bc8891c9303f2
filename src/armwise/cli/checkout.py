"""armwise papers and bench: reproductions and benchmarks, from a checkout."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import armwise
from armwise.cli.arguments import output_folder
from armwise.cli.output import (
    AsJson,
    console,
    figure,
    print_json,
    progress_bar,
    table,
    warn,
)
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from papers import Gallery, Group, GroupResult

_STYLES = {
    "agrees": "green", "better": "green", "recovered": "green", "claim holds": "green",
    "differs": "red", "claim fails": "red", "paper's slip": "yellow", "ours": "dim",
    "not comparable": "dim", "not run": "dim",
}  # fmt: skip


def _paper_names(incomplete: str) -> list[str]:
    with suppress(ArgumentError):  # no checkout: nothing to offer
        checkout_folder("papers")
        from papers import PAPERS

        names = [*(paper.name for paper in PAPERS), "all"]
        return [name for name in names if name.startswith(incomplete)]
    return []


def _group_names(context: typer.Context, incomplete: str) -> list[str]:
    with suppress(ArgumentError):  # no checkout, or no such paper
        checkout_folder("papers")
        from papers import groups

        names = [group.name for group in groups(context.params.get("name") or "")]
        return [name for name in names if name.startswith(incomplete)]
    return []


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
        Path | None, output_folder("Write a static site into this folder.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes to use for a site.")
    ] = 2,
    json: AsJson = False,
) -> None:
    """Redo the experiments of five classic papers; a verdict for every number.

    With -o every table and figure becomes a static site. Finished groups are kept in
    its folder: an interrupted run goes on where it stopped.

    Example: armwise papers

    Example: armwise papers aah1986 links -o gallery
    """
    checkout_folder("papers")
    from papers.catalogue import find_groups

    if name is None:
        _list(json)
    elif name != "all":
        _redo(find_groups(name, group), output, workers, json)
    elif group is not None:
        raise typer.BadParameter("all takes no group; name the paper instead.")
    else:
        _redo(None, output or Path("gallery"), workers, json)


def _list(json: bool) -> None:
    from papers import PAPERS, experiments, groups

    listing = {paper: groups(paper.name) for paper in PAPERS}
    if json:
        print_json(
            [
                {
                    "name": paper.name,
                    "citation": paper.citation,
                    "about": paper.about,
                    "experiments": [e.name for e in experiments(paper.name)],
                    "groups": [
                        {"name": g.name, "title": g.title, "seconds": g.seconds}
                        for g in parts
                    ],
                }
                for paper, parts in listing.items()
            ]
        )
        return
    shown = table("Papers", ["paper", "group", "what", "shows", "takes"])
    for column in shown.columns[:-1]:
        column.justify = "left"
    for paper, parts in listing.items():
        shown.add_row(paper.name, "", paper.citation, "", "")
        for part in parts:
            own = [e.name for e in experiments(paper.name) if e.group == part.name]
            shown.add_row(
                "", part.name, part.title, "; ".join(own), f"{part.seconds:.0f} s"
            )
    console().print(shown)
    console().print("All of them as a site: armwise papers all -o gallery")


def _redo(
    selection: Sequence[Group] | None, output: Path | None, workers: int, json: bool
) -> None:
    from papers import run_groups, write_gallery

    if output is None:
        assert selection is not None
        with progress_bar("Redo", quiet=json) as progress:
            results = run_groups(selection, progress)
        _show(results, json)
        return
    output.mkdir(parents=True, exist_ok=True)  # fail now rather than at the end
    with progress_bar("Redo", quiet=json) as progress:
        gallery = write_gallery(output, selection, progress, workers=workers)
    _summarise(gallery, output, json)


def _summarise(gallery: Gallery, output: Path, json: bool) -> None:
    from papers.gallery import count_verdicts

    rows = [row for paper in gallery.exhibits for row in gallery.rows(paper)]
    if json:
        print_json(rows)
        return
    count = sum(len(shown) for shown in gallery.exhibits.values())
    counts = ", ".join(f"{n} {what}" for what, n in count_verdicts(rows).items())
    console().print(f"{count} experiments, {len(rows)} rows: {counts}")
    for paper in gallery.exhibits:
        for row in gallery.rows(paper):
            if row["verdict"] in ("differs", "claim fails"):
                what = f"{paper.name} {row['experiment']}: {row['quantity']}"
                warn(f"{what}: {row['verdict']}.")
    missing = gallery.missing()
    if missing:
        few = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        warn(f"{len(missing)} experiments are not run yet: {few}")
    console().print(f"Open {output / 'index.html'}", soft_wrap=True)


def _show(results: dict[Group, GroupResult], json: bool) -> None:
    if json:
        print_json([row for part in results.values() for row in part.rows])
        return
    for group, part in results.items():
        _show_group(f"{group.paper} {group.name}: {group.title}", part)


def _show_group(title: str, result: GroupResult) -> None:
    from rich.text import Text

    from papers.drawings import to_lines
    from papers.gallery import cell, count_verdicts

    columns = ["experiment", "quantity", "paper", "ours", "tolerance", "verdict"]
    shown = table(title, columns)
    for column in shown.columns:
        column.justify = "left"
    for row in result.rows:
        texts = [Text(cell(row[key])) for key in columns]
        texts[-1].stylize(_STYLES.get(str(row["verdict"]), ""))
        shown.add_row(*texts)
    out = console()
    out.print(shown)
    kinds = ", ".join(f"{n} {v}" for v, n in count_verdicts(result.rows).items())
    out.print(Text(f"  {len(result.rows)} rows: {kinds}"))
    for note in dict.fromkeys(str(row["note"]) for row in result.rows if row["note"]):
        out.print(Text(f"  {note}", style="dim"))
    for line in to_lines(result.drawings):
        out.print(Text(f"  {line}"))


# armwise bench: speed and accuracy beside a named peer, measured in the same run.


def _complete(incomplete: str) -> list[str]:
    try:
        return [name for name in _benchmarks() if name.startswith(incomplete)]
    except ArgumentError:  # not in a checkout
        return []


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Which ones; all if none.", metavar="NAME", autocompletion=_complete
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Measure speed and accuracy beside other packages; times are this machine's.

    Example: armwise bench dynamics
    """
    benchmarks = _benchmarks()
    selection = benchmarks if not names or names == ["all"] else names
    if unknown := [name for name in selection if name not in benchmarks]:
        raise ArgumentError(
            f"There is no benchmark {unknown[0]!r}. Known: {', '.join(benchmarks)}."
        )
    results: dict[str, list[dict[str, Any]]] = {}
    for name in selection:
        results[name] = _measure(name)
        if not json:
            _show_benchmarks(name, results[name])
    if json:
        print_json(results)


def _measure(name: str) -> list[dict[str, Any]]:
    """Run a benchmark: its rows of figures, or the lines it prints for itself."""
    module = import_module(f"benchmarks.{name}")
    if hasattr(module, "run"):
        return [_plain(row) for row in module.run()]
    printed = StringIO()
    with redirect_stdout(printed), _without_arguments():
        module.main()
    return [{"figures": line} for line in printed.getvalue().splitlines() if line]


@contextmanager
def _without_arguments() -> Iterator[None]:
    """Let a script see no command-line arguments of ours."""
    arguments = sys.argv
    sys.argv = arguments[:1]
    try:
        yield
    finally:
        sys.argv = arguments


def _benchmarks() -> list[str]:
    """Return the names of the checkout's benchmarks."""
    names = sorted(path.stem for path in checkout_folder("benchmarks").glob("*.py"))
    return [name for name in names if name not in ("__init__", "figures")]


def _plain(row: Any) -> dict[str, Any]:
    return dict(row._asdict()) if hasattr(row, "_asdict") else dict(row)


def _show_benchmarks(name: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        warn(f"{name}: nothing was measured.")
        return
    columns = list(rows[0])
    shown = table(name, columns)
    for row in rows:
        shown.add_row(*[_text(row.get(column)) for column in columns])
    console().print(shown)


def _text(value: Any) -> str:
    from rich.markup import escape

    return figure(value, 4) if isinstance(value, float) else escape(str(value))


# Folders that come with a checkout and not with the installed package.


def checkout_folder(name: str) -> Path:
    """Return a folder of the checkout, such as benchmarks, and make it importable.

    The checkout is the one the package runs from or, where the package is installed,
    the working directory.

    Raises:
        ArgumentError: If there is no checkout.
    """
    for root in (Path(armwise.__file__).parents[2], Path.cwd()):
        # A folder of that name is not enough: its code will be run, so it must be ours.
        if (root / name).is_dir() and (root / "src" / "armwise").is_dir():
            if sys.path[0] != str(root):  # first: others ship packages of this name
                sys.path.insert(0, str(root))
            return root / name
    raise ArgumentError(
        f"{name}/ comes with the source tree, not with the installed package. Run this "
        "command in a checkout of Armwise."
    )
