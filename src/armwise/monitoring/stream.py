"""Stream of samples made regular: gaps bridged, stalls timed, derivatives filtered.

Samples arrive one by one or in blocks, with repeats, holes and steps of the clock.
`StreamBuffer` turns them into chunks a period apart; `CausalDerivatives` filters
positions and torques alike, so that they fit the equations of motion at every instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.errors import ArgumentError
from armwise.monitoring.settings import DEFAULT_SETTINGS, WatchdogSettings

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class Chunk(NamedTuple):
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


class StreamBuffer:
    """Cuts a stream into chunks; straight lines stand for a few missing samples.

    Args:
        period: Time between two samples in [s].
        dof: Number of joints.
        cut: Number of the sample before which a chunk must end.
        settings: Gaps, stalls and clocks.
    """

    def __init__(
        self,
        period: float,
        dof: int,
        cut: int,
        settings: WatchdogSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._period, self._cut, self._settings = period, cut, settings
        self._stalls, self._stalled = StallTimer(period, dof, settings), 0.0
        self._waiting: list[np.ndarray] = []
        self._last: np.ndarray | None = None
        self._count = 0

    def feed(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
    ) -> list[Chunk]:
        """Take a block; samples that are not finite, or not later, are dropped."""
        self._waiting.append(np.column_stack([time, q, tau]))
        if sum(map(len, self._waiting)) * self._period < self._settings.chunk_time:
            return []
        rows, self._waiting = np.concatenate(self._waiting), []
        rows = self._later(rows[np.isfinite(rows).all(axis=1)])
        return self._chunks(rows) if len(rows) else []

    def _chunks(self, rows: np.ndarray) -> list[Chunk]:
        before = np.concatenate([rows[:1] if self._last is None else self._last, rows])
        held = self._stalls.feed(rows[:, 1:])
        stalled = np.concatenate([[self._stalled], held[:-1]])
        # The end of a long stall is a gap as well: the arm moved on unrecorded.
        is_back = (held == 0.0) & (stalled > self._settings.gap_periods * self._period)
        self._last, self._stalled = rows[-1:], float(held[-1])
        rows = np.column_stack([rows, held])
        rows, is_gap = self._bridged(before[:-1], rows, is_back)
        ends = {*np.flatnonzero(is_gap).tolist(), self._cut - self._count}
        cuts = [0, *sorted(k for k in ends if 0 < k < len(rows)), len(rows)]
        self._count += len(rows)
        q, tau = np.split(rows[:, 1:-1], 2, axis=1)
        return [
            Chunk(rows[a:b, 0], q[a:b], tau[a:b], rows[a:b, -1], bool(is_gap[a]))
            for a, b in pairwise(cuts)
        ]

    def _bridged(
        self, before: np.ndarray, rows: np.ndarray, is_back: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Put straight lines where a few samples are missing; flag longer gaps."""
        steps = (rows[:, 0] - before[:, 0]) / self._period
        is_gap = (steps > self._settings.gap_periods) | is_back
        # Time stamps jitter by up to half a period without a sample being lost.
        if not np.any(steps > 1.5):
            return rows, is_gap
        number = np.where(is_gap, 1, np.maximum(np.rint(steps).astype(int), 1))
        ends = np.repeat(np.cumsum(number), number)
        fraction = 1.0 - (ends - 1 - np.arange(number.sum())) / np.repeat(
            number, number
        )
        begin, end = (
            np.repeat(x, number, axis=0) for x in (before, rows[:, : before.shape[1]])
        )
        lines = end + (fraction[:, None] - 1.0) * (end - begin)
        held = np.repeat(rows[:, -1:], number, axis=0)
        return np.hstack([lines, held]), np.repeat(is_gap, number)

    def _later(self, rows: np.ndarray) -> np.ndarray:
        """Rows that are later than all before."""
        start = -np.inf if self._last is None else self._last[0, 0]
        before = np.maximum.accumulate(np.concatenate([[start], rows[:, 0]]))[:-1]
        if np.any(before - rows[:, 0] > self._settings.clock_step_back):
            raise ArgumentError(
                f"Time runs back from {before.max():.3f} s. Begin a new watchdog."
            )
        return np.asarray(rows[rows[:, 0] > before])


