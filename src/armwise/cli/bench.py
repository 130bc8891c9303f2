"""armwise bench: speed and accuracy beside a named peer, measured in the same run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Annotated, Any

import typer

from armwise.cli.checkout import checkout_folder
from armwise.cli.output import AsJson, console, figure, print_json, table, warn
from armwise.errors import ArgumentError


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
            _show(name, results[name])
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


def _show(name: str, rows: list[dict[str, Any]]) -> None:
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
