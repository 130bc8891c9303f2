"""A part: all that a fleet's estimates need of one piece of a log."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
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
