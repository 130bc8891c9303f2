"""From the samples of a piece to its part: one R factor per joint and stretch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.fleets.part import Part
from armwise.fleets.slips import SlipColumns
from armwise.identification.accumulator import Accumulator, triangle
from armwise.identification.columns import BLOCK, Block, Columns

if TYPE_CHECKING:
    from armwise.recordings import Samples

_LONG = 3 * BLOCK
"""Samples of a stretch from which on Cholesky-QR is faster than Householder's."""


def sum_up(columns: Columns | SlipColumns, samples: Samples, stretches: int) -> Part:
    """Turn samples into factors, one per stretch of equal length.

    Args:
        columns: What explains the torque.
        samples: One piece of a log.
        stretches: How many stretches to keep apart.
    """
    count = min(stretches, len(samples))
    edges = np.linspace(0, len(samples), count + 1).astype(int)
    is_long = len(samples) > _LONG * count
    sums: list[_Stretch] = []
    for block in columns.blocks([samples]):
        for k, part in _split(block, edges):
            if k == len(sums):
                sums.append(_Stretch(columns, part, is_long))
            sums[k].add(part)
    factors = zip(*(one.factors() for one in sums), strict=True)
    return Part(
        samples=np.diff(edges).astype(float),
        trusted=np.array([one.trusted for one in sums]),
        factors=tuple(np.stack(joint) for joint in factors),
        torque=np.array([one.torque for one in sums]),
        rows=samples.preparation.rows_read or len(samples),
    )


def _split(block: Block, edges: np.ndarray) -> Iterator[tuple[int, Block]]:
    """Cut a block where stretches end: (number of the stretch, its share)."""
    begin, end = block.rows.start, block.rows.stop
    first = int(np.searchsorted(edges, begin, side="right")) - 1
    last = int(np.searchsorted(edges, end, side="left"))
    for k in range(first, last):
        part = slice(max(edges[k] - begin, 0), min(edges[k + 1], end) - begin)
        yield (
            k,
            replace(
                block,
                rows=slice(begin + part.start, begin + part.stop),
                joints=tuple(matrix[:, part] for matrix in block.joints),
                trust=None if block.trust is None else block.trust[part],
            ),
        )


class _Stretch:
    """Adds up the blocks of one stretch."""

    def __init__(
        self, columns: Columns | SlipColumns, like: Block, is_long: bool
    ) -> None:
        plain = columns.columns if isinstance(columns, SlipColumns) else columns
        zeros = [np.zeros((len(matrix), len(matrix))) for matrix in like.joints]
        self._sum = Accumulator(plain, factors=zeros)
        self._is_long = is_long
        self.trusted, self.torque = np.zeros((2, len(zeros)))

    def add(self, block: Block) -> None:
        """Add a block; what is not trusted counts for nothing."""
        if block.trust is None:
            self.trusted += block.rows.stop - block.rows.start
        else:
            self.trusted += block.trust.sum(axis=0)
            pairs = zip(block.joints, block.trust.T, strict=True)
            block = replace(block, joints=tuple(m * w for m, w in pairs), trust=None)
        self.torque += [matrix[-1].sum() for matrix in block.joints]
        if self._is_long:
            self._sum.add_block(block)
            return
        pairs = zip(self._sum.factors, block.joints, strict=True)
        self._sum.factors = [triangle(np.vstack([R, m.T])) for R, m in pairs]

    def factors(self) -> list[np.ndarray]:
        """Return the R factor of every joint."""
        self._sum.settle()
        return self._sum.factors
