"""How a text log is laid out: comments, separator, header, units row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from armwise.errors import RecordingError
from armwise.recordings.units import is_unit, split_unit

LONGEST_LINE = 1 << 20
"""A line of more bytes than this is no log."""

COMMENTS = ("#", "%", "//")
"""What a comment line starts with."""

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
    kept: list[tuple[int, int, str]] = []  # line number, offset, text
    offset = 0
    for number, raw in enumerate(lines, 1):
        text = raw.decode("utf-8", "replace").lstrip("\ufeff").strip("\r ")
        if text and not text.startswith(COMMENTS):
            kept.append((number, offset, text))
        offset += len(raw) + 1
        if len(kept) == 4:
            break
    if not kept:
        raise RecordingError(f"{path} holds no rows, only comments or blank lines.")
    return _layout(path, kept, separator)


def _layout(
    path: Path, kept: list[tuple[int, int, str]], separator: str | None
) -> Layout:
    texts = [text for _, _, text in kept]
    first = next((i for i, text in enumerate(texts) if is_numeric_row(text)), None)
    if first is None or first > 2:
        raise RecordingError(
            f"{path} has no row of numbers among its first lines. "
            f"Line {kept[-1][0]} reads {kept[-1][2][:60]!r}."
        )
    between = separator or _separator(texts[: first + 1])
    data = split_row(texts[first], between)
    headings = split_row(texts[0], between) if first else []
    if first and len(headings) != len(data):
        raise RecordingError(
            f"{path}: the header names {len(headings)} columns, but line "
            f"{kept[first][0]} has {len(data)} values."
        )
    pairs = [split_unit(cell.strip('"')) for cell in headings]
    names = [name for name, _ in pairs] or [str(i + 1) for i in range(len(data))]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RecordingError(f"{path} has two columns called {twice[0]!r}; rename one.")
    units = [unit for _, unit in pairs] or [""] * len(data)
    if first == 2:
        units = _unit_row(path, kept[1], split_row(texts[1], between), len(data))
    number, offset, text = kept[first]
    return Layout(
        separator=between,
        names=tuple(names),
        units=tuple(units),
        offset=offset,
        first_line=number,
        decimal_comma=between != "," and bool(re.search(r"\d,\d", text)),
        is_padded=between != " " and bool(re.search(r"[ \"]", text)),
        has_header=first > 0,
    )


def split_row(text: str, separator: str) -> list[str]:
    """Split one line into its cells."""
    return text.split() if separator == " " else text.split(separator)


def is_numeric_row(text: str) -> bool:
    """Tell whether at least half the cells of a line are numbers."""
    cells = [cell.strip('" ') for cell in re.split(r"[,;\t| ]+", text.strip(" ,;"))]
    return 2 * sum(map(_is_number, cells)) >= len(cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _separator(texts: list[str]) -> str:
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
    if b"\0" in head[:4096]:
        raise RecordingError(f"{path} is not a text file. Name its real format.")
    if b"\n" not in head and len(head) == LONGEST_LINE:
        raise RecordingError(
            f"{path}, line 1: longer than {LONGEST_LINE >> 20} MiB. "
            "This is not a log with one row a line."
        )
    return head
