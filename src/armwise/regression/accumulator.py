"""The accumulator: all that linear estimation needs of a log, in constant memory.

For each joint it keeps the R factor of [columns, torque]. Factors of parts of a log
merge exactly, so logs can be split over time, processes and machines.

A block is added by Cholesky-QR against a running preconditioner: A R⁻¹ has nearly
orthogonal columns, so forming its Gram matrix loses no digits, and nearly all the work
is two matrix products (Yamamoto et al. 2015). The preconditioner is the factor of a few
samples from all over the log; a block that it does not fit is added by Householder
reflections, and the preconditioner renewed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from armwise.regression.columns import BLOCK, Block, Columns
from armwise.regression.signals import Signals

if TYPE_CHECKING:
    from jaxtyping import Float


_FLOOR = 1e-7
"""Smallest pivot of a preconditioner, relative to its column."""

_NARROW = 40
"""Columns below which the general product is faster than the symmetric one."""

_LARGEST_GROWTH = 1e4
"""Squared size of a preconditioned column beyond which a block does not fit."""


@dataclass
class Accumulator:
    """R factors of [columns, torque], one per joint.

    Attributes:
        columns: What the columns are.
        samples: How many samples went in.
        factors: For each joint an upper triangular (k + 1) × (k + 1) matrix over its
            support and its torque.
    """

    columns: Columns
    samples: float = 0.0
    factors: list[Float[np.ndarray, "width width"]] = field(default_factory=list)
    _grams: list[_Gram] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not self.factors:
            sizes = [support.size + 1 for support in self.columns.support]
            self.factors = [np.zeros((size, size)) for size in sizes]

    def add(
        self,
        data: Signals | Sequence[Signals],
        weights: Sequence[np.ndarray] | None = None,
    ) -> Accumulator:
        """Add samples; returns itself.

        Args:
            data: Motion and torque, or several runs of them.
            weights: Per run an array (samples, joints) that multiplies the rows.
        """
        runs = list(data) if isinstance(data, Sequence) else [data]
        for number, run in enumerate(runs):
            weight = None if weights is None else weights[number]
            self._foresee(run, weight)
            for block in self.columns.blocks([run]):
                self.add_block(block, weight)
        self.settle()
        return self

    def _foresee(self, run: Signals, weights: np.ndarray | None) -> None:
        """Precondition with a few samples from all over a run."""
        self._open()
        stride = max(1, -(-len(run) // BLOCK))
        glance = run[::stride]
        scale = None if weights is None else weights[::stride]
        for block in self.columns.blocks([glance]):
            for i, gram in enumerate(self._grams):
                gram.foresee(_weighed(block, i, scale))

    def _open(self) -> None:
        if not self._grams:
            self._grams = [_Gram(factor) for factor in self.factors]

    def add_block(self, block: Block, weights: np.ndarray | None = None) -> None:
        """Add one block, whose memory is used up; `settle` must follow the last."""
        self._open()
        for i, gram in enumerate(self._grams):
            gram.add(_weighed(block, i, weights))
        self.samples += block.rows.stop - block.rows.start

    def settle(self) -> None:
        """Turn what was added into R factors."""
        if self._grams:
            self.factors = [gram.factor() for gram in self._grams]
            self._grams = []

    def merge(self, other: Accumulator) -> Accumulator:
        """Return the accumulator of both logs together."""
        pairs = zip(self.factors, other.factors, strict=True)
        factors = [triangle(np.vstack([a, b])) for a, b in pairs]
        return Accumulator(self.columns, self.samples + other.samples, factors)

    def forget(self, factor: float) -> None:
        """Let what was learnt so far weigh `factor` times as much as new samples."""
        self.settle()
        self.factors = [np.sqrt(factor) * r for r in self.factors]
        self.samples *= factor


def _weighed(
    block: Block, i: int, weights: np.ndarray | None
) -> Float[np.ndarray, "width samples"]:
    """A joint's columns and torque, each sample by its weight and trust."""
    matrix = block.joints[i]
    if weights is not None:
        matrix = matrix * weights[block.rows, i]
    return matrix if block.trust is None else matrix * block.trust[:, i]


class _Gram:
    """Adds blocks to one joint's factor through a preconditioner."""

    def __init__(self, factor: np.ndarray) -> None:
        from scipy.linalg import blas

        self._blas = blas
        self._known = factor
        self._preconditioner = np.zeros((0, 0))
        self._gram = np.zeros(factor.shape, order="F")
        self._renew(factor)

    def foresee(self, matrix: Float[np.ndarray, "width samples"]) -> None:
        """Expect more samples like these."""
        self._known = self.factor()
        self._renew(triangle(np.vstack([self._known, matrix.T])))

    def add(self, matrix: Float[np.ndarray, "width samples"]) -> None:
        """Add samples, by products if the preconditioner fits them."""
        turned = self._blas.dtrmm(1.0, self._preconditioner, matrix.T, side=1)
        if len(matrix) < _NARROW:
            gram = self._blas.dgemm(1.0, turned, turned, 1.0, self._gram, trans_a=1)
        else:
            gram = self._blas.dsyrk(1.0, turned, 1.0, self._gram, trans=1)
        if np.max(np.diag(gram) - np.diag(self._gram)) <= _LARGEST_GROWTH:
            self._gram = gram
            return
        self._known = triangle(np.vstack([self.factor(), matrix.T]))
        self._renew(self._known)

    def _renew(self, factor: np.ndarray) -> None:
        """Precondition with a factor from here on."""
        size = np.linalg.norm(factor, axis=0)
        floor = np.diag(_FLOOR * np.where(size > 0, size, 1.0))
        guarded = triangle(np.vstack([factor, floor]))
        self._preconditioner = np.asfortranarray(np.triu(np.linalg.inv(guarded)))
        self._gram = np.zeros(factor.shape, order="F")

    def factor(self) -> np.ndarray:
        """Return the R factor of all that was added."""
        full = np.triu(self._gram) + np.triu(self._gram, 1).T
        values, vectors = np.linalg.eigh(full)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        added = np.linalg.solve(self._preconditioner.T, root.T).T
        return triangle(np.vstack([self._known, added]))


def triangle(matrix: np.ndarray) -> Float[np.ndarray, "width width"]:
    """Return the upper triangular R of a matrix, square whatever its height."""
    width = matrix.shape[1]
    if matrix.shape[0] < width:
        matrix = np.vstack([matrix, np.zeros((width - matrix.shape[0], width))])
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def accumulate(
    columns: Columns,
    data: Signals | Sequence[Signals],
    weights: Sequence[np.ndarray] | None = None,
) -> Accumulator:
    """Run through samples once and keep what linear estimation needs of them."""
    return Accumulator(columns).add(data, weights)
