"""A stream of samples as it arrives, put in order: gaps, repeats and holes told."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


# Samples that repeat the one before while the arm moved on: a link that stalled.

_BEFORE = 4
"""Samples over which speed before a stall is judged."""

_MOVING = 0.02
"""Speed in [rad/s] or [m/s] that is more than an arm at rest seems to have."""


class Repeats:
    """Tells stalls from rests, in which nothing changes either.

    Args:
        period: Time between two samples in [s].
        dof: Number of joints.
    """

    def __init__(self, period: float, dof: int) -> None:
        self._period, self._dof = period, dof
        self._last: np.ndarray | None = None
        self._run, self._is_moving = 0, False

    def feed(self, rows: np.ndarray) -> Float[np.ndarray, " samples"]:
        """Take rows of positions and torques in; return how long each has stalled.

        Returns:
            Time in [s] since the last sample that told something new; zero at rest.
        """
        if self._last is None:
            self._last = np.repeat(rows[:1] + 1.0, _BEFORE, axis=0)
        known = np.concatenate([self._last, rows])
        is_new = np.any(rows != known[_BEFORE - 1 : -1], axis=1)
        number = np.arange(len(rows))
        latest = np.maximum.accumulate(np.where(is_new, number, -1))
        run = np.where(latest < 0, self._run + 1 + number, number - latest)
        moved = self._is_fast(known)[latest]
        moving = np.where(latest < 0, self._is_moving, moved)
        self._last = known[-_BEFORE:]
        self._run, self._is_moving = int(run[-1]), bool(moving[-1])
        return np.asarray(self._period * run * moving)

    def _is_fast(self, known: np.ndarray) -> Bool[np.ndarray, " samples"]:
        q = known[:, : self._dof]
        way = np.abs(q[_BEFORE:] - q[:-_BEFORE]).max(axis=1)
        return np.asarray(way > _MOVING * _BEFORE * self._period)


# A stream of samples as it arrives, put in order: gaps, repeats and holes told.

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


# Positions, velocities and accelerations of a stream, by one causal filter.

_SAMPLES_PER_PERIOD = 8.0
_SETTLING = 6.0
"""Time constants of the filter until its beginning is forgotten."""


class Filtered(NamedTuple):
    """Motion and torque behind one filter: `Samples` too short-lived to be checked.

    Attributes:
        time: In [s].
        q, qd, qdd: Position, velocity, acceleration in [rad] or [m], per [s], per [s²].
        tau: Torques in [N m] or [N].
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    qd: Float[np.ndarray, "samples dof"]
    qdd: Float[np.ndarray, "samples dof"]
    tau: Float[np.ndarray, "samples dof"]

    def rows(self, chosen: slice | np.ndarray) -> Filtered:
        """Some of the samples."""
        return Filtered(*(x[chosen] for x in self))


def joined(parts: Sequence[Filtered]) -> Filtered:
    """Parts that follow each other."""
    return Filtered(*map(np.concatenate, zip(*parts, strict=True)))


class CausalDerivatives:
    """F, sF and s²F of positions, F of torques, with F = (b/(s + b))³, thinned out.

    All signals are delayed alike, so that they fit each other at every instant.

    Args:
        period: Time between two samples in [s].
        bandwidth_hz: b / 2π.
        dof: Number of joints.
    """

    def __init__(self, period: float, bandwidth_hz: float, dof: int) -> None:
        from scipy.signal import bilinear

        b = 2.0 * np.pi * bandwidth_hz
        below = np.poly([-b, -b, -b])
        above = ([b**3], [b**3, 0.0], [b**3, 0.0, 0.0])
        self._filters = [bilinear(a, below, 1.0 / period) for a in above]
        self.settling = _SETTLING / b
        self._step = max(1, round(1.0 / (period * bandwidth_hz * _SAMPLES_PER_PERIOD)))
        self._states: list[np.ndarray] | None = None
        self._count, self._ready = 0, 0.0

    def restart(self) -> None:
        """Forget everything: the stream was interrupted."""
        self._states = None

    def feed(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
    ) -> Filtered:
        """Take a block of any length; return the samples it completes."""
        if self._states is None:
            self._begin(time[0], q[0], tau[0])
        chosen = [*self._filters, self._filters[0]]
        signals = enumerate((q, q, q, tau))
        out = [self._filtered(k, chosen[k], x) for k, x in signals]
        numbers = self._count + np.arange(time.size)
        kept = (numbers % self._step == 0) & (time >= self._ready)
        self._count += time.size
        return Filtered(time[kept], *(x[kept] for x in out))

    def _filtered(
        self, k: int, coefficients: tuple[np.ndarray, np.ndarray], x: np.ndarray
    ) -> np.ndarray:
        from scipy.signal import lfilter

        assert self._states is not None
        state = self._states[k]
        y, self._states[k] = lfilter(*coefficients, x, axis=0, zi=state)
        return np.asarray(y)

    def _begin(self, time: float, q: np.ndarray, tau: np.ndarray) -> None:
        """Begin as if everything had rested at its first value for long."""
        from scipy.signal import lfilter_zi

        filters = [*self._filters, self._filters[0]]
        self._states = [
            lfilter_zi(*f)[:, None] * x
            for f, x in zip(filters, (q, q, q, tau), strict=True)
        ]
        self._ready = time + self.settling
