"""Repairs of raw recordings: unit of time, even clock, whole turns; each with a note.

Only what the data themselves prove is mended; the rest is refused, or left to the
warnings of an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.recording import Channel, Recording, SignalTable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from armwise.arms import Arm

STEPS = (1e-5, 1.0)
"""Shortest and longest usual step in [s] of a log of an arm: 100 kHz, and 1 Hz, below
which nothing can be differentiated."""

_LIKELY_STEPS = (2e-5, 0.5)
"""Steps in [s] between which a unit of time is believed."""

_LIKELY_SPEEDS = (0.02, 50.0)
"""Top speeds in [rad/s] or [m/s] between which a unit of time is believed."""

_UNITS = {"ms": 1e-3, "µs": 1e-6, "ns": 1e-9}

# A sampled sine at ten samples a period has 0.4 of its difference's power.
_SMOOTH = 0.5
"""Power of second over first differences below which rows follow one motion."""

# Judgement: at 1 kHz, 50 µs; less jitter hardly moves a velocity.
_JITTER = 0.05
"""Deviation of stamps from even, in steps, from which on clocks are compared."""

_SMOOTHER = 0.5
"""Fraction to which an even clock must bring the roughness of the positions. Chance
moves it by a few per cent over hundreds of rows; the true clock divides it by ten."""

_FEWEST = 50
"""Rows below which clocks cannot be compared."""


def repaired(recording: Recording, arm: Arm | None = None) -> Recording:
    """Mend what can be mended safely, and note it; the rest comes back as it was.

    Args:
        recording: As it was read.
        arm: The arm, which says what joints turn and between which limits.

    Raises:
        RecordingError: If the time cannot be in any unit.
    """
    if not recording.dof:
        return recording
    return _in_whole_turns(_on_even_clock(_in_seconds(recording)), arm)


def _noted(recording: Recording, note: str) -> Recording:
    return replace(recording, notes=(*recording.notes, f"{recording.source}: {note}"))


def _positions(table: SignalTable) -> list[np.ndarray]:
    return [v for name, v in table.columns.items() if name.startswith("q_")]


# The unit of time.


def _in_seconds(recording: Recording) -> Recording:
    """Read stamps in the unit in which they make sense."""
    table = recording.tables[recording.index_of("q_1")]
    steps = np.diff(table.time)
    steps = steps[steps > 0]
    if not steps.size:
        return recording
    step, speed = float(np.median(steps)), _top_speed(table)
    mean = float(table.time[-1] - table.time[0]) / (table.time.size - 1)
    # Rows that come in bunches have a median step that means nothing.
    step = mean if mean > 5.0 * step else step
    believable = _LIKELY_SPEEDS[0] < speed < _LIKELY_SPEEDS[1]
    # Logs of a few hertz are rare, but motion that slow is rarer: both must be odd.
    if step < _LIKELY_STEPS[1] and (believable or step < 0.05):
        return _within(recording, step)
    fits = [
        unit
        for unit, factor in _UNITS.items()
        if _LIKELY_STEPS[0] <= step * factor <= _LIKELY_STEPS[1]
        and _LIKELY_SPEEDS[0] < speed / factor < _LIKELY_SPEEDS[1]
    ]
    if len(fits) != 1 or not _is_one_motion(table):
        return _within(recording, step)
    factor = _UNITS[fits[0]]
    tables = [replace(t, time=factor * t.time) for t in recording.tables]
    note = (
        f"its time steps are {step:.4g}, so that time is taken to be in {fits[0]} "
        f"({1.0 / (factor * step):.4g} Hz). If so, head the column time [{fits[0]}]."
    )
    return _noted(replace(recording, tables=tuple(tables)), note)


def _within(recording: Recording, step: float) -> Recording:
    """Refuse a step that no log of a motion has."""
    # A handful of rows may be poses, which nothing is computed from by time.
    rows = recording["q_1"].time.size
    if step >= STEPS[0] and (step <= STEPS[1] or rows < _FEWEST):
        return recording
    raise RecordingError(
        f"{recording.source}: its usual time step is {step:.3g} s, which no log of an "
        "arm has. Say the unit of time: time [ms] in the header, or [time] unit in a "
        "mapping."
    )


def _top_speed(table: SignalTable) -> float:
    """Fastest joint's 99th percentile of speed, in the stamps' own unit."""
    steps = np.diff(table.time)
    moving = steps > 0
    speeds = [
        np.percentile(np.abs(np.diff(q)[moving] / steps[moving]), 99.0)
        for q in _positions(table)
    ]
    return float(np.nanmax(speeds, initial=0.0))


def _is_one_motion(table: SignalTable) -> bool:
    """Tell whether rows follow each other as samples of a motion, not as poses."""
    first = sum(float(np.sum(np.diff(q) ** 2)) for q in _positions(table))
    second = sum(float(np.sum(np.diff(q, 2) ** 2)) for q in _positions(table))
    return table.time.size >= _FEWEST and second < _SMOOTH * first


# The clock. Programs that listen to a robot stamp samples when they arrive, miss some,
# and store some twice; the robot took them evenly. How far the joints went from row to
# row, beside how far they usually go, counts the samples: one, none, two.


def _on_even_clock(recording: Recording) -> Recording:
    """Put rows that were sampled evenly and stamped unevenly on their even clock."""
    tables, worst, rows, repeated = [], 0.0, 0, 0
    for table in recording.tables:
        clock = _even_clock(table)
        if clock is not None:
            time, fresh = clock
            worst = max(worst, float(np.max(np.abs(table.time - time))))
            rows += int(fresh.sum())
            repeated += int((~fresh).sum())
            table = replace(table, time=time).take(fresh)
        tables.append(table)
    if not rows:
        return recording
    twice = f"; {repeated} rows that repeat the one before are left out" * (
        repeated > 0
    )
    note = (
        f"its samples were taken evenly but stamped up to {1e3 * worst:.3g} ms early "
        f"or late, as on reception: {rows} rows are put on the even clock{twice}."
    )
    return _noted(replace(recording, tables=tuple(tables)), note)


def _even_clock(
    table: SignalTable,
) -> tuple[Float[np.ndarray, " rows"], Bool[np.ndarray, " rows"]] | None:
    """Times of an even clock and which rows are new, if positions are smoother on it.

    None: the stamps are even already, or true, or nothing can be said.
    """
    time, positions = table.time, _positions(table)
    if time.size < _FEWEST or not positions or np.any(np.diff(time) < 0):
        return None
    mean = (time[-1] - time[0]) / (time.size - 1)
    if not mean > 0 or np.max(np.abs(np.diff(time) - mean)) < _JITTER * mean:
        return None
    stacked = np.stack(positions, axis=1)
    even = np.empty(time.size)
    # Interruptions are no jitter: every stretch between them has a clock of its own.
    # Bunches of twenty messages, or half a second, are still one stretch.
    hole = max(25.0 * mean, 0.5)
    edges = [0, *(np.flatnonzero(np.diff(time) > hole) + 1).tolist(), time.size]
    for first, stop in pairwise(edges):
        even[first:stop] = _clock(time[first:stop], stacked[first:stop])
    fresh = np.diff(even, prepend=-np.inf) > 0
    if not np.all(np.isfinite(even)) or fresh.sum() < _FEWEST:
        return None
    # Near and far: inside a bunch stamps are even, and a clock that forgets a lost
    # sample is smooth only near by.
    clocks = even[fresh], time[fresh], stacked[fresh]
    near, far = _smoother(*clocks, 1), _smoother(*clocks, 5)
    is_better = max(near, far) < 1.1 and min(near, far) < _SMOOTHER
    return (even, fresh) if is_better else None


def _smoother(
    even: np.ndarray, time: np.ndarray, positions: np.ndarray, stride: int
) -> float:
    """Roughness of the positions on an even clock over that on the stamps."""
    ratios = [
        _roughness(even[::stride], q) / max(_roughness(time[::stride], q), 1e-300)
        for q in positions[::stride].T
        if np.ptp(q) > 0
    ]
    # The median: a joint that hardly moves says nothing.
    return float(np.median(ratios)) if ratios else np.inf


def _clock(
    time: Float[np.ndarray, " rows"], positions: Float[np.ndarray, "rows joints"]
) -> Float[np.ndarray, " rows"]:
    """Even times of rows, by how far the joints went between them; NaN if unknown."""
    from scipy.ndimage import median_filter

    # Too short to tell a clock from chance; it stays as it is.
    if time.size < _FEWEST:
        return time
    moved = np.diff(positions, axis=0)
    # The median passes over samples that were missed or stored twice.
    smooth = np.stack([median_filter(column, 15) for column in moved.T], axis=1)
    size = np.einsum("nj,nj->n", smooth, smooth)
    fast = size > 0.01 * np.percentile(size, 95.0)
    count = np.einsum("nj,nj->n", smooth, moved) / np.where(size > 0, size, 1.0)
    samples = np.maximum(np.round(count), 0.0)
    # Whole numbers of samples, but for noise, or the clock was not even.
    off = np.abs(count - samples)[fast]
    if not fast.any() or np.mean(off < 0.25) < 0.95:
        return np.full(time.size, np.nan)
    # Where the arm hardly moves nothing counts samples; one a row is the best guess.
    index = np.concatenate([[0.0], np.cumsum(np.where(fast, samples, 1.0))])
    step = float(np.polyfit(index, time, 1)[0])
    late = time - step * index
    # A miscount at rest shifts all that follows by whole steps: each run of motion is
    # put back to where its own stamps are, on average.
    runs = np.concatenate([[0], np.cumsum(np.diff(fast.astype(int)) > 0), [0]])
    runs[-1] = runs[-2]
    shift = 0.0
    shifts = np.zeros(runs[-1] + 1)
    for run, rows in enumerate(np.bincount(runs)):
        # A handful of rows have no average: they follow the run before.
        if rows >= _FEWEST:
            own = late[runs == run]
            middle = float(np.median(own) - np.median(late))
            # Three standard errors, as if ten neighbours were late together.
            sure = abs(middle) > 3.0 * float(np.std(own)) / np.sqrt(rows / 10.0)
            shift = float(np.round(middle / step)) if sure else 0.0
        shifts[run] = shift
    index += shifts[runs]
    index = np.maximum.accumulate(index)
    slope, start = np.polyfit(index, time, 1)
    return np.asarray(start + slope * index)


def _roughness(
    time: Float[np.ndarray, " rows"], values: Float[np.ndarray, " rows"]
) -> float:
    """Median error of predicting each value from its four neighbours by a cubic."""
    # Judgement: ten thousand rows are enough for a median.
    time, values = time[:10_000], values[:10_000]
    centre = time[2:-2]
    near = [time[k : time.size - 4 + k] - centre for k in (0, 1, 3, 4)]
    around = [values[k : values.size - 4 + k] for k in (0, 1, 3, 4)]
    predicted = np.zeros(centre.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        for a in range(4):
            weight = np.ones(centre.size)
            for b in range(4):
                if a != b:
                    weight *= near[b] / (near[b] - near[a])
            predicted += weight * around[a]
    error = np.abs(predicted - values[2:-2])
    # Equal stamps have no cubic: as rough as can be.
    return float(np.median(np.where(np.isfinite(error), error, np.inf)))


# Whole turns.

_TURN = 2.0 * np.pi


def _in_whole_turns(recording: Recording, arm: Arm | None) -> Recording:
    """Undo jumps of whole turns, as angles between −π and π have them."""
    turning = _turning(recording, arm)
    channels: dict[str, Channel] = {}
    jumps: Mapping[str, int] = {}
    for j in range(recording.dof):
        name = f"q_{j + 1}"
        channel = recording[name]
        if not turning[j]:
            continue
        unwrapped, count = _unwrapped(channel.values)
        if count:
            jumps = {**jumps, name: count}
            values = unwrapped if arm is None else _inside(unwrapped, arm, j)
            channels[name] = replace(channel, values=values)
    if not jumps:
        return recording
    listed = ", ".join(f"{name} ({count})" for name, count in jumps.items())
    note = f"jumps of whole turns are taken out of {listed}: angles were wrapped."
    columns = [
        replace(
            table,
            columns={
                name: channels[name].values if name in channels else values
                for name, values in table.columns.items()
            },
        )
        for table in recording.tables
    ]
    return _noted(replace(recording, tables=tuple(columns)), note)


def _turning(recording: Recording, arm: Arm | None) -> Bool[np.ndarray, " dof"]:
    """Which positions are angles; all, where the arm is not known."""
    if arm is None or arm.dof != recording.dof:
        return np.ones(recording.dof, dtype=bool)
    return np.array([arm.joints[i].is_revolute for i in arm.coordinates])


def _unwrapped(
    values: Float[np.ndarray, " rows"],
) -> tuple[Float[np.ndarray, " rows"], int]:
    """Return an angle without jumps of whole turns, and how many there were."""
    steps = np.diff(values)
    with np.errstate(invalid="ignore"):
        is_jump = np.abs(steps) > np.pi
    if not is_jump.any():
        return values, 0
    others = np.abs(steps[~is_jump])
    turns = np.round(steps[is_jump] / _TURN)
    leftover = np.abs(steps[is_jump] - turns * _TURN)
    # What is left of a jump must be a step like others; else it is a spike or a gap.
    typical = 3.0 * float(np.nanmax(others, initial=0.0)) + 1e-6
    if not np.all(leftover <= min(typical, 1.0)):
        return values, 0
    offset = np.zeros(values.size)
    offset[1:][is_jump] = turns
    return values - _TURN * np.cumsum(offset), int(is_jump.sum())


def _inside(values: np.ndarray, arm: Arm, j: int) -> np.ndarray:
    """Choose the whole turn that lies best within a joint's limits."""
    lower, upper = arm.limits("lower")[j], arm.limits("upper")[j]
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return values
    middle = 0.5 * (values.min() + values.max())
    return np.asarray(
        values - _TURN * np.round((middle - 0.5 * (lower + upper)) / _TURN)
    )
