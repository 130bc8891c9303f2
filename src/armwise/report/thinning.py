"""Few points that show what many do."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float, Int

POINTS = 2000
"""Most points of one curve."""

_TOTAL = 130_000
"""Most points of all curves of a report: about a megabyte of digits."""


def points_per_curve(curves: int) -> int:
    """How many points each of so many curves may have."""
    return max(50, min(POINTS, _TOTAL // max(curves, 1)))


def telling_rows(
    values: Float[np.ndarray, " samples"], most: int
) -> Int[np.ndarray, " rows"]:
    """Choose rows, in order: of each stretch the least and the greatest value.

    Taking every k-th row would hide the very spikes one looks for.
    """
    if values.size <= most:
        return np.arange(values.size)
    edges = np.linspace(0, values.size, most // 2 + 1).astype(int)
    rows: set[int] = set()
    for first, last in pairwise(edges.tolist()):
        piece = values[first:last]
        rows |= {first + int(piece.argmin()), first + int(piece.argmax())}
    return np.array(sorted(rows))


def continued_time(samples: Samples) -> Float[np.ndarray, " samples"]:
    """Time in [s] that goes on from run to run, one second between them."""
    time = np.array(samples.time)
    for start in samples.starts[1:]:
        if time[start] <= time[start - 1]:
            time[start:] += time[start - 1] - time[start] + 1.0
    return time


def with_breaks(
    rows: Int[np.ndarray, " rows"], values: np.ndarray, samples: Samples
) -> np.ndarray:
    """Pick rows and put NaN where a segment begins, so that no line crosses a gap."""
    picked = np.array(values, dtype=float)[rows]
    starts = np.searchsorted(rows, np.asarray(samples.starts[1:], dtype=int))
    return np.insert(picked, starts[starts < rows.size], np.nan)
