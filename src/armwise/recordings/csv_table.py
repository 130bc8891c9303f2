"""Text logs of any size: read in pieces, every bad cell named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.csv_layout import COMMENTS, LONGEST_LINE, Layout, read_layout
from armwise.recordings.tables import Table

if TYPE_CHECKING:
    import polars as pl

PIECE = 8 << 20
"""Bytes read at a time."""


@dataclass(frozen=True)
class BadCell:
    """A place in a text log that cannot be used.

    Attributes:
        line: Line number, from 1, in the piece that was read.
        problem: What is wrong there.
    """

    line: int
    problem: str


def read_csv(
    path: Path,
    needed: Callable[[tuple[str, ...]], set[str]],
    *,
    separator: str | None = None,
    skip_bad_rows: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Table:
    """Read a text log into columns of numbers.

    Args:
        path: The file.
        needed: Given all headings, the columns that must be sound; text or holes in
            others become NaN.
        separator: Between values; found when None.
        skip_bad_rows: Leave out rows with a bad cell, and count them.
        progress: Called with the share of the file that was read.

    Raises:
        RecordingError: For the first bad cell, naming line and column.
    """
    layout = read_layout(path, separator)
    required = needed(layout.names)
    size = max(path.stat().st_size - layout.offset, 1)
    buffer = _Buffer(len(layout.names))
    skipped = 0
    for offset, text in _pieces(path, layout):
        block, bad = _parse(text, layout, required)
        if bad and not skip_bad_rows:
            line = _line_number(path, offset) + bad[0].line
            raise RecordingError(
                f"{path}, line {line}: {bad[0].problem}. "
                "Repair the log, or skip such rows (--skip-bad-rows)."
            )
        done = (offset + len(text) - layout.offset) / size
        buffer.add(block, done)
        skipped += len(bad)
        if progress:
            progress(done)
    if not buffer.rows:
        raise RecordingError(f"{path} has no usable row of numbers.")
    columns = dict(zip(layout.names, buffer.columns(), strict=True))
    units = {n: u for n, u in zip(layout.names, layout.units, strict=True) if u}
    return Table(str(path), columns, units, skipped_rows=skipped)


class _Buffer:
    """Columns that grow as blocks of rows come in, with little copying."""

    def __init__(self, count: int) -> None:
        self.rows = 0
        self._values = np.empty((count, 0))

    def add(self, block: np.ndarray, done: float) -> None:
        """Append a block; `done` is the share of the file it completes."""
        rows = self.rows + block.shape[1]
        if rows > self._values.shape[1]:
            grown = np.empty(
                (len(block), max(rows, int(1.02 * rows / max(done, 1e-3))))
            )
            grown[:, : self.rows] = self._values[:, : self.rows]
            self._values = grown
        self._values[:, self.rows : rows] = block
        self.rows = rows

    def columns(self) -> list[np.ndarray]:
        """Return every column, contiguous."""
        return [column[: self.rows] for column in self._values]


def _pieces(path: Path, layout: Layout) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines of text, and where in the file they start."""
    offset = layout.offset
    with path.open("rb") as file:
        file.seek(offset)
        while piece := file.read(PIECE):
            end = file.readline(LONGEST_LINE + 1)
            if len(end) > LONGEST_LINE:
                line = _line_number(path, offset) + piece.count(b"\n") + 1
                raise RecordingError(
                    f"{path}, line {line}: longer than {LONGEST_LINE >> 20} MiB. "
                    "This is not a log with one row a line."
                )
            text = piece + end
            yield offset, text
            offset += len(text)


def _line_number(path: Path, offset: int) -> int:
    """Count the lines before a place in a file."""
    lines = 0
    with path.open("rb") as file:
        while offset > 0 and (piece := file.read(min(offset, PIECE))):
            lines += piece.count(b"\n")
            offset -= len(piece)
    return lines


def _parse(
    text: bytes, layout: Layout, required: set[str]
) -> tuple[np.ndarray, list[BadCell]]:
    """Parse whole lines; look closer only if anything is unusual."""
    import polars.exceptions

    clean = _tidied(text, layout)
    try:
        block = _block(_frame(clean, layout, ignore_errors=False), layout)
    except polars.exceptions.PolarsError:
        return _examine(clean, layout, required)
    watched = [i for i, name in enumerate(layout.names) if name in required]
    if all(np.isfinite(block[i]).all() for i in watched):
        return block, []
    return _examine(clean, layout, required)


def _tidied(text: bytes, layout: Layout) -> bytes:
    """Take out blanks and quotes that stand around numbers."""
    if layout.separator == " ":
        lines = (b" ".join(line.split()) for line in text.split(b"\n"))
        return b"\n".join(lines)
    if layout.is_padded:
        return text.replace(b" ", b"").replace(b'"', b"")
    return text


def _frame(text: bytes, layout: Layout, ignore_errors: bool) -> pl.DataFrame:
    import polars as pl

    return pl.read_csv(
        text,
        has_header=False,
        schema=dict.fromkeys(layout.names, pl.Float64),
        separator=layout.separator,
        quote_char=None,
        comment_prefix="#",
        decimal_comma=layout.decimal_comma,
        ignore_errors=ignore_errors,
    )


def _block(frame: Any, layout: Layout) -> np.ndarray:
    """Return the columns as rows of one array, holes as NaN."""
    block = np.empty((len(layout.names), frame.height))
    for i, series in enumerate(frame.get_columns()):
        block[i] = series.to_numpy()
    return block


def _examine(
    text: bytes, layout: Layout, required: set[str]
) -> tuple[np.ndarray, list[BadCell]]:
    """Sort the lines of a piece into good ones and bad ones, and say why."""
    separator = layout.separator.encode()
    comments = tuple(mark.encode() for mark in COMMENTS)
    count = len(layout.names)
    good: list[bytes] = []
    numbers: list[int] = []
    bad: list[BadCell] = []
    for number, raw in enumerate(text.split(b"\n"), 1):
        line = raw.strip(b"\r ")
        if not line or line.startswith(comments):
            continue
        cells = line.count(separator) + 1
        if cells == count:
            good.append(line)
            numbers.append(number)
        else:
            short = "the row is truncated" if cells < count else "there are too many"
            bad.append(BadCell(number, f"{cells} of {count} values; {short}"))
    if not good:
        return np.empty((count, 0)), bad
    block = _block(_frame(b"\n".join(good), layout, ignore_errors=True), layout)
    watched = [i for i, name in enumerate(layout.names) if name in required]
    broken = ~np.isfinite(block[watched]).all(axis=0)
    for row in np.flatnonzero(broken):
        column = next(i for i in watched if not np.isfinite(block[i, row]))
        cell = good[row].split(separator)[column].decode("utf-8", "replace").strip()
        name = layout.names[column]
        what = f"{cell[:40]!r} is not a number" if cell else "the cell is empty"
        if cell.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            what = f"{cell} is not finite"
        bad.append(BadCell(numbers[row], f'column "{name}": {what}'))
    return block[:, ~broken], sorted(bad, key=lambda cell: cell.line)
