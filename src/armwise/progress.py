"""Progress of long work, as functions report it to whoever shows it."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is done, 0 … 1."""


def part_of(
    progress: Progress, what: str, begin: float, end: float
) -> Callable[[float], None]:
    """Return what reports how much of one part is done, as part of the whole."""
    return lambda done: progress(what, begin + (end - begin) * done)
