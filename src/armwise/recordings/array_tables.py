"""Tables from Parquet, NPZ and MAT files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.mat_file import read_mat_file
from armwise.recordings.tables import Table, table_from_arrays
from armwise.recordings.units import split_unit

if TYPE_CHECKING:
    import polars as pl


def read_parquet(path: Path) -> Table:
    """Read the numeric columns of a Parquet file."""
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = str(error).splitlines()[0]
        raise RecordingError(
            f"{path} is not a readable Parquet file: {first}"
        ) from None
    return table_of_frame(path, frame)


def table_of_frame(path: Path, frame: pl.DataFrame) -> Table:
    """Keep the numeric columns of a frame; units may stand in their headings."""
    import polars as pl

    columns, units = {}, {}
    for series in frame.get_columns():
        name, unit = split_unit(series.name)
        if not series.dtype.is_numeric():
            continue
        values = series.cast(pl.Float64).to_numpy()
        columns[name] = np.asarray(values, dtype=float)
        if unit:
            units[name] = unit
    if not columns or frame.height == 0:
        raise RecordingError(f"{path} has no rows of numbers.")
    return Table(str(path), columns, units)


def read_npz(path: Path) -> Table:
    """Read the arrays of an NPZ file; pickled objects are never loaded."""
    arrays: dict[str, np.ndarray] = {}
    try:
        # np.load leaves a file it opened itself open when it is no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                arrays[name] = archive[name]
    except Exception as error:  # zipfile and NumPy raise a dozen kinds
        if "pickle" in str(error).lower():
            raise RecordingError(
                f"{path} holds pickled objects, which are never loaded (they can run "
                "code). Save plain numeric arrays with numpy.savez."
            ) from None
        raise RecordingError(f"{path} is not a readable NPZ file: {error}.") from None
    numeric = {k: v for k, v in arrays.items() if v.dtype.kind in "fiub"}
    return _filled(path, table_from_arrays(str(path), numeric))


def read_mat(path: Path) -> Table:
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


def _filled(path: Path, table: Table) -> Table:
    if table.rows < 2:
        raise RecordingError(
            f"{path} holds no signals, only single numbers or nothing."
        )
    return table
