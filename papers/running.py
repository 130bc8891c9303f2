"""Redoing experiments: one after another or side by side, kept as they finish."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from multiprocessing import get_context

from armwise.progress import Progress
from papers.catalogue import Group, Made, find_groups
from papers.rows import Row
from papers.store import Store


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
    chosen: Sequence[Group],
    progress: Progress | None = None,
    *,
    workers: int = 1,
    store: Store | None = None,
) -> dict[Group, Made]:
    """Redo groups; what two papers share is done once.

    Args:
        chosen: The groups.
        progress: Called with what is being done and how much of it is done.
        workers: Processes to share the work among.
        store: Where finished groups are kept and, if nothing changed, taken from.
    """
    tell = progress or (lambda what, share: None)
    found: dict[str, Made] = {}
    waiting: dict[str, Group] = {}
    for group in sorted(chosen, key=lambda g: -g.seconds):  # long ones first
        kept = store.read(group.module) if store else None
        if kept is not None:
            found[group.module] = kept
        else:
            waiting.setdefault(group.module, group)
    clock = _Clock(waiting, tell)
    for group, made in _each(list(waiting.values()), clock, workers):
        found[group.module] = made
        clock.finish(group)
        if store is not None:
            store.write(group.module, made)
    tell("done", 1.0)
    return {group: found[group.module] for group in chosen}


class _Clock:
    """Tells how much is done, each group counting by the time it is known to take."""

    def __init__(self, waiting: dict[str, Group], tell: Progress) -> None:
        self._total = sum(group.seconds for group in waiting.values()) or 1.0
        self._done, self._tell = 0.0, tell

    def within(self, group: Group, share: float) -> None:
        now = self._done + share * group.seconds
        self._tell(f"{group.paper} {group.name}", now / self._total)

    def finish(self, group: Group) -> None:
        self._done += group.seconds
        self._tell(f"{group.paper} {group.name}", self._done / self._total)


def _each(
    waiting: list[Group], clock: _Clock, workers: int
) -> Iterator[tuple[Group, Made]]:
    if workers <= 1 or len(waiting) <= 1:
        for group in waiting:
            clock.within(group, 0.0)
            yield group, group.redo(lambda _, share, g=group: clock.within(g, share))  # type: ignore[misc]
        return
    # Leaving the pool ends its processes, so Ctrl-C stops at once.
    with get_context("spawn").Pool(workers, _leave_interrupts_to_parent) as pool:
        yield from pool.imap_unordered(_redo, waiting)


def _redo(group: Group) -> tuple[Group, Made]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # two processes, two cores
        return group, group.redo()


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
