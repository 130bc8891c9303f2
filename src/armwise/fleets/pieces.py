"""Pieces: what one worker takes at a time, the same however many workers there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from armwise.fleets.logs import Log
from armwise.identification.uncertainty import STRETCHES
from armwise.recordings import Recording, read_recording
from armwise.recordings.array_tables import table_of_frame
from armwise.recordings.read import recording_of

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings import LogMapping

ROWS = 100_000
"""Most rows of a piece: some tens of megabytes while it is worked on."""


@dataclass(frozen=True)
class Reading:
    """How logs are understood.

    Attributes:
        mapping: What their columns and units are.
        columns: Channel and column, for a few columns with other names.
        skip_bad_rows: Leave out rows that cannot be used.
    """

    mapping: LogMapping | None = None
    columns: tuple[tuple[str, str], ...] = ()
    skip_bad_rows: bool = False


@dataclass(frozen=True)
class Piece:
    """Some rows of a log.

    Attributes:
        log: The log.
        first: First row, counted among the robot's own.
        rows: How many; None for all of a log whose length is not known.
        stretches: How many stretches it is summed up in.
        size, modified: Of the file in [bytes] and [ns], to know it again.
    """

    log: Log
    first: int
    rows: int | None
    stretches: int
    size: int
    modified: int

    def __str__(self) -> str:
        if self.rows in (None, self.log.rows):
            return str(self.log.path)
        return f"{self.log.path}, {self.rows} rows from {self.first} on,"


def cut(logs: Sequence[Log]) -> tuple[Piece, ...]:
    """Cut logs into pieces, and give every robot stretches enough to doubt itself.

    Only Parquet is cut; files of other kinds are one piece each.
    """
    bounds = [(log, first, rows) for log in logs for first, rows in _bounds(log)]
    pieces = Counter(log.robot for log, _, _ in bounds)
    made = []
    for log, first, rows in bounds:
        stretches = _stretches(pieces[log.robot])
        state = log.path.stat()
        made.append(
            Piece(log, first, rows, stretches, state.st_size, state.st_mtime_ns)
        )
    return tuple(made)


def _stretches(pieces: int) -> int:
    """Stretches a piece is summed up in, if a robot has so many pieces.

    A power of two: a robot's next log seldom changes what its others are summed up in,
    so that their parts are found again.
    """
    needed = -(-STRETCHES // pieces)
    return 1 << (needed - 1).bit_length()


def _bounds(log: Log) -> list[tuple[int, int | None]]:
    """Cut a log into equal pieces: first row and how many."""
    if log.rows is None:
        return [(0, None)]
    count = max(1, -(-log.rows // ROWS))
    edges = [log.rows * k // count for k in range(count + 1)]
    return [(a, b - a) for a, b in pairwise(edges)]


def read_piece(piece: Piece, arm: Arm, reading: Reading) -> Recording:
    """Read the rows of a piece.

    Raises:
        RecordingError: Naming the file, the place and the remedy.
    """
    log = piece.log
    columns, skip = dict(reading.columns), reading.skip_bad_rows
    if piece.rows in (None, log.rows) and not log.column:
        return read_recording(
            log.path, arm, reading.mapping, columns=columns, skip_bad_rows=skip
        )
    import polars as pl

    rows = pl.scan_parquet(log.path, hive_partitioning=False)
    if log.column:
        rows = rows.filter(pl.col(log.column).cast(pl.String) == log.robot)
    frame = rows.slice(piece.first, piece.rows).collect()
    table = table_of_frame(log.path, frame)
    return recording_of(
        table, arm, reading.mapping, columns=columns, skip_bad_rows=skip
    )
