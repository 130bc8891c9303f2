"""Logs of a fleet: found by name, and told apart by robot."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from armwise.errors import RecordingError
from armwise.recordings.read import BAGS, TEXT

if TYPE_CHECKING:
    import polars as pl

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
