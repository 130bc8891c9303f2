"""Output of subcommands: one JSON object for machines, tables and bars for people."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from armwise.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of tables.")
]
"""The option every subcommand has."""


def print_json(value: object) -> None:
    """Print one JSON object; numbers that are not finite become null."""
    typer.echo(json.dumps(to_plain(value), ensure_ascii=False, indent=2))


def to_plain(value: Any) -> Any:
    """Turn arrays, dataclasses and NumPy numbers into what JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if isinstance(value, Sequence | set | frozenset):
        return [to_plain(item) for item in value]
    return str(value)


def console(*, error: bool = False) -> Console:
    """Return where people read: coloured on a terminal, plain elsewhere."""
    from rich.console import Console

    screen = Console(stderr=error, highlight=False, soft_wrap=error, emoji=False)
    if not screen.is_terminal:
        screen.width = max(screen.width, 120)  # a pipe has no width; 80 folds tables
    return screen


def table(title: str, columns: Sequence[str]) -> Table:
    """Begin a table: text to the left, numbers (all but the first column) right."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    # Units stand in brackets, which rich takes for styles.
    rows = Table(
        title=escape(title), box=SIMPLE_HEAD, title_justify="left", title_style="bold"
    )
    for i, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if i else "left"
        rows.add_column(escape(column), justify=justify, overflow="fold")
    return rows


def heads(names: Sequence[str]) -> list[str]:
    """Joints' names without words that all begin or end with, for a table's head."""
    words = [re.findall(r"[^_/]*[_/]*", name)[:-1] for name in names]
    before: list[str] = []
    while len(words) > 1 and min(map(len, words)) > 1:
        if len({own[0] for own in words}) == 1:
            before = [own.pop(0) for own in words][:1]
        elif len({own[-1] for own in words}) == 1:
            words = [own[:-1] for own in words]
        else:
            break
    # A number alone is not a name: the word before it stays.
    if all(own[0].isdigit() for own in words):
        words = [[*before, *own] for own in words]
    return ["".join(own).rstrip("_/") for own in words]


_SAID: ContextVar[set[str] | None] = ContextVar("said", default=None)
"""Warnings that the command at work has printed."""


@contextmanager
def warnings_once() -> Iterator[None]:
    """Print each warning once: an arm that is loaded again has the same to say."""
    token = _SAID.set(set())
    try:
        yield
    finally:
        _SAID.reset(token)


def warn(message: str) -> None:
    """Print a warning to standard error."""
    from rich.text import Text

    said = _SAID.get()
    if said is not None:
        if message in said:
            return
        said.add(message)
    console(error=True).print(Text(f"Warning: {message}", style="yellow"))


def figure(value: float, digits: int = 4) -> str:
    """Write a number for people; a dash where it is not finite."""
    return f"{value:.{digits}g}" if math.isfinite(value) else "–"


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Show how far a task is; call what it yields with a step and a fraction done."""
    if quiet or not sys.stderr.isatty():
        yield lambda step, fraction: None  # nobody watches: no bar to import
        return
    from rich import progress as rich

    with rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TimeElapsedColumn(),
        console=console(error=True),
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=1.0)

        def report(step: str, fraction: float) -> None:
            bar.update(task, description=f"{title}: {step}", completed=fraction)

        yield report
