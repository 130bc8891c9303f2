"""A stream of samples as it arrives, put in order: gaps, repeats and holes told."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.calibration.repeats import Repeats
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

_GAP = 8.0
"""Periods without a sample after which the stream counts as interrupted."""

_CHUNK = 0.02
"""Time in [s] whose samples are looked at together, if they come one by one."""

_BACK = 1.0
"""Time in [s] that clocks may step back; samples are passed over meanwhile."""


class Piece(NamedTuple):
    """Samples that follow each other, a period apart.

    Attributes:
        time: In [s].
        q: Positions in [rad] or [m].
        tau: Torques in [N m] or [N].
        held: Time in [s] for which each sample has repeated an earlier one, though the
            arm moved.
        is_fresh: Whether the stream was interrupted before.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    tau: Float[np.ndarray, "samples dof"]
    held: Float[np.ndarray, " samples"]
    is_fresh: bool


class Intake:
    """Cuts a stream into pieces; straight lines stand for a few missing samples.

    Args:
        period: Time between two samples in [s].
        dof: Number of joints.
        cut: Number of the sample before which a piece must end.
    """

    def __init__(self, period: float, dof: int, cut: int) -> None:
        self._period, self._cut = period, cut
        self._repeats, self._stalled = Repeats(period, dof), 0.0
        self._waiting: list[np.ndarray] = []
        self._last: np.ndarray | None = None
        self._count = 0

    def take(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
    ) -> list[Piece]:
        """Take a block in; samples that are no numbers, or not later, are left out."""
        self._waiting.append(np.column_stack([time, q, tau]))
        if sum(map(len, self._waiting)) * self._period < _CHUNK:
            return []
        rows, self._waiting = np.concatenate(self._waiting), []
        rows = self._later(rows[np.isfinite(rows).all(axis=1)])
        return self._pieces(rows) if len(rows) else []

    def _pieces(self, rows: np.ndarray) -> list[Piece]:
        before = np.concatenate([rows[:1] if self._last is None else self._last, rows])
        held = self._repeats.feed(rows[:, 1:])
        stalled = np.concatenate([[self._stalled], held[:-1]])
        is_back = (held == 0.0) & (stalled > _GAP * self._period)
        self._last, self._stalled = rows[-1:], float(held[-1])
        rows = np.column_stack([rows, held])
        rows, is_gap = self._filled(before[:-1], rows, is_back)
        ends = {*np.flatnonzero(is_gap).tolist(), self._cut - self._count}
        cuts = [0, *sorted(k for k in ends if 0 < k < len(rows)), len(rows)]
        self._count += len(rows)
        q, tau = np.split(rows[:, 1:-1], 2, axis=1)
        return [
            Piece(rows[a:b, 0], q[a:b], tau[a:b], rows[a:b, -1], bool(is_gap[a]))
            for a, b in pairwise(cuts)
        ]

    def _filled(
        self, before: np.ndarray, rows: np.ndarray, is_back: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Put straight lines where a few samples are missing; tell longer gaps."""
        steps = (rows[:, 0] - before[:, 0]) / self._period
        is_gap = (steps > _GAP) | is_back
        if not np.any(steps > 1.5):
            return rows, is_gap
        number = np.where(is_gap, 1, np.maximum(np.rint(steps).astype(int), 1))
        ends = np.repeat(np.cumsum(number), number)
        share = 1.0 - (ends - 1 - np.arange(number.sum())) / np.repeat(number, number)
        begin, end = (
            np.repeat(x, number, axis=0) for x in (before, rows[:, : before.shape[1]])
        )
        lines = end + (share[:, None] - 1.0) * (end - begin)
        held = np.repeat(rows[:, -1:], number, axis=0)
        return np.hstack([lines, held]), np.repeat(is_gap, number)

    def _later(self, rows: np.ndarray) -> np.ndarray:
        """Rows that are later than all before."""
        start = -np.inf if self._last is None else self._last[0, 0]
        before = np.maximum.accumulate(np.concatenate([[start], rows[:, 0]]))[:-1]
        if np.any(before - rows[:, 0] > _BACK):
            raise ArgumentError(
                f"Time runs back from {before.max():.3f} s. Begin a new watchdog."
            )
        return np.asarray(rows[rows[:, 0] > before])
