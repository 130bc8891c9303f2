"""Growing arrays of what was sampled, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

_BLOCK = 128
"""Rows that are turned into columns together, while they are in cache."""


class Log:
    """Time stamps and the rows (batch, width) that go with them, kept as columns.

    Attributes:
        unit: Unit of the values.
    """

    def __init__(self, batch: int, width: int, unit: str) -> None:
        self.unit = unit
        self._block = np.empty((_BLOCK, batch, width))
        self._held = 0
        self._time = np.empty(0)
        self._columns = np.empty((batch, width, 0))
        self._stored = 0

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all; more may still come."""
        more = rows - self._time.size
        if more > 0:
            self._time = np.concatenate([self._time, np.empty(more)])
            columns = np.empty((*self._columns.shape[:2], rows))
            columns[:, :, : self._stored] = self._columns[:, :, : self._stored]
            self._columns = columns

    def append(self, time: float, row: Float[np.ndarray, "batch width"]) -> None:
        """Add one row, copied."""
        if self._held == _BLOCK:
            self._store()
        total = self._stored + self._held
        if total == self._time.size:
            self.reserve(2 * total + _BLOCK)
        self._time[total] = time
        self._block[self._held] = row
        self._held += 1

    def _store(self) -> None:
        end = self._stored + self._held
        rows = self._block[: self._held]
        self._columns[:, :, self._stored : end] = rows.transpose(1, 2, 0)
        self._stored, self._held = end, 0

    def __len__(self) -> int:
        return self._stored + self._held

    @property
    def time(self) -> Float[np.ndarray, " samples"]:
        """When each row was taken in [s]."""
        return self._time[: len(self)]

    @property
    def columns(self) -> Float[np.ndarray, "batch width samples"]:
        """What was sampled, every signal contiguous in time."""
        self._store()
        return self._columns[:, :, : self._stored]
