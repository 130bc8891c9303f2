"""JSON lines: one object a line, its keys the columns."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.column_names import split_unit
from armwise.recordings.formats.arrays import LEROBOT, LONGEST_LIST, refuse_bomb
from armwise.recordings.formats.csv import LONGEST_LINE, MOST_COLUMNS, SPARSE
from armwise.recordings.formats.table import RawTable

# Judgement: a stamp in the header of a message in an envelope is four deep.
_DEEPEST = 8
"""Objects within objects; what is deeper is left out."""

_NAMES = ("name", "names", "joint_names")
"""Keys of a list that names the entries of the lists beside it."""


class _BadLineError(Exception):
    """A line that is no row."""


def read_json_lines(
    path: Path,
    needed: Callable[[tuple[str, ...]], set[str]],
    *,
    skip_bad_rows: bool = False,
    progress: Callable[[float], None] | None = None,
) -> RawTable:
    """Read a log of one JSON object a line into columns of numbers.

    Lists are spelt out, `q` as `q_1`, `q_2` … or by the names in a list `name` beside
    them; objects within objects are joined by dots, `header.stamp.sec`.

    Args:
        path: The file.
        needed: Given all names, the columns that must be sound; text or holes in
            others become NaN.
        skip_bad_rows: Leave out rows that cannot be used, and count them.
        progress: Called with the fraction of the file that was read.

    Raises:
        RecordingError: For the first bad line, naming it and the column.
    """
    columns = _Columns()
    size, skipped, done = max(path.stat().st_size, 1), 0, 0
    for number, line in _lines(path):
        try:
            columns.add(number, _object(line))
        except _BadLineError as problem:
            if not skip_bad_rows:
                raise _refusal(path, number, str(problem)) from None
            skipped += 1
        if len(columns.values) > MOST_COLUMNS:
            raise RecordingError(
                f"{path} has over {MOST_COLUMNS} names. This is no log of an arm."
            )
        done += len(line)
        # Now and then: a call for every line would take as long as the line.
        if progress and number % 10_000 == 0:
            progress(min(done / size, 1.0))
    rows = len(columns.lines)
    refuse_bomb(path, 8 * rows * len(columns.values))
    if not rows:
        raise RecordingError(f"{path} has no usable row of numbers.")
    table = {name: columns.column(name) for name in columns.values}
    units = dict(columns.units)
    required = sorted(needed(tuple(table)) & table.keys())
    block = np.stack([table[name] for name in required] or [np.zeros(rows)])
    # A hole is NaN, and what is no number infinite. Where many rows have holes they
    # are of several topics, as in a text log.
    is_sparse = bool(np.isnan(block).any(axis=0).mean() > SPARSE)
    wrong = np.isinf(block) if is_sparse else ~np.isfinite(block)
    bad = wrong.any(axis=0)
    if bad.any() and not skip_bad_rows:
        row = int(np.argmax(bad))
        name = required[int(np.argmax(wrong[:, row]))]
        what = "is not a finite number" if np.isinf(table[name][row]) else "is missing"
        raise _refusal(path, columns.lines[row], f'"{name}" {what}')
    sound = {
        name: np.where(np.isinf(values), np.nan, values)[~bad]
        for name, values in table.items()
        # Text is common in logs, and no column of numbers.
        if name in required or np.isfinite(values).any()
    }
    if bad.all() or not sound:
        raise RecordingError(f"{path} has no usable row of numbers.")
    skipped += int(bad.sum())
    return RawTable(str(path), sound, units, skipped_rows=skipped, is_sparse=is_sparse)


def json_line_names(path: Path) -> tuple[str, ...]:
    """Names of the columns, by the first lines."""
    columns = _Columns()
    # Judgement: topics that take turns all come within a hundred lines.
    for number, line in islice(_lines(path), 100):
        try:
            columns.add(number, _object(line))
        except _BadLineError:
            continue  # reading it will say so
    return tuple(columns.values)


def _refusal(path: Path, number: int, problem: str) -> RecordingError:
    return RecordingError(
        f"{path}, line {number}: {problem}. "
        "Repair the log, or skip such rows (--skip-bad-rows)."
    )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number and text of every line that is not blank."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise RecordingError(
                    f"{path}, line {number}: longer than {LONGEST_LINE >> 20} MiB. "
                    "This is not a log with one object a line."
                )
            text = line.strip()
            if number == 1:
                text = text.removeprefix(b"\xef\xbb\xbf")
            if text:
                yield number, text


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    # Too deep, too many digits, and bytes that are no text, are all damage.
    except (ValueError, RecursionError):
        raise _BadLineError("not a whole JSON object") from None
    if not isinstance(row, dict):
        raise _BadLineError("a list or number, where an object with names is needed")
    return row


class _Columns:
    """Cells by name, each with the row it stands in: rows need not be alike.

    Attributes:
        lines: Line number of every row.
        values: Name → its numbers.
        units: Name → unit, where the name says.
    """

    def __init__(self) -> None:
        self.lines = array("q")
        self.values: dict[str, array[float]] = {}
        self.units: dict[str, str] = {}
        self._rows: dict[str, array[int]] = {}
        self._split: dict[str, tuple[str, str]] = {}

    def add(self, line: int, row: dict[str, Any]) -> None:
        """Add the cells of one object."""
        cells = dict[str, float]()
        for label, value in _cells(row, "", 0):
            if label not in self._split:
                self._split[label] = split_unit(label)
            name, unit = self._split[label]
            if name in cells:
                raise _BadLineError(f'"{name}" is there twice')
            cells[name] = value
            if unit and name not in self.units:
                self.units[name] = unit
        for name, value in cells.items():
            if name not in self.values:
                self.values[name], self._rows[name] = array("d"), array("q")
            self.values[name].append(value)
            self._rows[name].append(len(self.lines))
        self.lines.append(line)

    def column(self, name: str) -> np.ndarray:
        """One column of all rows, NaN where it has no cell."""
        values = np.full(len(self.lines), np.nan)
        values[np.array(self._rows[name])] = self.values[name]
        return values


def _cells(row: dict[str, Any], before: str, depth: int) -> Iterator[tuple[str, float]]:
    """Names and numbers of an object; text and NaN as infinity, null left out."""
    names = next((row[key] for key in _NAMES if _is_named(row.get(key))), None)
    for key, value in row.items():
        label = before + key
        if isinstance(value, dict):
            if depth < _DEEPEST:
                yield from _cells(value, f"{label}.", depth + 1)
        elif isinstance(value, list):
            yield from _entries(LEROBOT.get(label, label), value, names)
        elif value is not None:
            yield label, _number(value)


def _entries(
    label: str, values: list[Any], names: Sequence[str] | None
) -> Iterator[tuple[str, float]]:
    """The entries of a list, by their joints' names or numbers."""
    is_plain = all(isinstance(x, int | float) or x is None for x in values)
    if not is_plain or len(values) > LONGEST_LIST:
        return
    if names is None or len(names) != len(values):
        names = [str(k + 1) for k in range(len(values))]
    for name, value in zip(names, values, strict=True):
        if value is not None:
            yield f"{label}_{name}", _number(value)


def _is_named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) and x for x in value)


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        return np.inf
    try:
        number = float(value)
    except OverflowError:
        return np.inf
    return np.inf if np.isnan(number) else number
