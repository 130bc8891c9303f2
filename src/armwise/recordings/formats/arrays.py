"""Parquet, NPZ and MAT files.

A damaged file is an error here, never a crash, and nothing in it is ever run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.column_names import split_unit
from armwise.recordings.formats.table import RawTable, table_from_arrays

if TYPE_CHECKING:
    import polars as pl


# MATLAB files, version 5 to 7: numeric arrays only, every length checked.

# Numbers of the MAT-file format, level 5: 116 bytes of text, 8 of offset, version and
# byte order; classes 6 … 15 are double to uint64.
HEADER = 128
COMPRESSED, MATRIX = 15, 14
CHAR = 4
NUMERIC_CLASSES = range(6, 16)
TYPES = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8",
    13: "u8", 16: "u1",
}  # fmt: skip
"""Number of a data type in the file → NumPy's name of it."""

# Judgement: measured signals pack three to one, constant ones a few times more; zeros
# pack a thousand to one.
SMALL, TIGHTEST = 1 << 27, 100
"""Bytes any file may unpack to, and how many times its own size a larger one may."""


def refuse_bomb(path: Path, unpacked: int) -> None:
    """Refuse a file that unpacks to far more than measured signals could."""
    if unpacked > max(SMALL, TIGHTEST * path.stat().st_size):
        raise RecordingError(
            f"{path} unpacks to {unpacked / 2**20:.0f} MiB, over {TIGHTEST} times its "
            "size: no measured log does. Save it again without the empty arrays."
        )


class _DamageError(Exception):
    """The bytes do not say what they should."""


@dataclass(frozen=True, eq=False)
class MatContents:
    """What a MATLAB file holds.

    Attributes:
        arrays: Name → real numeric array.
        objects: Names of cells, structs, objects and sparse matrices.
    """

    arrays: dict[str, np.ndarray]
    objects: tuple[str, ...]


@dataclass(frozen=True)
class _Element:
    kind: int
    data: memoryview


def read_mat_file(path: Path) -> MatContents:
    """Read the numeric arrays of a MATLAB file.

    Raises:
        RecordingError: If it is damaged, or of version 4 or 7.3.
    """
    data = memoryview(path.read_bytes())
    if bytes(data[:10]) == b"MATLAB 7.3" or bytes(data[:4]) == b"\x89HDF":
        raise RecordingError(
            f"{path} is a MATLAB 7.3 (HDF5) file. Save it again with save(…, '-v7')."
        )
    # The writer stores the letters MI as a 16-bit number, so that a reader sees IM if
    # its bytes are the other way round.
    order = {b"IM": "<", b"MI": ">"}.get(bytes(data[126:128]))
    if len(data) < HEADER or order is None:
        raise RecordingError(
            f"{path} is not a readable MAT file of version 5 to 7. Save it again with "
            "save(…, '-v7')."
        )
    try:
        return _contents(data[HEADER:], order, max(SMALL, TIGHTEST * len(data)))
    except (_DamageError, zlib.error, ValueError, UnicodeDecodeError) as problem:
        raise RecordingError(
            f"{path} is not a readable MAT file: it is damaged ({problem})."
        ) from None


def _contents(data: memoryview, order: str, most: int) -> MatContents:
    """Read every array; together they may unpack to `most` bytes."""
    arrays: dict[str, np.ndarray] = {}
    objects: list[str] = []
    for element in _elements(data, order):
        if element.kind == COMPRESSED:
            unpacked = memoryview(_unpacked(element.data, most))
            most -= len(unpacked)
            element = next(_elements(unpacked, order))
        if element.kind != MATRIX:
            continue
        name, value = _matrix(element.data, order)
        if value is not None:
            arrays[name] = value
        elif name:
            objects.append(name)
    return MatContents(arrays, tuple(objects))


def _unpacked(data: memoryview, most: int) -> bytes:
    """Decompress, but no further than a log could need."""
    unpacker = zlib.decompressobj()
    # The limit is given to zlib: checking afterwards would be too late. Zero would
    # mean no limit.
    unpacked = unpacker.decompress(data, max(most, 1))
    if unpacker.unconsumed_tail:
        raise _DamageError("its arrays unpack to far more than a log holds")
    if not unpacker.eof:
        raise _DamageError("a compressed array is cut off")
    return unpacked


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    """Go through tagged elements, each padded to eight bytes."""
    start = 0
    while start + 8 <= len(data):
        tag = np.frombuffer(data[start : start + 8], f"{order}u4")
        kind, size = int(tag[0]), int(tag[1])
        if kind >> 16:  # a small element: its data stand in the tag
            size, kind = kind >> 16, kind & 0xFFFF
            first, after = start + 4, start + 8
        else:
            first = start + 8
            padding = 0 if kind == COMPRESSED else -size % 8
            after = first + size + padding
        if first + size > len(data) or (first == start + 4 and size > 4):
            raise _DamageError(f"an element of {size} bytes is cut off")
        yield _Element(kind, data[first : first + size])
        start = after


