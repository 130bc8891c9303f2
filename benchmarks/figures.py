"""What benchmarks share: a row of figures, and a way to time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One figure: ours, the peer's in the same run, their ratio, what is asked."""

    name: str
    ours: float
    theirs: float
    ratio: float
    bar: str


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several runs in [s]."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
