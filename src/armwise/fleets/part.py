"""A part: all that a fleet's estimates need of one piece of a log."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.accumulator import triangle
from armwise.identification.columns import Block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Part:
    """R factors of [columns, torque], stretch by stretch.

    Stretches stay apart because their scatter tells how far to trust the sum.

    Attributes:
        samples: Samples of every stretch.
        trusted: How many of them each joint is learnt from: not those in which its
            friction reverses.
        factors: For each joint an upper triangular matrix per stretch, over its columns
            and its torque.
        torque: Sum of every joint's torque in [N m], per stretch.
        rows: Rows of the log that went in.
    """

    samples: Float[np.ndarray, " stretches"]
    trusted: Float[np.ndarray, "stretches joints"]
    factors: tuple[Float[np.ndarray, "stretches width width"], ...]
    torque: Float[np.ndarray, "stretches joints"]
    rows: int

    def to_bytes(self) -> bytes:
        """Write as an NPZ archive: numbers only."""
        arrays = {f"joint_{j}": block for j, block in enumerate(self.factors)}
        for name in ("samples", "trusted", "torque"):
            arrays[name] = getattr(self, name)
        archive = io.BytesIO()
        np.savez(archive, allow_pickle=False, rows=np.array(self.rows), **arrays)
        return archive.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Part:
        """Read what `to_bytes` wrote; pickled objects are never loaded."""
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            trusted, torque = archive["trusted"], archive["torque"]
            joints = range(torque.shape[1])
            factors = tuple(archive[f"joint_{j}"] for j in joints)
            rows = int(archive["rows"])
            return cls(archive["samples"], trusted, factors, torque, rows)


def sum_up(blocks: Iterable[Block], samples: int, stretches: int, rows: int) -> Part:
    """Turn the columns of a piece into factors, one per stretch of equal length.

    Args:
        blocks: The columns, in the order of time.
        samples: How many samples the blocks hold.
        stretches: How many stretches to keep apart.
        rows: Rows of the log that went in.
    """
    edges = np.linspace(0, samples, min(stretches, samples) + 1).astype(int)
    sums: list[list[np.ndarray]] = [[] for _ in edges[1:]]
    trusted = torque = np.zeros(0)
    for block in blocks:
        if not torque.size:
            trusted, torque = np.zeros((2, len(sums), len(block.joints)))
        for k, columns, trust in _split(block, edges):
            known = sums[k] or [np.zeros((0, len(matrix))) for matrix in columns]
            pairs = zip(known, columns, strict=True)
            sums[k] = [triangle(np.vstack([R, matrix.T])) for R, matrix in pairs]
            torque[k] += [matrix[-1].sum() for matrix in columns]
            trusted[k] += trust.sum(axis=0)
    factors = tuple(np.stack(joint) for joint in zip(*sums, strict=True))
    return Part(np.diff(edges).astype(float), trusted, factors, torque, rows)


def _split(
    block: Block, edges: np.ndarray
) -> Iterator[tuple[int, list[np.ndarray], np.ndarray]]:
    """Cut a block where stretches end: (stretch, columns of each joint, trust)."""
    begin, end = block.rows.start, block.rows.stop
    first = int(np.searchsorted(edges, begin, side="right")) - 1
    last = int(np.searchsorted(edges, end, side="left"))
    for k in range(first, last):
        part = slice(max(edges[k] - begin, 0), min(edges[k + 1], end) - begin)
        shape = (part.stop - part.start, len(block.joints))
        trust = np.ones(shape) if block.trust is None else block.trust[part]
        pairs = zip(block.joints, trust.T, strict=True)
        yield k, [matrix[:, part] * weight for matrix, weight in pairs], trust
