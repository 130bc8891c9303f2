"""Uninterrupted stretches of a recording on one even time base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.filters import thinned
from armwise.recordings.recording import WRENCH_NAMES, Channel, Recording
from armwise.recordings.spectra import LONGEST
from armwise.regression import SLOW

if TYPE_CHECKING:
    from jaxtyping import Float, Int


# One even time base out of stamps that jitter, repeat, stop and start.

# Judgement: at 1 kHz, 20 µs.
EVEN = 0.02
"""Stamps this close to even, in steps, are taken as even: interpolation would cost more
than a jitter of two per cent does."""

# Judgement: 10 ms at 1 kHz, 0.1 s at 100 Hz.
GAP_STEPS = 10.0
"""A hole of more than so many steps interrupts the motion: at usual rates that is still
short beside a period of the motion, so a cubic bridges it."""


@dataclass(frozen=True, eq=False)
class Stamps:
    """Which rows of a table to use, and their increasing times.

    Attributes:
        rows: Indices of the rows kept; None when it is all of them.
        time: Their stamps in [s].
        dropped: Why rows were left out → how many.
    """

    rows: Int[np.ndarray, " rows"] | None
    time: Float[np.ndarray, " rows"]
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
    # Below a tenth of a step, a stamp repeats the one before it but for rounding.
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
    # Maxima so far never fall: what is left increases, and only repeats must go.
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
    # Again until none is left: dropping one of two leaves others closer to the last.
    while np.any(close := np.diff(time[keep], prepend=-np.inf) <= least):
        keep = keep[~close]
    return keep


def typical_step(time: Float[np.ndarray, " rows"]) -> float:
    """Return the usual time between stamps in [s], as even as the stamps allow."""
    steps = np.diff(time)
    middle = float(np.median(steps))
    # Without holes and repeats; their mean is finer than the stamps' own resolution.
    regular = steps[np.abs(steps - middle) < 0.5 * middle]
    return float(regular.mean()) if regular.size else middle


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
        first: Index of the first of four neighbours, per grid time; None: a copy.
        weights: Their four weights.
    """

    first: Int[np.ndarray, " grid"] | None
    weights: Float[np.ndarray, "4 grid"] | None

    @classmethod
    def between(
        cls, time: Float[np.ndarray, " rows"], grid: Float[np.ndarray, " grid"]
    ) -> Resampler:
        """Prepare to read values on a grid that were stamped at `time`, both [s]."""
        if time.size == grid.size:
            step = (time[-1] - time[0]) / max(time.size - 1, 1)
            if np.max(np.abs(time - grid)) < EVEN * step:
                return cls(None, None)
        # A cubic takes four neighbours.
        if time.size < 4:
            return cls(*_linear(time, grid))
        return cls(*_cubic(time, grid))

    def __call__(self, values: Float[np.ndarray, " rows"]) -> np.ndarray:
        """Return the values on the grid."""
        if self.first is None or self.weights is None:
            return np.ascontiguousarray(values, dtype=float)
        result = self.weights[0] * values[self.first]
        for k in range(1, len(self.weights)):
            result += self.weights[k] * values[self.first + k]
        return np.asarray(result)


