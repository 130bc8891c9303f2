"""Least squares summed block by block: one triangular factor holds all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


class Gram:
    """Sums AᵀA over blocks, and factors it.

    Columns are scaled to one first, and a trace of noise (1e-13) is added to their
    squares: what is smaller than 3e-7 of a column cannot be told from nothing.
    """

    def __init__(self) -> None:
        self._sum: np.ndarray | float = 0.0

    def add(self, block: Float[np.ndarray, "samples dof width"]) -> None:
        """Add the rows of a block."""
        rows = block.reshape(-1, block.shape[-1])
        self._sum = self._sum + rows.T @ rows

    def factor(self) -> Float[np.ndarray, "width width"]:
        """Upper triangular R with RᵀR = AᵀA."""
        gram = np.asarray(self._sum)
        size = np.sqrt(np.diag(gram))
        size[size == 0.0] = 1.0
        scaled = gram / np.outer(size, size)
        scaled[np.diag_indices_from(scaled)] += 1e-13
        R: np.ndarray = np.linalg.cholesky(scaled).T * size
        return R


def solve_linear(factor: np.ndarray, count: int) -> Float[np.ndarray, " count"]:
    """Best linear unknowns from an R factor; what data do not show stays zero."""
    left, right = factor[:count, :count], factor[:count, -1]
    size = np.linalg.norm(left, axis=0)
    size[size == 0.0] = 1.0
    scaled = np.linalg.lstsq(left / size, right, rcond=1e-10)[0]
    return np.asarray(scaled / size)