def _matrix(data: memoryview, order: str) -> tuple[str, np.ndarray | None]:
    """Return name and values of an array; None for what is not numeric."""
    parts = _elements(data, order)
    flags, shape, name = (_next(parts) for _ in range(3))
    if not flags.data.nbytes:
        raise _DamageError("an array is incomplete")
    kind = int(_numbers(flags, order)[0]) & 0xFF
    dims = [int(x) for x in _numbers(shape, order)]
    label = bytes(name.data).decode("ascii")
    # Text is neither a signal nor an object worth a message.
    if kind == CHAR:
        return "", None
    if kind not in NUMERIC_CLASSES:
        return label, None
    values = _numbers(_next(parts), order)
    # Before reshape, which would take a −1 for "whatever fits".
    if any(size < 0 for size in dims) or prod(dims) != values.size:
        raise _DamageError(f"{label!r} has {values.size} numbers for a shape of {dims}")
    # MATLAB stores columns first.
    return label, values.astype(float).reshape(dims, order="F")


def _next(parts: Iterator[_Element]) -> _Element:
    element = next(parts, None)
    if element is None:
        raise _DamageError("an array is incomplete")
    return element


def _numbers(element: _Element, order: str) -> np.ndarray:
    if element.kind not in TYPES:
        raise _DamageError(f"numbers of the unknown type {element.kind}")
    values = np.frombuffer(element.data, order + TYPES[element.kind])
    return values


# Parquet, NPZ and MAT files as raw tables.


def read_parquet(path: Path) -> RawTable:
    """Read the numeric columns of a Parquet file."""
    import polars as pl

    try:
        lazy = pl.scan_parquet(path)
        width = len(lazy.collect_schema())
        rows = int(lazy.select(pl.len()).collect().item())
        refuse_bomb(path, 8 * rows * width)
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = str(error).splitlines()[0]
        raise RecordingError(
            f"{path} is not a readable Parquet file: {first}"
        ) from None
    return table_of_frame(path, frame)


def table_of_frame(path: Path, frame: pl.DataFrame) -> RawTable:
    """Keep the numeric columns of a frame; units may stand in their headings."""
    import polars as pl

    columns, units = {}, {}
    for series in frame.get_columns():
        name, unit = split_unit(series.name)
        for label, column in _listed(name, series):
            columns[label] = column
        # Text columns are common in logs, and no reason to refuse one.
        if not series.dtype.is_numeric():
            continue
        values = series.cast(pl.Float64).to_numpy()
        columns[name] = np.asarray(values, dtype=float)
        if unit:
            units[name] = unit
    if not columns or frame.height == 0:
        raise RecordingError(f"{path} has no rows of numbers.")
    return RawTable(str(path), columns, units)


LEROBOT = {
    "observation.state": "q",
    "observation.velocity": "qd",
    "observation.effort": "tau",
    "action": "command",
}
"""Lists in the files of LeRobot → the quantity they hold, joint by joint."""


# Judgement: longer lists are images or scans, no joints.
LONGEST_LIST = 128
"""Entries of a list that may be joints'."""


def _listed(name: str, series: pl.Series) -> Iterator[tuple[str, np.ndarray]]:
    """Spell out a column of lists of equal length as one column per entry."""
    import polars as pl

    if isinstance(series.dtype, pl.List):
        lengths = series.list.len().unique()
        is_number = series.dtype.inner.is_numeric()
        fits = lengths.len() == 1 and 1 <= lengths[0] <= LONGEST_LIST
        if not (fits and is_number):
            return
        series = series.list.to_array(lengths[0])
    if not isinstance(series.dtype, pl.Array) or len(series.dtype.shape) != 1:
        return
    if not series.dtype.inner.is_numeric() or series.dtype.shape[0] > LONGEST_LIST:
        return
    block = series.cast(pl.Array(pl.Float64, series.dtype.shape[0])).to_numpy()
    for k in range(block.shape[1]):
        yield f"{LEROBOT.get(name, name)}_{k + 1}", np.ascontiguousarray(block[:, k])


def read_npz(path: Path) -> RawTable:
    """Read the arrays of an NPZ file; pickled objects are never loaded."""
    arrays: dict[str, np.ndarray] = {}
    try:
        # np.load leaves a file it opened itself open when it is no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            refuse_bomb(path, sum(one.file_size for one in archive.zip.infolist()))
            for name in archive.files:
                arrays[name] = archive[name]
    except RecordingError:
        raise
    except Exception as error:  # zipfile and NumPy raise a dozen kinds
        if "pickle" in str(error).lower():
            raise RecordingError(
                f"{path} holds pickled objects, which are never loaded (they can run "
                "code). Save plain numeric arrays with numpy.savez."
            ) from None
        raise RecordingError(f"{path} is not a readable NPZ file: {error}.") from None
    numeric = {k: v for k, v in arrays.items() if v.dtype.kind in "fiub"}
    return _filled(path, table_from_arrays(str(path), numeric))


def read_mat(path: Path) -> RawTable:
    """Read the numeric arrays of a MATLAB file, version 5 to 7."""
    contents = read_mat_file(path)
    table = table_from_arrays(str(path), contents.arrays)
    if contents.objects and not table.columns:
        raise RecordingError(
            f"{path} holds only cells, structs or objects "
            f"({', '.join(contents.objects)}). "
            "Save plain numeric arrays: save(file, 't', 'q', 'tau', '-v7')."
        )
    return _filled(path, replace(table, objects=contents.objects))


def _filled(path: Path, table: RawTable) -> RawTable:
    if table.rows < 2:
        raise RecordingError(
            f"{path} holds no signals, only single numbers or nothing."
        )
    return table