def _linear(time: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i = np.clip(np.searchsorted(time, grid, side="right") - 1, 0, time.size - 2)
    fraction = (grid - time[i]) / (time[i + 1] - time[i])
    return i, np.stack([1.0 - fraction, fraction])


def _cubic(time: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weigh four neighbours by the cubic Hermite through parabolic slopes.

    At the ends the outermost interval borrows the neighbours inside it.
    """
    i = np.clip(np.searchsorted(time, grid, side="right") - 1, 1, time.size - 3)
    a, b, c = time[i] - time[i - 1], time[i + 1] - time[i], time[i + 2] - time[i + 1]
    u = (grid - time[i]) / b
    # Hermite's basis; slopes at the two inner points are those of the parabolas through
    # three neighbours each, which is third-order accurate on uneven stamps.
    h10 = u * (1.0 - u) ** 2 * b
    h11 = u * u * (u - 1.0) * b
    h01 = u * u * (3.0 - 2.0 * u)
    before, after = h10 / (a + b), h11 / (b + c)
    weights = np.empty((4, grid.size))
    weights[0] = -before * b / a
    weights[1] = 1.0 - h01 + before * (b / a - a / b) - after * c / b
    weights[2] = h01 + before * a / b + after * (c / b - b / c)
    weights[3] = after * b / c
    return i - 1, weights


_SELDOM = 10.0
"""Time in [s] by which a temperature may end before the log does."""


# Uninterrupted stretches of a recording on one even time base.

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
        temperature: One array per joint in [°C]; empty when not measured.
        reference: Positions asked for, one array per joint; empty when not recorded.
    """

    start: float
    rate_hz: float
    q: Signals
    qd: Signals = ()
    qdd: Signals = ()
    tau: Signals = ()
    wrench: Signals = ()
    temperature: Signals = ()
    reference: Signals = ()

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
        # Slower than any filter.
        thin.append(tuple(signal[::factor] for signal in self.temperature))
        thin.append(tuple(thinned(signal, factor) for signal in self.reference))
        return Stretch(self.start, self.rate_hz / factor, *thin)

    def window(self, first: int, stop: int) -> Stretch:
        """Return the samples from first to stop (excluded)."""
        every = [self.q, self.qd, self.qdd, self.tau, self.wrench, self.temperature]
        every.append(self.reference)
        cut = [tuple(signal[first:stop] for signal in signals) for signals in every]
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
    step = typical_step(tables[recording.index_of("q_1")].time)
    spans = [(float(t.time[0]), float(t.time[-1])) for t in tables.values()]
    start, stop = max(a for a, _ in spans), min(b for _, b in spans)
    overlaps = [(start, stop)]
    for table in tables.values():
        # A slow table's own step: what is a gap at 1 kHz is one sample at 50 Hz.
        hole = max_gap or GAP_STEPS * max(step, typical_step(table.time))
        overlaps = _intersect(overlaps, table.time, hole)
    parts = [_stretch(recording, names, tables, a, b, step) for a, b in overlaps]
    dropped: dict[str, int] = {}
    for table in tables.values():
        for why, count in table.dropped.items():
            dropped[why] = dropped.get(why, 0) + count
    stretches = tuple(part for part in parts if part is not None)
    if not stretches:
        raise RecordingError(
            f"{recording.source} has no uninterrupted stretch in which all signals "
            "were measured together. Check the time stamps, or raise max_gap."
        )
    rows = recording["q_1"].time.size
    return Stretches(stretches, rows, dropped, len(stretches) - 1)


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
        expected = tuple(f"{quantity}_{j + 1}" for j in range(n))
        missing = [name for name in expected if name not in recording]
        if missing and len(missing) < n:
            raise RecordingError(
                f'{recording.source} has no column "{missing[0]}". Found: '
                f"{', '.join(recording.channels)}. "
                f"Map it with --column {missing[0]}=NAME."
            )
        names[quantity] = () if missing else expected
    names["wrench"] = WRENCH_NAMES if recording.has_wrench else ()
    warm = tuple(f"temperature_{j + 1}" for j in range(n))
    # What is left out is said by `plausibility`: it is no reason to refuse a log.
    names["temperature"] = () if missing_temperature(recording) is not None else warm
    names["reference"] = _reference_names(recording)
    return names


def _reference_names(recording: Recording) -> tuple[str, ...]:
    """Channels of the positions asked for, if there is one for every joint."""
    for quantity in ("reference_q", "command"):
        names = [f"{quantity}_{j + 1}" for j in range(recording.dof)]
        if all(name in recording for name in names):
            channels = [recording[name] for name in names]
            # Commands may be torques; and what has holes is no reason to refuse a log,
            # nor to shorten it.
            is_position = all(c.unit in ("", "rad", "m") for c in channels)
            if is_position and all(_is_whole(c, recording["q_1"]) for c in channels):
                return tuple(names)
    return ()


def _is_whole(channel: Channel, position: Channel) -> bool:
    """Whether a channel is there all the time that a position is."""
    if not np.isfinite(channel.values).all():
        return False
    time, own = channel.time, position.time
    if time is own or np.array_equal(time, own):
        return True
    if min(time.size, own.size) < 4:  # what a cubic takes
        return False
    hole = GAP_STEPS * max(typical_step(time), typical_step(own))
    every = np.concatenate([own[:1], np.clip(time, own[0], own[-1]), own[-1:]])
    return bool(np.diff(every).max() <= hole)


def missing_temperature(recording: Recording) -> str | None:
    """Say what is missing of the joints' temperatures; "" if there are none at all."""
    names = [f"temperature_{j + 1}" for j in range(recording.dof)]
    there = [name for name in names if name in recording]
    if not there:
        return ""
    if len(there) < len(names):
        lacking = next(name for name in names if name not in there)
        return f"there is {there[0]}, but no {lacking}"
    for name in names:
        channel = recording[name]
        is_good = np.isfinite(channel.values)
        if is_good.size < 4:  # what a cubic takes
            return f"{name} has {is_good.size} readings"
        if not is_good.all():
            row = int(np.argmin(is_good))
            return f"{name} is missing from {channel.time[row]:.4g} s on"
        q = recording[f"q_{name.rsplit('_', 1)[1]}"]
        late = float(channel.time[-1]) if channel.time.size else -np.inf
        # Thermometers are read as seldom as every few seconds.
        if q.time.size and late < float(q.time[-1]) - _SELDOM:
            return f"{name} ends at {late:.4g} s"
    return None


def _tables(
    recording: Recording, names: dict[str, tuple[str, ...]], skip_bad_rows: bool
) -> dict[int, Stamps]:
    """Clean the stamps of every table in use, leaving out rows that are not finite."""
    bad: dict[int, np.ndarray | None] = {}
    for name in (name for group in names.values() for name in group):
        values, i = recording[name].values, recording.index_of(name)
        bad.setdefault(i, None)
        finite = np.isfinite(values)
        if finite.all():
            continue
        if not skip_bad_rows:
            row = int(np.argmin(finite))
            raise RecordingError(
                f"{recording.source}: {name} is {values[row]} in row "
                f"{row + 1}. Repair the log, or skip such rows (skip_bad_rows)."
            )
        earlier = bad[i]
        bad[i] = ~finite if earlier is None else earlier | ~finite
    return {
        i: _stamps(recording.source, recording.tables[i].time, rows, skip_bad_rows)
        for i, rows in bad.items()
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
    spans: Sequence[tuple[float, float]], time: np.ndarray, hole: float
) -> list[tuple[float, float]]:
    """Keep what lies inside both the spans and a table's own segments."""
    own = [(float(time[a]), float(time[b - 1])) for a, b in segments_of(time, hole)]
    both = [
        (max(a, c), min(b, d))
        for a, b in spans
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
    # Fewer cannot be filtered and differentiated twice.
    if count < 8:
        return None
    grid = np.linspace(start, stop, count)
    readers: dict[int, tuple[slice, Resampler]] = {}
    for key, table in tables.items():
        # Two more stamps on either side, for the neighbours of a cubic.
        first = max(int(np.searchsorted(table.time, start, side="right")) - 2, 0)
        last = int(np.searchsorted(table.time, stop, side="left")) + 2
        # As many stamps as grid times: likely the same ones, without interpolation.
        exact = (
            int(np.searchsorted(table.time, start)),
            int(np.searchsorted(table.time, stop, side="right")),
        )
        rows = slice(*exact) if exact[1] - exact[0] == count else slice(first, last)
        readers[key] = rows, Resampler.between(table.time[rows], grid)

    def read(name: str) -> np.ndarray:
        i = recording.index_of(name)
        rows, resampler = readers[i]
        return resampler(tables[i].take(recording[name].values)[rows])

    signals = {key: tuple(map(read, group)) for key, group in names.items()}
    return Stretch(start, (count - 1) / (stop - start), **signals)


# Motion, rest, and the speed below which a direction is unknown.

# Judgement, as is the resolution below: a half per cent and a tenth of that.
STILL = 0.005
"""Fraction of a joint's top speed below which it counts as standing still: above what
noise makes of rest, below any motion that was meant."""


RESOLUTION = 0.0005
"""Fraction of a joint's top speed below which its direction is not known: a filtered
derivative is no better than that."""


# Judgement: half of the shortest pause that friction makes at a reversal, about.
_PAUSE = 0.02
"""Time in [s] over which a joint must have moved by more than its encoder's errors."""


# Judgement: three quarters of a log's motion determine what all of it would.
_RARE_REST = 0.25
"""Fraction of a log up to which a joint's rests are left out, however long: at rest
friction has any value up to its limit, which would be learnt as mass or offset."""


def standstill(
    q: Float[np.ndarray, " samples"], rate_hz: float, longest_rest: float = 0.5
) -> Float[np.ndarray, " samples"]:
    """Say at which moments a joint hardly moves, from its raw position: 1 there.

    A joint that turns back sticks until its drive has built up the torque to break it
    loose; meanwhile friction may have any value up to its limit. A low-passed velocity
    does not show it: the position before filtering does.

    Args:
        q: Position in [rad] or [m], evenly spaced.
        rate_hz: Samples a second.
        longest_rest: Longer rests in [s] are no reversal: a joint that rests for most
            of a log has nothing else to be learnt from than how it holds its load.
    """
    still = np.zeros(q.size)
    half = max(1, round(0.5 * _PAUSE * rate_hz))
    if q.size <= 2 * half:
        return still
    moves = np.abs(q[2 * half :] - q[: -2 * half])
    # A percentile, not the maximum: one spike must not set the scale.
    least = max(_position_error(q), SLOW * float(np.percentile(moves, 99.5)))
    is_still = np.zeros(q.size, dtype=bool)
    is_still[half : q.size - half] = moves <= least
    edges = np.flatnonzero(np.diff(is_still, prepend=False, append=False))
    rarely = np.mean(is_still) < _RARE_REST
    for first, stop in edges.reshape(-1, 2):
        if rarely or stop - first <= longest_rest * rate_hz:
            still[first:stop] = 1.0
    return still


# Judgement: twice as long may be an uneven deceleration.
_DWELL = 3.0
"""Time that a joint stands still at a reversal, over that in which it would pass
through as it decelerates before and accelerates after, from which on it sticks."""

# Judgement: of four samples, noise makes six or two.
_SEEN_DWELL = 5
"""Samples of standing still from which on its length can be told."""


def sticking(
    q: Float[np.ndarray, " samples"], rate_hz: float
) -> Float[np.ndarray, " samples"]:
    """Say at which moments a joint sticks, from its raw position: 1 there.

    Stricter than `standstill`: it does not move at all, as far as its encoder shows,
    and for longer than a reversal takes. Slow motion is motion.

    Args:
        q: Position in [rad] or [m], evenly spaced.
        rate_hz: Samples a second.
    """
    stuck = np.zeros(q.size)
    half = max(1, round(0.5 * _PAUSE * rate_hz))
    if q.size <= 2 * half:
        return stuck
    is_still = np.zeros(q.size, dtype=bool)
    # A hundredth of a micro-radian: simulated positions may have no error at all.
    least = max(_position_error(q), 1e-8)
    is_still[half : q.size - half] = np.abs(q[2 * half :] - q[: -2 * half]) <= least
    edges = np.flatnonzero(np.diff(is_still, prepend=False, append=False))
    first, stop = edges.reshape(-1, 2).T
    # Over two windows before and after it moves by v (reach) + a (reach)²/2, where v is
    # the speed at which it still seems to rest; that speed is lost in v/a.
    reach, last = 4 * half, q.size - 1
    before = np.abs(q[first] - q[np.maximum(first - reach, 0)])
    after = np.abs(q[np.minimum(stop + reach, last)] - q[np.minimum(stop, last)])
    speed = least / (2.0 * half)
    natural = sum(
        # At least a tenth of the encoder's error: a rest may begin slowly.
        0.5 * speed * reach**2 / np.maximum(moved - speed * reach, 0.1 * least)
        for moved in (before, after)
    )
    # Half a window beyond the window itself: friction makes no shorter pauses.
    shortest = max(half, _SEEN_DWELL)
    is_stuck = stop - first > np.maximum(_DWELL * natural, shortest)
    for start, end in zip(first[is_stuck], stop[is_stuck], strict=True):
        stuck[start:end] = 1.0
    return stuck


def _position_error(q: Float[np.ndarray, " samples"]) -> float:
    """Return by how much a position changes while nothing moves."""
    steps = np.abs(np.diff(q))
    moved = steps[steps > 0.0]
    if not moved.size:
        return 0.0
    # Counts of an encoder: every step is a whole number of the smallest. One count is
    # what rounding makes of rest; half a count more is for rounding of the numbers.
    count = float(moved.min())
    multiples = moved / count
    is_counted = np.mean(np.abs(multiples - np.round(multiples)) < 0.01) > 0.99
    # Else noise: fourth differences of a smooth motion are all noise, of variance
    # 70 σ², and 1.48 medians are a standard deviation. Three of them, of a difference.
    noise = 1.48 * float(np.median(np.abs(np.diff(q, 4)))) / np.sqrt(70.0)
    return max(1.5 * count if is_counted else 0.0, 3.0 * np.sqrt(2.0) * noise)


def speed_resolution(qd: Float[np.ndarray, "samples dof"]) -> np.ndarray:
    """Return the speed below which each joint's direction means nothing."""
    return RESOLUTION * _top_speed(qd)


def motions_between_rests(
    qd: Float[np.ndarray, "samples dof"], rate_hz: float, longest_rest: float = 0.5
) -> list[tuple[int, int]]:
    """Return the rows between long rests of the whole arm: (first, last + 1).

    At rest friction may take any value, so a model learns nothing true from it.
    """
    top = _top_speed(qd)
    # Nothing moves at all: there is no scale for rest, so all of it is one motion.
    if not top.max() > 0.0:
        return [(0, len(qd))]
    # A joint a hundred times slower than the fastest only shows noise.
    joints = top > 0.01 * top.max()
    still = np.all(np.abs(qd[:, joints]) < STILL * top[joints], axis=1)
    edges = np.flatnonzero(np.diff(still, prepend=False, append=False))
    rests = [
        (a, b)
        for a, b in edges.reshape(-1, 2)
        # Shorter rests are pauses between moves. At the ends any rest goes, however
        # short.
        if b - a > longest_rest * rate_hz or (a == 0 or b == len(qd))
    ]
    starts = [0, *(int(b) for _, b in rests)]
    stops = [*(int(a) for a, _ in rests), len(qd)]
    return [(a, b) for a, b in zip(starts, stops, strict=True) if b > a]


def _top_speed(qd: np.ndarray) -> np.ndarray:
    every = max(1, len(qd) // LONGEST)
    # A percentile, not the maximum: one spike must not set the scale.
    top: np.ndarray = np.percentile(np.abs(qd[::every]), 99.5, axis=0)
    return top
