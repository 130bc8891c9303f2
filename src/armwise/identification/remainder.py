"""What a fit leaves over of further columns, stretch by stretch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.sampled_rows import WhitenedRows
from armwise.regression import STRETCHES, torque_rate

if TYPE_CHECKING:
    from jaxtyping import Float


def orthonormal_fit(
    rows: WhitenedRows, step: int
) -> tuple[Float[np.ndarray, "samples dof rank"], Float[np.ndarray, "base+1 rank"]]:
    """Orthonormal columns of all that was fitted, the lag last, and their root."""
    fitted = rows.regressor[:, ::step].transpose(1, 0, 2)
    late = np.zeros((*fitted.shape[:2], 1))
    if rows.problem.columns.has_lags:
        rate = np.vstack([torque_rate(run)[index] for run, index in rows.samples])
        late = (-rate * rows.trust / rows.std)[::step, :, None]
    flat = np.concatenate([fitted, late], axis=2).reshape(-1, fitted.shape[2] + 1)
    gram = flat.T @ flat
    size = np.sqrt(np.diag(gram))
    scale = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    # Half the digits are lost in the products: below that a direction is rounding.
    is_there = values > 1e-10 * max(values[-1], 1e-300)
    root = vectors[:, is_there] / np.sqrt(values[is_there]) / scale[:, None]
    return (flat @ root).reshape(*fitted.shape[:2], -1), root


@dataclass(frozen=True, eq=False)
class Remainder:
    """What some columns leave over of others, stretch by stretch; the torque is last.

    Attributes:
        values: The columns before any was taken out, one below another.
        edges: Rows at which stretches begin, and the end.
        squares: Squared size of what is left of every column.
        scores: Its product with what is left of the torque.
        taken: Columns taken out, as what those before them left, and the fraction of
            each that was in every column.
    """

    values: Float[np.ndarray, "columns rows"]
    edges: np.ndarray
    squares: Float[np.ndarray, "stretches columns"]
    scores: Float[np.ndarray, "stretches columns"]
    taken: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    @classmethod
    def of(cls, values: np.ndarray, edges: np.ndarray) -> Remainder:
        """Of columns of which nothing was taken out yet."""
        parts = [values[:, a:b] for a, b in pairwise(edges.tolist())]
        squares = np.stack([np.einsum("kr,kr->k", part, part) for part in parts])
        return cls(values, edges, squares, _by_stretch(values, edges, values[-1]))

    def column(self, k: int) -> Float[np.ndarray, " rows"]:
        """What is left of a column."""
        value = self.values[k]
        for one, fraction in self.taken:
            value = value - fraction[k] * one
        return value

    def without(self, k: int) -> Remainder:
        """What is left once a column was taken out as well."""
        own = self.column(k)
        products = _by_stretch(self.values, self.edges, own)
        for one, fraction in self.taken:
            shared = _by_stretch(one[None], self.edges, own)
            products = products - shared * fraction
        total = products.sum(axis=0)
        fraction = total / total[k]
        size, torque = products[:, k, None], products[:, -1, None]
        crossed = fraction * torque + fraction[-1] * products
        squares = self.squares - 2.0 * fraction * products + fraction**2 * size
        return replace(
            self,
            # Of a column that is wholly explained rounding leaves less than nothing.
            squares=np.maximum(squares, 0.0),
            scores=self.scores - crossed + fraction * fraction[-1] * size,
            taken=(*self.taken, (own, fraction)),
        )


def _by_stretch(
    values: Float[np.ndarray, "columns rows"],
    edges: np.ndarray,
    column: Float[np.ndarray, " rows"],
) -> Float[np.ndarray, "stretches columns"]:
    """Products of columns with one, stretch by stretch."""
    spans = pairwise(edges.tolist())
    return np.stack([values[:, a:b] @ column[a:b] for a, b in spans])


def own_coefficients(
    squares: Float[np.ndarray, "stretches columns"],
    scores: Float[np.ndarray, "stretches columns"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each column's own coefficient, its jackknife, and whether it is one at all."""
    total = squares.sum(axis=0)
    is_known = total > 0.0
    power = np.where(is_known, total, 1.0)
    value = np.where(is_known, scores.sum(axis=0) / power, 0.0)
    # As in `jackknife_covariance`, of one unknown; 0.95 there and here.
    moves = (scores - squares * value) / (power - 0.95 * squares)
    std = np.sqrt(np.sum(moves**2, axis=0) * (STRETCHES - 1) / STRETCHES)
    return value, std, is_known
