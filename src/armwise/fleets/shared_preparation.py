"""One preparation for the logs of a whole fleet, so that robots can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from armwise.errors import ArmwiseError, RecordingError
from armwise.fleets.chunks import LogChunk, LogReading, read_chunk
from armwise.jobs import JobRunner
from armwise.recordings import prepare

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings import Preparation


_ROBOTS = 3
"""Robots whose first chunk is prepared by itself: the median of three is the least that
one odd robot cannot decide."""

_MOST_ROWS = 40_000
"""Rows of it that are looked at: 40 s at 1 kHz show the bandwidth and the lag."""


def choose_shared_preparation(
    arm: Arm,
    reading: LogReading,
    cutoff_hz: float | None,
    chunks: Sequence[LogChunk],
    runner: JobRunner,
) -> Preparation:
    """Choose cut-off, lag and velocity: those of the median of a few robots.

    Args:
        arm: The arm; lag and cut-off follow from its own dynamics.
        reading: How logs are understood.
        cutoff_hz: Low-pass in [Hz]; chosen when None.
        chunks: The chunks, in order.
        runner: Who looks at them.

    Raises:
        RecordingError: If no log can be used.
    """
    work = partial(suggest_preparation, arm, reading, cutoff_hz)
    suggestions: list[Preparation] = []
    problem = ""
    candidates = _candidates(chunks)
    while len(suggestions) < _ROBOTS:
        batch = list(islice(candidates, _ROBOTS - len(suggestions)))
        if not batch:
            break
        # Sorted by number: the choice must not depend on who finishes first.
        for _, answer in sorted(runner.run(work, batch), key=lambda pair: pair[0]):
            if isinstance(answer, str):
                problem = problem or f" The first of them: {answer}"
            else:
                suggestions.append(answer)
    if not suggestions:
        raise RecordingError(f"No log can be used.{problem}")
    ranked = sorted(suggestions, key=lambda one: one.cutoff_hz or float("inf"))
    return ranked[len(ranked) // 2]


def suggest_preparation(
    arm: Arm, reading: LogReading, cutoff_hz: float | None, chunk: LogChunk
) -> Preparation | str:
    """Return how a chunk would best be prepared, or why it cannot be."""
    rows = None if chunk.rows is None else min(chunk.rows, _MOST_ROWS)
    try:
        recording = read_chunk(replace(chunk, rows=rows), arm, reading)
        skip = reading.skip_bad_rows
        samples = prepare(recording, cutoff_hz, arm=arm, skip_bad_rows=skip)
    except (ArmwiseError, OSError) as error:
        return str(error)
    return samples.preparation


def _candidates(chunks: Sequence[LogChunk]) -> Iterator[LogChunk]:
    """Chunks in the order they are tried: robots from all over the fleet first."""
    firsts: dict[str, LogChunk] = {}
    for chunk in chunks:
        firsts.setdefault(chunk.log.robot, chunk)
    order = list(firsts.values())
    # Neighbours in a list of robots are often neighbours in the hall.
    step = max(1, len(order) // _ROBOTS)
    yield from (chunk for k in range(step) for chunk in order[k::step])
    yield from (chunk for chunk in chunks if firsts[chunk.log.robot] is not chunk)
