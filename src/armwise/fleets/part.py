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
        factors: For each joint an upper triangular matrix per stretch, over its columns
            and its torque.
        torque: Sum of every joint's torque in [N m], per stretch.
        rows: Rows of the log that went in.
    """

    samples: Float[np.ndarray, " stretches"]
    factors: tuple[Float[np.ndarray, "stretches width width"], ...]
    torque: Float[np.ndarray, "stretches joints"]
    rows: int

    def to_bytes(self) -> bytes:
        """Write as an NPZ archive: numbers only."""
        arrays = {f"joint_{j}": block for j, block in enumerate(self.factors)}
        arrays |= {"samples": self.samples, "torque": self.torque}
        archive = io.BytesIO()
        np.savez(archive, allow_pickle=False, rows=np.array(self.rows), **arrays)
        return archive.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Part:
        """Read what `to_bytes` wrote; pickled objects are never loaded."""
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            torque = archive["torque"]
            joints = range(torque.shape[1])
            factors = tuple(archive[f"joint_{j}"] for j in joints)
            return cls(archive["samples"], factors, torque, int(archive["rows"]))


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
    torque = np.zeros(0)
    for block in blocks:
        if not torque.size:
            torque = np.zeros((len(sums), len(block.joints)))
        for k, columns in _split(block, edges):
            known = sums[k] or [np.zeros((0, len(matrix))) for matrix in columns]
            pairs = zip(known, columns, strict=True)
            sums[k] = [triangle(np.vstack([R, matrix.T])) for R, matrix in pairs]
            torque[k] += [matrix[-1].sum() for matrix in columns]
    factors = tuple(np.stack(joint) for joint in zip(*sums, strict=True))
    return Part(np.diff(edges).astype(float), factors, torque, rows)


def _split(
    block: Block, edges: np.ndarray
) -> Iterator[tuple[int, list[Float[np.ndarray, "columns samples"]]]]:
    """Cut a block where stretches end: (stretch, columns of each joint)."""
    begin, end = block.rows.start, block.rows.stop
    first = int(np.searchsorted(edges, begin, side="right")) - 1
    last = int(np.searchsorted(edges, end, side="left"))
    for k in range(first, last):
        part = slice(max(edges[k] - begin, 0), min(edges[k + 1], end) - begin)
        yield k, [matrix[:, part] for matrix in block.joints]
