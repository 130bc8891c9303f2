"""Raw tables: columns of numbers as a file holds them, before they have a meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns of one file, all of one length.

    Attributes:
        source: The file, for messages.
        columns: Name → values.
        units: Name → unit, where the file says.
        scalars: Name → single numbers the file holds beside the columns.
        skipped_rows: Bad rows left out on request.
        objects: Names of things in the file that are no numbers.
        notes: What the reader did that the user should know.
        is_sparse: Whether columns hold NaN in rows that belong to others.
    """

    source: str
    columns: dict[str, Float[np.ndarray, " rows"]]
    units: dict[str, str] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    skipped_rows: int = 0
    objects: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_sparse: bool = False

    @property
    def rows(self) -> int:
        """Number of rows."""
        return next((c.size for c in self.columns.values()), 0)

    def __getitem__(self, name: str) -> Float[np.ndarray, " rows"]:
        if name in self.objects:
            raise RecordingError(
                f'{self.source}: "{name}" is a cell, struct or object, not an array of '
                "numbers. Save it as a plain numeric array."
            )
        if name not in self.columns:
            raise RecordingError(
                f'{self.source} has no column "{name}". Found: {self.found()}.'
            )
        return self.columns[name]

    def found(self) -> str:
        """List the columns, shortened if there are many."""
        names = list(self.columns)
        # Judgement: thirty names are as many as one reads in a message.
        return ", ".join(names[:30]) + (", …" if len(names) > 30 else "")

    def group(self, name: str) -> list[str]:
        """Return the columns a matrix of this name was split into, or the one."""
        split: list[str] = []
        while f"{name}_{len(split) + 1}" in self.columns:
            split.append(f"{name}_{len(split) + 1}")
        if split:
            return split
        return [name] if name in self.columns else []


def table_from_arrays(source: str, arrays: dict[str, np.ndarray]) -> RawTable:
    """Split matrices into columns, `q` into `q_1`, `q_2` …; longer side is time.

    Single numbers are kept apart. Arrays of another length than the longest are left
    out: they are not signals.
    """
    scalars = {k: float(v.ravel()[0]) for k, v in arrays.items() if v.size == 1}
    signals = {k: v for k, v in arrays.items() if v.size > 1}
    # The longest side of all is time: logs have more samples than joints.
    rows = max((max(v.shape) for v in signals.values()), default=0)
    columns: dict[str, np.ndarray] = {}
    for name, value in signals.items():
        matrix = np.asarray(value, dtype=float)
        if matrix.ndim > 2 or rows not in matrix.shape:
            continue
        # A square matrix is taken as samples first.
        matrix = matrix.reshape(rows, -1) if matrix.shape[0] == rows else matrix.T
        if matrix.shape[1] == 1:
            columns[name] = np.ascontiguousarray(matrix[:, 0])
            continue
        for j in range(matrix.shape[1]):
            columns[f"{name}_{j + 1}"] = np.ascontiguousarray(matrix[:, j])
    return RawTable(source, columns, scalars=scalars)
