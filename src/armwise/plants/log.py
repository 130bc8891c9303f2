"""Growing arrays of what was sampled, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

_FIRST = 1024


class Log:
    """Time stamps and rows (batch, width) that go with them.

    Attributes:
        unit: Unit of the values.
    """

    def __init__(self, batch: int, width: int, unit: str) -> None:
        self.unit = unit
        self._time = np.empty(_FIRST)
        self._rows = np.empty((_FIRST, batch, width))
        self._count = 0

    def append(self, time: float, row: Float[np.ndarray, "batch width"]) -> None:
        """Add one row, copied."""
        k = self._count
        if k == self._time.size:
            self._grow()
        self._time[k] = time
        self._rows[k] = row
        self._count = k + 1

    def _grow(self) -> None:
        more = self._time.size
        self._time = np.concatenate([self._time, np.empty(more)])
        empty = np.empty((more, *self._rows.shape[1:]))
        self._rows = np.concatenate([self._rows, empty])

    def __len__(self) -> int:
        return self._count

    @property
    def time(self) -> Float[np.ndarray, " samples"]:
        """When each row was taken in [s]."""
        return self._time[: self._count]

    @property
    def rows(self) -> Float[np.ndarray, "samples batch width"]:
        """What was sampled."""
        return self._rows[: self._count]
