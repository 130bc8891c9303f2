"""When the arm moves, and how slow is too slow to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.spectra import LONGEST

if TYPE_CHECKING:
    from jaxtyping import Float


STILL = 0.005
"""Share of a joint's top speed below which it counts as standing still."""


RESOLUTION = 0.0005
"""Share of a joint's top speed below which its direction is not known."""


def speed_resolution(qd: Float[np.ndarray, "samples dof"]) -> np.ndarray:
    """Return the speed below which each joint's direction means nothing."""
    return RESOLUTION * _top_speed(qd)


def moving_pieces(
    qd: Float[np.ndarray, "samples dof"], rate_hz: float, longest_rest: float = 0.5
) -> list[tuple[int, int]]:
    """Return the rows between long rests of the whole arm: (first, last + 1).

    At rest friction may take any value, so a model learns nothing true from it.
    """
    top = _top_speed(qd)
    if not top.max() > 0.0:
        return [(0, len(qd))]
    joints = top > 0.01 * top.max()
    still = np.all(np.abs(qd[:, joints]) < STILL * top[joints], axis=1)
    edges = np.flatnonzero(np.diff(still, prepend=False, append=False))
    rests = [
        (a, b)
        for a, b in edges.reshape(-1, 2)
        if b - a > longest_rest * rate_hz or (a == 0 or b == len(qd))
    ]
    starts = [0, *(int(b) for _, b in rests)]
    stops = [*(int(a) for a, _ in rests), len(qd)]
    return [(a, b) for a, b in zip(starts, stops, strict=True) if b > a]


def _top_speed(qd: np.ndarray) -> np.ndarray:
    every = max(1, len(qd) // LONGEST)
    top: np.ndarray = np.percentile(np.abs(qd[::every]), 99.5, axis=0)
    return top
