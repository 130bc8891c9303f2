"""Uninterrupted stretches of a recording on one even time base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.filters import thinned
from armwise.recordings.recording import WRENCH_NAMES, Recording
from armwise.recordings.timebase import (
    GAP_STEPS,
    Resampler,
    Stamps,
    clean_stamps,
    segments_of,
    typical_step,
)

if TYPE_CHECKING:
    from jaxtyping import Float

Signals = tuple["Float[np.ndarray, ' samples']", ...]
"""One array per joint or component; empty when it was not measured."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Signals without a gap, evenly spaced.

    Attributes:
        start: Time of the first sample in [s].
        rate_hz: Sampling rate in [Hz].
        q, qd, qdd, tau: One array per joint; empty when not measured.
        wrench: Six arrays, or none.
    """

    start: float
    rate_hz: float
    q: Signals
    qd: Signals = ()
    qdd: Signals = ()
    tau: Signals = ()
    wrench: Signals = ()

    def __len__(self) -> int:
        return self.q[0].size

    @property
    def time(self) -> Float[np.ndarray, " samples"]:
        """Time of every sample in [s]."""
        return self.start + np.arange(len(self)) / self.rate_hz

    def thinned(self, factor: int) -> Stretch:
        """Return every so-many-th sample, after a filter against folding."""
        if factor == 1:
            return self
        thin = [
            tuple(thinned(signal, factor) for signal in signals)
            for signals in (self.q, self.qd, self.qdd, self.tau, self.wrench)
        ]
        return Stretch(self.start, self.rate_hz / factor, *thin)

    def window(self, first: int, stop: int) -> Stretch:
        """Return the samples from first to stop (excluded)."""
        cut = [
            tuple(signal[first:stop] for signal in signals)
            for signals in (self.q, self.qd, self.qdd, self.tau, self.wrench)
        ]
        return Stretch(self.start + first / self.rate_hz, self.rate_hz, *cut)


@dataclass(frozen=True, eq=False)
class Stretches:
    """All stretches of a recording, and what was lost on the way.

    Attributes:
        parts: The stretches, in order of time.
        rows_read: Rows of the position table.
        dropped: Why rows were left out → how many.
        gaps: How many interruptions there were.
    """

    parts: tuple[Stretch, ...]
    rows_read: int
    dropped: dict[str, int]
    gaps: int


def stretches_of(
    recording: Recording, max_gap: float | None, skip_bad_rows: bool
) -> Stretches:
    """Put every signal of a recording on even time bases, cut at the gaps.

    Args:
        recording: What was measured.
        max_gap: Longest hole that is bridged by interpolation in [s]; ten usual steps
            when None.
        skip_bad_rows: Leave out rows that are not finite or run backwards in time.
    """
    names = channel_names(recording)
    tables = _tables(recording, names, skip_bad_rows)
    master = tables[id(recording["q_1"].time)]
    step = typical_step(master.time)
    spans = [(float(t.time[0]), float(t.time[-1])) for t in tables.values()]
    start, stop = max(a for a, _ in spans), min(b for _, b in spans)
    pieces = [(start, stop)]
    for table in tables.values():
        hole = max_gap or GAP_STEPS * max(step, typical_step(table.time))
        pieces = _intersect(pieces, table.time, hole)
    parts = [_stretch(recording, names, tables, a, b, step) for a, b in pieces]
    dropped: dict[str, int] = {}
    for table in tables.values():
        for why, count in table.dropped.items():
            dropped[why] = dropped.get(why, 0) + count
    kept = tuple(part for part in parts if part is not None)
    if not kept:
        raise RecordingError(
            f"{recording.source} has no uninterrupted stretch in which all signals "
            "were measured together. Check the time stamps, or raise max_gap."
        )
    rows = recording["q_1"].time.size
    return Stretches(kept, rows, dropped, len(kept) - 1)


def channel_names(recording: Recording) -> dict[str, tuple[str, ...]]:
    """Return the channels of each quantity, refusing a set with a missing joint."""
    n = recording.dof
    if n == 0:
        raise RecordingError(
            f'{recording.source} has no column "q_1". Found: '
            f"{', '.join(recording.channels)}. Map it, or use --column q_1=NAME."
        )
    names: dict[str, tuple[str, ...]] = {}
    for quantity in ("q", "qd", "qdd", "tau"):
        wanted = tuple(f"{quantity}_{j + 1}" for j in range(n))
        missing = [name for name in wanted if name not in recording]
        if missing and len(missing) < n:
            raise RecordingError(
                f'{recording.source} has no column "{missing[0]}". Found: '
                f"{', '.join(recording.channels)}. "
                f"Map it with --column {missing[0]}=NAME."
            )
        names[quantity] = () if missing else wanted
    names["wrench"] = WRENCH_NAMES if recording.has_wrench else ()
    return names


def _tables(
    recording: Recording, names: dict[str, tuple[str, ...]], skip_bad_rows: bool
) -> dict[int, Stamps]:
    """Clean the stamps of every table once, leaving out rows that are not finite."""
    bad: dict[int, np.ndarray] = {}
    times: dict[int, np.ndarray] = {}
    for name in (name for group in names.values() for name in group):
        channel = recording[name]
        key = id(channel.time)
        times[key] = channel.time
        finite = np.isfinite(channel.values)
        if finite.all():
            continue
        if not skip_bad_rows:
            row = int(np.argmin(finite))
            raise RecordingError(
                f"{recording.source}: {name} is {channel.values[row]} in row "
                f"{row + 1}. Repair the log, or skip such rows (skip_bad_rows)."
            )
        bad[key] = bad.get(key, np.zeros(finite.size, bool)) | ~finite
    return {
        key: _stamps(recording.source, time, bad.get(key), skip_bad_rows)
        for key, time in times.items()
    }


def _stamps(
    source: str, time: np.ndarray, bad: np.ndarray | None, skip_bad_rows: bool
) -> Stamps:
    if not np.isfinite(time).all():
        row = int(np.argmin(np.isfinite(time)))
        raise RecordingError(f"{source}: the time is not finite in row {row + 1}.")
    if bad is None:
        return clean_stamps(time, source, skip_bad_rows)
    good = np.flatnonzero(~bad)
    stamps = clean_stamps(time[good], source, skip_bad_rows)
    rows = stamps.take(good)
    return Stamps(rows, time[rows], stamps.dropped | {"not finite": int(bad.sum())})


def _intersect(
    pieces: Sequence[tuple[float, float]], time: np.ndarray, hole: float
) -> list[tuple[float, float]]:
    """Keep what lies inside both the pieces and a table's own segments."""
    own = [(float(time[a]), float(time[b - 1])) for a, b in segments_of(time, hole)]
    both = [
        (max(a, c), min(b, d))
        for a, b in pieces
        for c, d in own
        if max(a, c) < min(b, d)
    ]
    return both


def _stretch(
    recording: Recording,
    names: dict[str, tuple[str, ...]],
    tables: dict[int, Stamps],
    start: float,
    stop: float,
    step: float,
) -> Stretch | None:
    """Read all signals on one even grid between two times."""
    count = round((stop - start) / step) + 1
    if count < 8:
        return None
    grid = np.linspace(start, stop, count)
    readers: dict[int, tuple[slice, Resampler]] = {}
    for key, table in tables.items():
        first = max(int(np.searchsorted(table.time, start, side="right")) - 2, 0)
        last = int(np.searchsorted(table.time, stop, side="left")) + 2
        exact = (
            int(np.searchsorted(table.time, start)),
            int(np.searchsorted(table.time, stop, side="right")),
        )
        rows = slice(*exact) if exact[1] - exact[0] == count else slice(first, last)
        readers[key] = rows, Resampler.between(table.time[rows], grid)

    def read(name: str) -> np.ndarray:
        channel = recording[name]
        rows, resampler = readers[id(channel.time)]
        return resampler(tables[id(channel.time)].take(channel.values)[rows])

    signals = {key: tuple(map(read, group)) for key, group in names.items()}
    return Stretch(start, (count - 1) / (stop - start), **signals)
