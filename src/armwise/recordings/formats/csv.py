"""Text logs: layout (comments, separator, header, units) and columns of any size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.column_names import is_unit, split_unit
from armwise.recordings.formats.table import RawTable

if TYPE_CHECKING:
    import polars as pl


# Judgement: 50,000 columns of 20 characters.
LONGEST_LINE = 1 << 20
"""A line of more bytes than this is no log."""

# Judgement: a hundred joints with a hundred signals each.
MOST_COLUMNS = 10_000
"""No log of an arm has more columns."""

COMMENTS = ("#", "%", "//")
"""What a comment line starts with."""

_ECHOED_TIME = "%time"
"""What `rostopic echo -p` of ROS 1 begins its heading with: no comment."""

SEPARATORS = (",", ";", "\t", "|", " ")
"""Tried in this order of preference; a space stands for any run of blanks."""


@dataclass(frozen=True)
class Layout:
    """Where the numbers of a text log are.

    Attributes:
        separator: Between values; a space stands for any run of blanks.
        names: Heading of every column; numbers from 1 when there is no header.
        units: Unit under or beside every heading; empty where unknown.
        offset: Where the first row of numbers starts in [bytes].
        first_line: Its line number, from 1.
        decimal_comma: Whether 1,5 means one and a half.
        is_padded: Whether values carry blanks or quotes that must go.
        has_header: Whether the names came from the file.
    """

    separator: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    offset: int
    first_line: int
    decimal_comma: bool
    is_padded: bool
    has_header: bool


def read_layout(path: Path, separator: str | None = None) -> Layout:
    """Look at the beginning of a text log.

    Args:
        path: The file.
        separator: Between values; found when None.
    """
    head = _head(path)
    lines = head.split(b"\n")
    rows: list[tuple[int, int, str]] = []  # line number, offset, text
    offset = 0
    for number, raw in enumerate(lines, 1):
        text = _decoded(raw).lstrip("\ufeff").strip("\r ")
        if text and not _is_comment(text):
            rows.append((number, offset, text))
        offset += len(raw) + 1
        # A header, units under it, the first numbers, and one line to show in a
        # message.
        if len(rows) == 4:
            break
    if not rows:
        raise RecordingError(f"{path} holds no rows, only comments or blank lines.")
    return _layout(path, rows, separator)


def _decoded(raw: bytes) -> str:
    """A line as UTF-8, or, where it is none, as spreadsheets on Windows write it."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def _is_comment(text: str) -> bool:
    return text.startswith(COMMENTS) and not text.lower().startswith(_ECHOED_TIME)


def _layout(
    path: Path, rows: list[tuple[int, int, str]], separator: str | None
) -> Layout:
    texts = [text for _, _, text in rows]
    first = next((i for i, text in enumerate(texts) if is_numeric_row(text)), None)
    if '"' in texts[-1] and "[" in texts[-1]:
        raise RecordingError(
            f"{path}: cells of line {rows[-1][0]} hold arrays, in quotes. Write a "
            "column for every joint, or Parquet or JSON lines, whose lists are read."
        )
    # More than a heading and a line of units before the numbers is not understood.
    if first is None or first > 2:
        raise RecordingError(
            f"{path} has no row of numbers among its first lines. "
            f"Line {rows[-1][0]} reads {rows[-1][2][:60]!r}."
        )
    between = separator or _separator(texts[: first + 1])
    data = split_row(texts[first], between)
    headings = split_row(texts[0], between) if first else []
    if first and len(headings) != len(data):
        raise RecordingError(
            f"{path}: the header names {len(headings)} columns, but line "
            f"{rows[first][0]} has {len(data)} values."
        )
    pairs = [split_unit(cell.strip('"')) for cell in headings]
    if len(data) > MOST_COLUMNS:
        raise RecordingError(
            f"{path} has {len(data)} columns. This is no log of an arm."
        )
    names = [name for name, _ in pairs] or _echoed_names(path, data)
    names = names or [str(i + 1) for i in range(len(data))]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise RecordingError(
            f"{path} has two columns called {twice[0][:60]!r}; rename one."
        )
    units = [unit for _, unit in pairs] or [""] * len(data)
    units = [
        # rostopic echo -p writes nanoseconds since 1970, and does not say so.
        "ns" if name.lower() in (_ECHOED_TIME, "field.header.stamp") else unit
        for name, unit in zip(names, units, strict=True)
    ]
    if first == 2:
        units = _unit_row(path, rows[1], split_row(texts[1], between), len(data))
    number, offset, text = rows[first]
    return Layout(
        separator=between,
        names=tuple(names),
        units=tuple(units),
        offset=offset,
        first_line=number,
        # 1,5 between semicolons is a number, between commas it is two.
        decimal_comma=between != "," and bool(re.search(r"\d,\d", text)),
        is_padded=between != " " and bool(re.search(r"[ \"]", text)),
        has_header=first > 0,
    )


