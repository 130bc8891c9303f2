"""Pieces: what one worker takes at a time, the same however many workers there are."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from armwise.errors import RecordingError
from armwise.identification import STRETCHES
from armwise.recordings import (
    BAGS,
    TEXT,
    Recording,
    read_recording,
    recording_of,
    table_of_frame,
)

if TYPE_CHECKING:
    import polars as pl

    from armwise.arms import Arm
    from armwise.recordings import LogMapping


# Logs of a fleet: found by name, and told apart by robot.

PARQUET = (".parquet", ".pq")
_ENDINGS = {*TEXT, *PARQUET, *BAGS, ".npz", ".mat"}


@dataclass(frozen=True)
class Log:
    """One robot's share of one file.

    Attributes:
        path: The file, or a bag's folder.
        robot: Whose it is.
        rows: How many rows of it; None where only reading all of it would tell.
        column: Column that tells this robot's rows from others'; empty if all are its.
        problem: Why it cannot be opened; empty if it can.
    """

    path: Path
    robot: str
    rows: int | None = None
    column: str = ""
    problem: str = ""


def find_logs(
    places: str | Path | Sequence[str | Path], group_by: str = "robot"
) -> tuple[Log, ...]:
    """Find logs in files, folders and globs, and say whose they are.

    A robot's name is taken from a folder `robot=NAME` of the path, else from a column
    `robot` of a Parquet file, else from the folder the file lies in.

    Args:
        places: Files, folders (searched to the bottom) and globs (`**` reaches down).
        group_by: What tells robots apart: the name of that column and folder.

    Returns:
        Logs in the order of robots, then paths: always the same for the same files.

    Raises:
        RecordingError: If a place holds no log.
    """
    given = [places] if isinstance(places, str | Path) else list(places)
    files = sorted({path for place in given for path in _files(place)})
    found = [log for path in files for log in _shares(path, group_by)]
    return tuple(sorted(found, key=lambda log: (log.robot, log.path)))


def _files(place: str | Path) -> list[Path]:
    """Return the logs a place stands for."""
    path = Path(place)
    if path.is_dir():
        found = [path] if _is_bag(path) else list(_below(path))
    elif path.exists():
        found = [path]
    else:
        matches = [Path(name) for name in glob.glob(str(place), recursive=True)]
        found = [p for p in matches if p.is_file() or _is_bag(p)]
    if not found:
        raise RecordingError(
            f"{place} holds no logs. Name files, a folder of "
            f"{', '.join(sorted(_ENDINGS))}, or a glob such as 'logs/**/*.parquet'."
        )
    return [file.absolute() for file in found]


def _below(folder: Path) -> Iterator[Path]:
    for child in folder.iterdir():
        if child.is_dir() and not _is_bag(child):
            yield from _below(child)
        elif child.is_dir() or child.suffix.lower() in _ENDINGS:
            yield child


def _is_bag(path: Path) -> bool:
    return (path / "metadata.yaml").exists()


def _shares(path: Path, group_by: str) -> list[Log]:
    """Split a file by robot; only what a Parquet file says of itself is read."""
    named = _robot_folder(path, group_by)
    robot = named or path.parent.name
    if path.suffix.lower() not in PARQUET:
        return [Log(path, robot)]
    try:
        if not named and group_by in _columns(path):
            counts = sorted(_rows_by(path, group_by).items())
            return [Log(path, name, rows, group_by) for name, rows in counts]
        return [Log(path, robot, _rows(path))]
    except RecordingError as error:
        return [Log(path, robot, problem=str(error))]


def _robot_folder(path: Path, group_by: str) -> str:
    marks = [part for part in path.parts[:-1] if part.startswith(f"{group_by}=")]
    return marks[-1].partition("=")[2] if marks else ""


def _columns(path: Path) -> set[str]:
    import polars as pl

    return set(_asked(path, pl.scan_parquet(path, hive_partitioning=False).head(0)))


def _rows(path: Path) -> int:
    import polars as pl

    scan = pl.scan_parquet(path, hive_partitioning=False).select(rows=pl.len())
    return int(_asked(path, scan)["rows"][0])


def _rows_by(path: Path, column: str) -> dict[str, int]:
    import polars as pl

    scan = pl.scan_parquet(path, hive_partitioning=False)
    robot = pl.col(column).cast(pl.String)
    table = _asked(path, scan.group_by(robot).agg(rows=pl.len()))
    if None in table[column]:
        raise RecordingError(f"{path} has rows whose {column} is empty. Fill them in.")
    return dict(zip(table[column], table["rows"], strict=True))


def _asked(path: Path, scan: pl.LazyFrame) -> dict[str, list]:
    """Return a small table as lists; a file that is no Parquet is a RecordingError."""
    import polars as pl

    try:
        return scan.collect().to_dict(as_series=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = str(error).splitlines()[0]
        raise RecordingError(
            f"{path} is not a readable Parquet file: {first}"
        ) from None


# Pieces: what one worker takes at a time, the same however many workers there are.

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
