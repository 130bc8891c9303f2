"""One even time base out of stamps that jitter, repeat, stop and start."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

EVEN = 0.02
"""Stamps this close to even, in steps, are taken as even: no interpolation."""

GAP_STEPS = 10.0
"""A hole of more than so many steps interrupts the motion."""


@dataclass(frozen=True, eq=False)
class Stamps:
    """Which rows of a table to use, and their increasing times.

    Attributes:
        rows: Indices of the rows kept; None when it is all of them.
        time: Their stamps in [s].
        dropped: Why rows were left out → how many.
    """

    rows: Int[np.ndarray, " kept"] | None
    time: Float[np.ndarray, " kept"]
    dropped: dict[str, int] = field(default_factory=dict)

    def take(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the rows kept."""
        return values if self.rows is None else values[self.rows]


def clean_stamps(
    time: Float[np.ndarray, " rows"], source: str, skip_bad_rows: bool = False
) -> Stamps:
    """Drop repeated stamps; refuse stamps that run backwards, or drop them if asked.

    Args:
        time: Stamps as recorded in [s].
        source: Name of the recording, for messages.
        skip_bad_rows: Leave out rows whose time runs backwards instead of raising.
    """
    steps = np.diff(time)
    if time.size < 2:
        raise RecordingError(f"{source} has {time.size} rows; nothing can be prepared.")
    typical = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0
    if typical == 0.0:
        raise RecordingError(
            f"{source}: the time never increases. Check the time column."
        )
    if steps.min() > 0.1 * typical:
        return Stamps(None, time)
    if steps.min() < 0.0 and not skip_bad_rows:
        row = int(np.argmax(steps < 0)) + 1
        raise RecordingError(
            f"{source}: time runs backwards in row {row + 1} ({time[row - 1]:.9g} s, "
            f"then {time[row]:.9g} s). Cut the log there, or skip_bad_rows."
        )
    latest = np.maximum.accumulate(time)
    backwards = time < latest
    forward = np.flatnonzero(~backwards)
    keep = _thinned(time[forward], 0.1 * typical)
    dropped = {
        "time running backwards": int(backwards.sum()),
        "repeated time stamps": int(forward.size - keep.size),
    }
    rows = forward[keep]
    return Stamps(rows, time[rows], {why: n for why, n in dropped.items() if n})


def _thinned(time: np.ndarray, least: float) -> np.ndarray:
    """Return indices of increasing stamps that follow the one before by `least`."""
    keep = np.flatnonzero(np.diff(time, prepend=-np.inf) > least)
    while np.any(close := np.diff(time[keep], prepend=-np.inf) <= least):
        keep = keep[~close]
    return keep


def typical_step(time: Float[np.ndarray, " rows"]) -> float:
    """Return the usual time between stamps in [s], as even as the stamps allow."""
    steps = np.diff(time)
    middle = float(np.median(steps))
    usual = steps[np.abs(steps - middle) < 0.5 * middle]
    return float(usual.mean()) if usual.size else middle


def segments_of(
    time: Float[np.ndarray, " rows"], max_gap: float
) -> list[tuple[int, int]]:
    """Cut rows wherever a hole is longer than `max_gap` [s]: (first, last + 1)."""
    cuts = np.flatnonzero(np.diff(time) > max_gap) + 1
    edges = [0, *map(int, cuts), int(time.size)]
    return list(pairwise(edges))


@dataclass(frozen=True, eq=False)
class Resampler:
    """Reads a signal at other times by local cubic interpolation.

    The weights depend on the times only, so one resampler serves every channel of a
    table.

    Attributes:
        first: Index of the first of four neighbours, per wanted time; None: a copy.
        weights: Their four weights.
        rows: How many source values are used when nothing is interpolated.
    """

    first: Int[np.ndarray, " wanted"] | None
    weights: Float[np.ndarray, "4 wanted"] | None

    @classmethod
    def between(
        cls, time: Float[np.ndarray, " rows"], wanted: Float[np.ndarray, " wanted"]
    ) -> Resampler:
        """Prepare to read values at `wanted` that were stamped at `time`, both [s]."""
        if time.size == wanted.size:
            step = (time[-1] - time[0]) / max(time.size - 1, 1)
            if np.max(np.abs(time - wanted)) < EVEN * step:
                return cls(None, None)
        if time.size < 4:
            return cls(*_linear(time, wanted))
        return cls(*_cubic(time, wanted))

    def __call__(self, values: Float[np.ndarray, " rows"]) -> np.ndarray:
        """Return the values at the wanted times."""
        if self.first is None or self.weights is None:
            return np.ascontiguousarray(values, dtype=float)
        result = self.weights[0] * values[self.first]
        for k in range(1, len(self.weights)):
            result += self.weights[k] * values[self.first + k]
        return np.asarray(result)


def _linear(time: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i = np.clip(np.searchsorted(time, wanted, side="right") - 1, 0, time.size - 2)
    share = (wanted - time[i]) / (time[i + 1] - time[i])
    return i, np.stack([1.0 - share, share])


def _cubic(time: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weigh four neighbours by the cubic Hermite through parabolic slopes.

    At the ends the outermost interval borrows the neighbours inside it.
    """
    i = np.clip(np.searchsorted(time, wanted, side="right") - 1, 1, time.size - 3)
    a, b, c = time[i] - time[i - 1], time[i + 1] - time[i], time[i + 2] - time[i + 1]
    u = (wanted - time[i]) / b
    h10 = u * (1.0 - u) ** 2 * b
    h11 = u * u * (u - 1.0) * b
    h01 = u * u * (3.0 - 2.0 * u)
    left, right = h10 / (a + b), h11 / (b + c)
    weights = np.empty((4, wanted.size))
    weights[0] = -left * b / a
    weights[1] = 1.0 - h01 + left * (b / a - a / b) - right * c / b
    weights[2] = h01 + left * a / b + right * (c / b - b / c)
    weights[3] = right * b / c
    return i - 1, weights
