"""The same motion done twice: found again in time, and put on one time base."""

from __future__ import annotations

import numpy as np

from armwise.errors import ArgumentError
from armwise.recordings import Samples

_SEARCH = 0.5
"""How far either way the clocks of two runs may be apart in [s]."""


def repeated(data: Samples, other: Samples) -> tuple[Samples, Samples]:
    """Return both runs at the same instants of the motion.

    Clocks need not agree: each segment is shifted to where the positions fit best.

    Raises:
        ArgumentError: If it is not the same motion.
    """
    if len(data.starts) != len(other.starts) or data.dof != other.dof:
        raise ArgumentError(
            f"The loaded motion has {len(data.starts)} segments of {data.dof} joints, "
            f"the bare one {len(other.starts)} of {other.dof}; they must be the same "
            "motion."
        )
    pairs = [
        _aligned(data[here], other[there])
        for here, there in zip(data.segments, other.segments, strict=True)
    ]
    mine = Samples.concatenate([pair[0] for pair in pairs])
    theirs = Samples.concatenate([pair[1] for pair in pairs])
    _require_same_motion(mine, theirs)
    return mine, theirs


def _aligned(data: Samples, other: Samples) -> tuple[Samples, Samples]:
    shift = _best_shift(data, other)
    inside = (data.time + shift >= other.time[0]) & (
        data.time + shift <= other.time[-1]
    )
    kept = np.flatnonzero(inside)
    if kept.size < 10:
        raise ArgumentError(
            "The bare motion and the loaded one do not overlap in time; they must be "
            "the same motion, begun alike."
        )
    mine = data[int(kept[0]) : int(kept[-1]) + 1]
    at = mine.time + shift

    def there(values: np.ndarray) -> np.ndarray:
        columns = [np.interp(at, other.time, column) for column in values.T]
        return np.stack(columns, axis=1)

    return mine, Samples(
        time=mine.time,
        q=there(other.q),
        qd=there(other.qd),
        qdd=there(other.qdd),
        tau=there(other.tau),
        preparation=other.preparation,
        arm=other.arm,
    )


def _best_shift(data: Samples, other: Samples) -> float:
    """Time [s] to add to this run's clock to read the other's."""
    coarse = np.linspace(-_SEARCH, _SEARCH, 101)
    best = min(
        (_apart(data, other, base + s), base + s)
        for base in (0.0, float(other.time[0] - data.time[0]))
        for s in coarse
    )[1]
    for width in (0.01, 0.001):
        fine = best + np.linspace(-width, width, 21)
        best = min((_apart(data, other, float(s)), float(s)) for s in fine)[1]
    return best


def _apart(data: Samples, other: Samples, shift: float) -> float:
    """Mean squared distance of the positions, where both were recorded."""
    rows = slice(None, None, max(1, len(data) // 300))
    at = data.time[rows] + shift
    inside = (at >= other.time[0]) & (at <= other.time[-1])
    if inside.mean() < 0.5:
        return float("inf")
    total = 0.0
    for mine, theirs in zip(data.q[rows][inside].T, other.q.T, strict=True):
        total += float(np.mean((mine - np.interp(at[inside], other.time, theirs)) ** 2))
    return total


def _require_same_motion(data: Samples, other: Samples) -> None:
    apart = np.sqrt(np.mean((data.q - other.q) ** 2, axis=0))
    reach = np.sqrt(np.mean((data.q - data.q.mean(axis=0)) ** 2, axis=0))
    worst = int(np.argmax(apart - 0.1 * reach))
    if apart[worst] > 0.1 * reach[worst] + 0.02:
        raise ArgumentError(
            f"The bare motion is not the loaded one: joint {worst + 1} differs by "
            f"{apart[worst]:.3f} rad (root mean square). Repeat the same motion, from "
            "the same start, or leave out bare and give an identified arm."
        )
