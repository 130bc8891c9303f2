"""Which columns of a matrix are independent, taken one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

TOLERANCE = 1e-9
"""A column whose part outside the earlier ones is smaller than this is dependent."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Independent columns, and every column as a combination of them.

    Attributes:
        indices: The independent columns, in the order they were taken.
        matrix: K with columns = independent columns · K.
        vanishing: Columns that are zero altogether.
    """

    indices: tuple[int, ...]
    matrix: Float[np.ndarray, "independent columns"]
    vanishing: tuple[int, ...]


def successive_ranks(
    columns: Float[np.ndarray, "rows columns"],
    order: Sequence[int] | None = None,
) -> Grouping:
    """Take columns in order, keeping each that raises the rank (`izaguirre1992` §6).

    Args:
        columns: The matrix.
        order: In which order to try the columns; as they stand if not given.
    """
    count = columns.shape[1]
    norms = np.linalg.norm(columns, axis=0)
    least = TOLERANCE * float(norms.max(initial=0.0))
    vanishing = [k for k in range(count) if norms[k] <= least]
    basis = np.zeros((columns.shape[0], min(columns.shape)))
    kept: list[int] = []
    for k in range(count) if order is None else order:
        if norms[k] <= least or len(kept) == basis.shape[1]:
            continue
        span = basis[:, : len(kept)]
        left = columns[:, k] / norms[k]
        for _ in range(2):  # twice is enough
            left = left - span @ (span.T @ left)
        size_left = float(np.linalg.norm(left))
        if size_left > TOLERANCE:
            basis[:, len(kept)] = left / size_left
            kept.append(k)
    matrix = np.zeros((len(kept), count))
    if kept:
        span = basis[:, : len(kept)]
        matrix = np.linalg.solve(span.T @ columns[:, kept], span.T @ columns)
        matrix[np.abs(matrix * norms[kept][:, None]) < 1e-10 * norms] = 0.0
        matrix[:, vanishing] = 0.0
        matrix[:, kept] = np.eye(len(kept))
    return Grouping(tuple(kept), matrix, tuple(vanishing))