class StallTimer:
    """Tells stalls of the link (samples repeated while the arm moves) from rests.

    Args:
        period: Time between two samples in [s].
        dof: Number of joints.
        settings: Speed above which an arm moves.
    """

    def __init__(
        self, period: float, dof: int, settings: WatchdogSettings = DEFAULT_SETTINGS
    ) -> None:
        self._period, self._dof = period, dof
        self._window, self._speed = settings.stall_window, settings.stall_speed
        self._last: np.ndarray | None = None
        self._run, self._is_moving = 0, False

    def feed(self, rows: np.ndarray) -> Float[np.ndarray, " samples"]:
        """Take rows of positions and torques; return how long each has stalled.

        Returns:
            Time in [s] since the last sample that differed; zero at rest.
        """
        if self._last is None:
            # Any other value will do: the first sample of a stream is always new.
            self._last = np.repeat(rows[:1] + 1.0, self._window, axis=0)
        history = np.concatenate([self._last, rows])
        is_new = np.any(rows != history[self._window - 1 : -1], axis=1)
        number = np.arange(len(rows))
        latest = np.maximum.accumulate(np.where(is_new, number, -1))
        run = np.where(latest < 0, self._run + 1 + number, number - latest)
        moving = np.where(latest < 0, self._is_moving, self._is_fast(history)[latest])
        self._last = history[-self._window :]
        self._run, self._is_moving = int(run[-1]), bool(moving[-1])
        return np.asarray(self._period * run * moving)

    def _is_fast(self, history: np.ndarray) -> Bool[np.ndarray, " samples"]:
        q = history[:, : self._dof]
        distance = np.abs(q[self._window :] - q[: -self._window]).max(axis=1)
        return np.asarray(distance > self._speed * self._window * self._period)


class FilteredSamples(NamedTuple):
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

    def rows(self, selection: slice | np.ndarray) -> FilteredSamples:
        """Some of the samples."""
        return FilteredSamples(*(x[selection] for x in self))


def joined(parts: Sequence[FilteredSamples]) -> FilteredSamples:
    """Parts that follow each other."""
    return FilteredSamples(*map(np.concatenate, zip(*parts, strict=True)))


class CausalDerivatives:
    """F, sF and s²F of positions, F of torques, with F = (b/(s + b))³, thinned out.

    All signals are delayed alike, so that they fit each other at every instant.

    Args:
        period: Time between two samples in [s].
        dof: Number of joints.
        settings: Bandwidth b / 2π, rate of the filtered samples, settling.
    """

    def __init__(
        self, period: float, dof: int, settings: WatchdogSettings = DEFAULT_SETTINGS
    ) -> None:
        from scipy.signal import bilinear

        b = 2.0 * np.pi * settings.bandwidth_hz
        # Three poles: s²F still falls off at high frequencies, as noise demands.
        below = np.poly([-b, -b, -b])
        above = ([b**3], [b**3, 0.0], [b**3, 0.0, 0.0])
        self._filters = [bilinear(a, below, 1.0 / period) for a in above]
        self.settling = settings.filter_settling / b
        rate_hz = settings.bandwidth_hz * settings.samples_per_period
        self._step = max(1, round(1.0 / (period * rate_hz)))
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
    ) -> FilteredSamples:
        """Take a block of any length; return the samples it completes."""
        if self._states is None:
            self._begin(time[0], q[0], tau[0])
        filters = [*self._filters, self._filters[0]]
        signals = enumerate((q, q, q, tau))
        out = [self._filtered(k, filters[k], x) for k, x in signals]
        numbers = self._count + np.arange(time.size)
        is_due = (numbers % self._step == 0) & (time >= self._ready)
        self._count += time.size
        return FilteredSamples(time[is_due], *(x[is_due] for x in out))

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
