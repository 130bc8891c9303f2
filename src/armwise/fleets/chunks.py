"""Logs of a fleet, and the chunks of rows that workers take one at a time."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from armwise.errors import RecordingError
from armwise.recordings import (
    BAGS,
    JSON_LINES,
    TEXT,
    Recording,
    read_recording,
    recording_of,
    table_of_frame,
)
from armwise.regression import STRETCHES

if TYPE_CHECKING:
    import polars as pl

    from armwise.arms import Arm
    from armwise.recordings import LogMapping


PARQUET = (".parquet", ".pq")
_ENDINGS = {*TEXT, *JSON_LINES, *PARQUET, *BAGS, ".npz", ".mat"}


@dataclass(frozen=True)
class RobotLog:
    """One robot's rows of one file.

    Attributes:
        path: The file, or a bag's folder.
        robot: Whose it is.
        rows: How many rows; None where only reading the whole file would say.
        column: Column that names the robot of every row; empty if all are its.
        problem: Why it cannot be opened; empty if it can.
    """

    path: Path
    robot: str
    rows: int | None = None
    column: str = ""
    problem: str = ""


def find_logs(
    sources: str | Path | Sequence[str | Path], group_by: str = "robot"
) -> tuple[RobotLog, ...]:
    """Find logs in files, folders and globs, and say whose they are.

    A robot's name is taken from a folder `robot=NAME` of the path, else from a column
    `robot` of a Parquet file, else from the folder the file lies in.

    Args:
        sources: Files, folders (searched to the bottom) and globs (`**` reaches down).
        group_by: Name of that column and folder.

    Returns:
        Logs in the order of robots, then paths: always the same for the same files.

    Raises:
        RecordingError: If a source holds no log.
    """
    several = [sources] if isinstance(sources, str | Path) else list(sources)
    # A set: overlapping globs name a file twice, and its rows must count once.
    files = sorted({path for source in several for path in _files(source)})
    logs = [log for path in files for log in _logs_of_file(path, group_by)]
    return tuple(sorted(logs, key=lambda log: (log.robot, log.path)))


def _files(source: str | Path) -> list[Path]:
    """Return the log files that a file, a folder or a glob stands for."""
    path = Path(source)
    if path.is_dir():
        files = [path] if _is_bag(path) else list(_below(path))
    elif path.exists():
        files = [path]
    else:
        matches = [Path(name) for name in glob.glob(str(source), recursive=True)]
        files = [p for p in matches if p.is_file() or _is_bag(p)]
    if not files:
        raise RecordingError(
            f"{source} holds no logs. Name files, a folder of "
            f"{', '.join(sorted(_ENDINGS))}, or a glob such as 'logs/**/*.parquet'."
        )
    return [file.absolute() for file in files]


def _below(folder: Path) -> Iterator[Path]:
    for child in folder.iterdir():
        if child.is_dir() and not _is_bag(child):
            yield from _below(child)
        elif child.is_dir() or child.suffix.lower() in _ENDINGS:
            yield child


def _is_bag(path: Path) -> bool:
    # rosbag2 writes this file into the folder of every bag.
    return (path / "metadata.yaml").exists()


def _logs_of_file(path: Path, group_by: str) -> list[RobotLog]:
    """Split a file by robot; only what a Parquet file says of itself is read."""
    named = _robot_folder(path, group_by)
    robot = named or path.parent.name
    if path.suffix.lower() not in PARQUET:
        return [RobotLog(path, robot)]
    try:
        if not named and group_by in _columns(path):
            counts = sorted(_rows_by(path, group_by).items())
            return [RobotLog(path, name, rows, group_by) for name, rows in counts]
        return [RobotLog(path, robot, _rows(path))]
    except RecordingError as error:
        return [RobotLog(path, robot, problem=str(error))]


def _robot_folder(path: Path, group_by: str) -> str:
    marks = [part for part in path.parts[:-1] if part.startswith(f"{group_by}=")]
    return marks[-1].partition("=")[2] if marks else ""


def _columns(path: Path) -> set[str]:
    import polars as pl

    # Without hive_partitioning polars adds no column for a folder robot=NAME, which is
    # read from the path already.
    return set(_collected(path, pl.scan_parquet(path, hive_partitioning=False).head(0)))


def _rows(path: Path) -> int:
    import polars as pl

    scan = pl.scan_parquet(path, hive_partitioning=False).select(rows=pl.len())
    return int(_collected(path, scan)["rows"][0])


def _rows_by(path: Path, column: str) -> dict[str, int]:
    import polars as pl

    scan = pl.scan_parquet(path, hive_partitioning=False)
    # Robots may be numbered in the file; everywhere else their names are text.
    robot = pl.col(column).cast(pl.String)
    table = _collected(path, scan.group_by(robot).agg(rows=pl.len()))
    if None in table[column]:
        raise RecordingError(f"{path} has rows whose {column} is empty. Fill them in.")
    return dict(zip(table[column], table["rows"], strict=True))


def _collected(path: Path, scan: pl.LazyFrame) -> dict[str, list]:
    """Return a small table as lists; a file that is no Parquet is a RecordingError."""
    import polars as pl

    try:
        return scan.collect().to_dict(as_series=False)
    # PanicException is not a PolarsError: it is how polars' Rust code reports a panic.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = str(error).splitlines()[0]
        raise RecordingError(
            f"{path} is not a readable Parquet file: {first}"
        ) from None


# Chunks: the same however many workers there are.

ROWS = 100_000
"""Most rows of a chunk: some tens of megabytes while it is worked on, so that as many
workers as a machine has cores fit in its memory."""


@dataclass(frozen=True)
class LogReading:
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
class LogChunk:
    """Some rows of a log.

    Attributes:
        log: The log.
        first: First row, counted among the robot's own.
        rows: How many; None for all of a log whose length is not known.
        stretches: How many stretches it is summed up in.
        size, modified: Of the file in [bytes] and [ns], to recognise it.
    """

    log: RobotLog
    first: int
    rows: int | None
    stretches: int
    size: int
    modified: int

    def __str__(self) -> str:
        if self.rows in (None, self.log.rows):
            return str(self.log.path)
        return f"{self.log.path}, {self.rows} rows from {self.first} on,"


def cut_into_chunks(logs: Sequence[RobotLog]) -> tuple[LogChunk, ...]:
    """Cut logs into chunks, and give every robot stretches enough for a jackknife.

    Only Parquet is cut; files of other kinds are one chunk each.
    """
    bounds = [(log, first, rows) for log in logs for first, rows in _bounds(log)]
    chunks = Counter(log.robot for log, _, _ in bounds)
    cut = []
    for log, first, rows in bounds:
        stretches = _stretches(chunks[log.robot])
        # Size and time of change stand for the content, which is too long to hash.
        state = log.path.stat()
        cut.append(
            LogChunk(log, first, rows, stretches, state.st_size, state.st_mtime_ns)
        )
    return tuple(cut)


def _stretches(chunks: int) -> int:
    """Stretches a chunk is summed up in, if a robot has so many chunks.

    A power of two: a robot's next log seldom changes what its others are summed up in,
    so that their sums are found again.
    """
    # Rounded up: all chunks of a robot together give at least STRETCHES stretches.
    needed = -(-STRETCHES // chunks)
    return 1 << (needed - 1).bit_length()


def _bounds(log: RobotLog) -> list[tuple[int, int | None]]:
    """Cut a log into equal chunks: first row and how many."""
    if log.rows is None:
        return [(0, None)]
    count = max(1, -(-log.rows // ROWS))
    # In integers: chunks differ by one row at most, and depend on the log alone.
    edges = [log.rows * k // count for k in range(count + 1)]
    return [(a, b - a) for a, b in pairwise(edges)]


def read_chunk(chunk: LogChunk, arm: Arm, reading: LogReading) -> Recording:
    """Read the rows of a chunk.

    Raises:
        RecordingError: Naming the file, the row and the remedy.
    """
    log = chunk.log
    columns, skip = dict(reading.columns), reading.skip_bad_rows
    # A whole file takes the ordinary reader, which knows every format. Only Parquet is
    # ever cut, so what follows may assume it.
    if chunk.rows in (None, log.rows) and not log.column:
        return read_recording(
            log.path, arm, reading.mapping, columns=columns, skip_bad_rows=skip
        )
    import polars as pl

    rows = pl.scan_parquet(log.path, hive_partitioning=False)
    if log.column:
        rows = rows.filter(pl.col(log.column).cast(pl.String) == log.robot)
    frame = rows.slice(chunk.first, chunk.rows).collect()
    table = table_of_frame(log.path, frame)
    return recording_of(
        table, arm, reading.mapping, columns=columns, skip_bad_rows=skip
    )
