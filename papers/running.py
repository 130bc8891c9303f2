"""Runs of experiments, in processes side by side, with a store of finished ones."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from armwise.files import write_atomically
from armwise.progress import Progress
from papers.catalogue import Group, GroupResult, find_groups
from papers.drawings import from_plain, to_plain
from papers.rows import Row


@dataclass(frozen=True)
class Store:
    """A folder with one file per finished group.

    What was made by another version of any source file, or by a package that was
    missing then, does not count.
    """

    folder: Path

    def read(self, module: str) -> GroupResult | None:
        """Return what a module made, if this very program made it."""
        try:
            stored = json.loads(self._file(module).read_text("utf-8"))
            if stored["program"] != program_hash():
                return None
            drawings = tuple(from_plain(plain) for plain in stored["drawings"])
            return GroupResult(
                tuple(stored["rows"]), drawings, float(stored["seconds"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or not ours: it is made again

    def write(self, module: str, made: GroupResult) -> None:
        """Keep what a module made, unless it could not run."""
        if any(row["verdict"] == "not run" for row in made.rows):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        stored = {
            "program": program_hash(),
            "seconds": round(made.seconds, 1),
            "rows": [plain_row(row) for row in made.rows],
            "drawings": [to_plain(drawing) for drawing in made.drawings],
        }
        text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
        write_atomically(self._file(module), text)

    def _file(self, module: str) -> Path:
        return self.folder / f"{module.rpartition('.')[2]}.json"


@cache
def program_hash() -> str:
    """Name this program by all source and data files of the package and of papers/."""
    import armwise

    digest = sha256()
    for root in (Path(armwise.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{root.name}/{path.relative_to(root)}\n".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def plain_row(row: Row) -> Row:
    """Return a row as JSON has it."""
    return {key: _plain(value) for key, value in row.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)  # JSON has no infinity; NumPy reads "inf"
    return value if isinstance(value, str | bool | int | float) else str(value)


def reproduce(
    paper: str, group: str | None = None, progress: Progress | None = None
) -> list[Row]:
    """Redo a paper's experiments; ours beside the paper's, a verdict for each.

    Args:
        paper: Its short name, such as `aah1986`.
        group: Only these experiments, such as `links`.
        progress: Called with what is being done and how much of it is done.
    """
    made = run_groups(find_groups(paper, group), progress)
    return [row for part in made.values() for row in part.rows]


def run_groups(
    selection: Sequence[Group],
    progress: Progress | None = None,
    *,
    workers: int = 1,
    store: Store | None = None,
) -> dict[Group, GroupResult]:
    """Redo groups; what two papers fraction is done once.

    Args:
        selection: The groups.
        progress: Called with what is being done and how much of it is done.
        workers: Processes to fraction the work among.
        store: Where finished groups are kept and, if nothing changed, taken from.
    """
    report = progress or (lambda what, fraction: None)
    results: dict[str, GroupResult] = {}
    waiting: dict[str, Group] = {}
    for group in sorted(selection, key=lambda g: -g.seconds):  # long ones first
        stored = store.read(group.module) if store else None
        if stored is not None:
            results[group.module] = stored
        else:
            waiting.setdefault(group.module, group)
    clock = _Clock(waiting, report)
    for group, made in _each(list(waiting.values()), clock, workers):
        results[group.module] = made
        clock.finish(group)
        if store is not None:
            store.write(group.module, made)
    report("done", 1.0)
    return {group: results[group.module] for group in selection}


class _Clock:
    """Tells how much is done, each group counting by the time it is known to take."""

    def __init__(self, waiting: dict[str, Group], report: Progress) -> None:
        self._total = sum(group.seconds for group in waiting.values()) or 1.0
        self._done, self._report = 0.0, report

    def within(self, group: Group, fraction: float) -> None:
        now = self._done + fraction * group.seconds
        self._report(f"{group.paper} {group.name}", now / self._total)

    def step(self, group: Group, _: str, fraction: float) -> None:
        self.within(group, fraction)

    def finish(self, group: Group) -> None:
        self._done += group.seconds
        self._report(f"{group.paper} {group.name}", self._done / self._total)


def _each(
    waiting: list[Group], clock: _Clock, workers: int
) -> Iterator[tuple[Group, GroupResult]]:
    if workers <= 1 or len(waiting) <= 1:
        for group in waiting:
            clock.within(group, 0.0)
            yield group, group.redo(partial(clock.step, group))
        return
    # Leaving the pool ends its processes, so Ctrl-C stops at once.
    with get_context("spawn").Pool(workers, _leave_interrupts_to_parent) as pool:
        yield from pool.imap_unordered(_redo, waiting)


def _redo(group: Group) -> tuple[Group, GroupResult]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # two processes, two cores
        return group, group.redo()


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
