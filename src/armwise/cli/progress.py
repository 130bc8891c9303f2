"""Progress for people: a bar on a terminal, nothing for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    title: str, *, quiet: bool = False
) -> Iterator[Callable[[str, float], None]]:
    """Show how far a task is; call what it yields with a word and a share in 0…1."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from armwise.cli.output import console

    screen = console(error=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=quiet or not screen.is_terminal,
    ) as bar:
        task = bar.add_task(title, total=1.0)

        def tell(what: str, share: float) -> None:
            bar.update(task, description=f"{title}: {what}", completed=share)

        yield tell
