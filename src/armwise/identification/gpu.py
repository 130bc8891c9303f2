"""GPU accumulator: inner products of the regressor's columns, rows never stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.programs import GramSums, Memory, device
from armwise.recordings import Samples
from armwise.regression import Accumulator, Columns, factor_of_gram

if TYPE_CHECKING:
    from jaxtyping import Float

_PLAIN_ROWS = "grouped_rows"
"""Rows whose Coulomb columns are sign(q̇) of the very sample."""

# Four signals of seven joints in float64 are 0.9 GB.
CHUNK = 4_000_000
"""Samples on the GPU at a time: under a gigabyte of motion and torque."""


class GpuAccumulator:
    """Sums YᵀY of every joint's columns and torque on the GPU.

    Args:
        columns: What explains the torque; only what the traced regressor holds.
    """

    def __init__(self, columns: Columns) -> None:
        if columns.friction:
            raise ArgumentError(
                "Further friction terms are accumulated on the CPU only."
            )
        self.columns = columns
        self._widths = [support.size + 1 for support in columns.support]
        self._kinds: dict[str, tuple[GramSums, Memory]] = {}
        # Compiled here, so that a missing GPU is refused before data are read.
        self._kind(_PLAIN_ROWS)
        self.samples = 0

    def add(self, data: Samples | Sequence[Samples]) -> None:
        """Add samples, a chunk at a time."""
        for run in [data] if isinstance(data, Samples) else data:
            self.columns.check(run)
            kind, signals = self.columns.signals(run)
            trust = self.columns.trust(run, signals[4:])
            # Trust travels as one more signal: it multiplies the rows on the chip.
            signals += [] if trust is None else [trust]
            for start in range(0, len(run), CHUNK):
                part = slice(start, start + CHUNK)
                rows = np.concatenate([x[part] for x in signals], axis=1).T
                self.add_resident(device().upload(rows), rows.shape[1], kind)

    def add_resident(
        self, memory: Memory, samples: int, kind: str = _PLAIN_ROWS
    ) -> None:
        """Add samples that are on the GPU.

        Args:
            memory: q, q̇, q̈, τ, one joint after another; where friction's direction
                is given, that and the trust in every joint as well.
            samples: How many samples.
            kind: "grouped_rows", or "directed_rows" with the direction given.
        """
        gram, sums = self._kind(kind)
        gram.add(sums, memory, samples)
        self.samples += samples

    def _kind(self, name: str) -> tuple[GramSums, Memory]:
        if name not in self._kinds:
            program = self.columns.dynamics.program(name)
            gram = GramSums(program, self._widths, weighted=name != _PLAIN_ROWS)
            self._kinds[name] = gram, gram.empty()
        return self._kinds[name]

    def information(self) -> list[Float[np.ndarray, "width width"]]:
        """Return YᵀY of every joint."""
        kinds = [gram.matrices(sums) for gram, sums in self._kinds.values()]
        return [np.sum(matrices, axis=0)[0] for matrices in zip(*kinds, strict=True)]

    def result(self) -> Accumulator:
        """Return the accumulator, as if it had been filled on the CPU."""
        # Normal equations cost half of the digits, which torque noise rarely needs; in
        # exchange no column is written to memory.
        factors = [factor_of_gram(gram) for gram in self.information()]
        return Accumulator(self.columns, float(self.samples), factors)