def _echoed_names(path: Path, cells: list[str]) -> list[str]:
    """Name the columns of `ros2 topic echo --csv` on a topic of joint states.

    A row is seconds, nanoseconds, frame, the joints' names, then their positions,
    velocities and efforts; arrays that are not published leave no cells.
    """
    is_number = [_is_number(cell.strip('" ')) for cell in cells]
    if len(cells) < 5 or not (is_number[0] and is_number[1]) or is_number[2]:
        return []
    count = next((k for k, numeric in enumerate(is_number[3:]) if numeric), 0)
    # An empty frame looks like any empty cell; joints always have names.
    joints = [cell.strip('" ') for cell in cells[3 : 3 + count]]
    values = len(cells) - 3 - count
    if not joints or not all(joints) or not all(is_number[3 + count :]):
        return []
    if values not in (count, 3 * count):
        raise RecordingError(
            f"{path} looks like ros2 topic echo --csv of {count} joints with {values} "
            "values: velocities or efforts are missing, and which is not said. Add a "
            "header line, or record a bag."
        )
    quantities = ("position", "velocity", "effort")[: values // count]
    return [
        "sec",
        "nanosec",
        "frame_id",
        *(f"name[{k}]" for k in range(count)),
        *(f"{quantity}_{joint}" for quantity in quantities for joint in joints),
    ]


def split_row(text: str, separator: str) -> list[str]:
    """Split one line into its cells."""
    return text.split() if separator == " " else text.split(separator)


def is_numeric_row(text: str) -> bool:
    """Tell whether at least half the cells of a line are numbers."""
    cells = [cell.strip('" ') for cell in re.split(r"[,;\t| ]+", text.strip(" ,;"))]
    # Half: a row of numbers may have empty cells, a mode in words, or nan.
    return 2 * sum(map(_is_number, cells)) >= len(cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _separator(texts: list[str]) -> str:
    # The comma last: where there is another separator, it may be the decimal point.
    for candidate in SEPARATORS[1:4]:
        if all(candidate in text for text in texts):
            return candidate
    return "," if "," in texts[-1] or " " not in texts[-1] else " "


def _unit_row(
    path: Path, line: tuple[int, int, str], cells: list[str], count: int
) -> list[str]:
    units = [cell.strip(' "[]()') for cell in cells]
    if len(units) != count or not all(map(is_unit, units)):
        raise RecordingError(
            f"{path}, line {line[0]}: neither numbers nor units: {line[2][:60]!r}. "
            "Remove it, or start it with #."
        )
    return ["" if unit in ("-", "1") else unit for unit in units]


def _head(path: Path) -> bytes:
    """Return the first lines, refusing what is empty, not text, or one endless line."""
    with path.open("rb") as file:
        head = file.read(LONGEST_LINE)
    if not head.strip():
        raise RecordingError(f"{path} is empty.")
    # UTF-8 text has no zero byte; images and archives have one early.
    if b"\0" in head[:4096]:
        raise RecordingError(f"{path} is not a text file. Name its real format.")
    if b"\n" not in head and len(head) == LONGEST_LINE:
        raise RecordingError(
            f"{path}, line 1: longer than {LONGEST_LINE >> 20} MiB. "
            "This is not a log with one row a line."
        )
    return head


# Columns, read in chunks; every bad cell is named.

# Judgement: long beside a call of the parser, short beside the numbers in memory.
CHUNK = 8 << 20
"""Bytes read at a time."""


@dataclass(frozen=True)
class BadCell:
    """A cell of a text log that cannot be used.

    Attributes:
        line: Line number, from 1, in the chunk that was read.
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
) -> RawTable:
    """Read a text log into columns of numbers.

    Args:
        path: The file.
        needed: Given all headings, the columns that must be sound; text or holes in
            others become NaN.
        separator: Between values; found when None.
        skip_bad_rows: Leave out rows with a bad cell, and count them.
        progress: Called with the fraction of the file that was read.

    Raises:
        RecordingError: For the first bad cell, naming line and column.
    """
    layout = read_layout(path, separator)
    required = needed(layout.names)
    is_sparse = _is_sparse(path, layout, required)
    if is_sparse:
        required = set()
    size = max(path.stat().st_size - layout.offset, 1)
    buffer = _Buffer(len(layout.names))
    skipped = 0
    for offset, text in _chunks(path, layout):
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
    return RawTable(
        str(path), columns, units, skipped_rows=skipped, is_sparse=is_sparse
    )


# Judgement: a broken logger drops a row in a hundred at worst; where topics of
# different rates are merged, half the cells or more are empty.
SPARSE = 0.1
"""Fraction of rows with empty cells from which on holes are the log's layout."""


def _is_sparse(path: Path, layout: Layout, required: set[str]) -> bool:
    """Tell whether rows belong to several topics, each leaving others' cells empty."""
    with path.open("rb") as file:
        file.seek(layout.offset)
        lines = file.read(1 << 16).decode("utf-8", "replace").split("\n")[:-1]
    watched = [i for i, name in enumerate(layout.names) if name in required]
    rows = [split_row(line.rstrip("\r"), layout.separator) for line in lines]
    whole = [row for row in rows if len(row) == len(layout.names)]
    if layout.separator == " " or len(whole) < 20:
        return False
    holes = sum(any(not row[i].strip('" ') for i in watched) for row in whole)
    return holes > SPARSE * len(whole)


class _Buffer:
    """Columns that grow as blocks of rows come in, with little copying."""

    def __init__(self, count: int) -> None:
        self.rows = 0
        self._values = np.empty((count, 0))

    def add(self, block: np.ndarray, done: float) -> None:
        """Append a block; `done` is the fraction of the file it completes."""
        rows = self.rows + block.shape[1]
        if rows > self._values.shape[1]:
            # Sized by what was read so far and 2 % more: rows are about equally long,
            # so that few copies are needed. A thousandth bounds the guess from a short
            # first block.
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


def _chunks(path: Path, layout: Layout) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines of text, and where in the file they start."""
    offset = layout.offset
    with path.open("rb") as file:
        file.seek(offset)
        while chunk := file.read(CHUNK):
            # To the end of the line, so that every chunk is whole rows.
            end = file.readline(LONGEST_LINE + 1)
            if len(end) > LONGEST_LINE:
                line = _line_number(path, offset) + chunk.count(b"\n") + 1
                raise RecordingError(
                    f"{path}, line {line}: longer than {LONGEST_LINE >> 20} MiB. "
                    "This is not a log with one row a line."
                )
            text = chunk + end
            yield offset, text
            offset += len(text)


def _line_number(path: Path, offset: int) -> int:
    """Count the lines before an offset in a file."""
    lines = 0
    with path.open("rb") as file:
        while offset > 0 and (chunk := file.read(min(offset, CHUNK))):
            lines += chunk.count(b"\n")
            offset -= len(chunk)
    return lines


def _parse(
    text: bytes, layout: Layout, required: set[str]
) -> tuple[np.ndarray, list[BadCell]]:
    """Parse whole lines; look closer only if anything is unusual."""
    import polars.exceptions

    clean = _tidied(text, layout)
    try:
        block = _block(_frame(clean, layout, ignore_errors=False), layout)
    # The fast reader says only that something is wrong; the slow one says where.
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
        # Quotes have been taken out; one that is left must not swallow lines.
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
    """Sort the lines of a chunk into good ones and bad ones, and say why."""
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
