"""Accumulate on a GPU: the regressor is made, used and forgotten on the chip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.identification.accumulator import Accumulator, triangle
from armwise.identification.columns import Columns
from armwise.programs.cuda_driver import Memory, device
from armwise.programs.cuda_source import gram_shared_bytes, gram_source, gram_threads
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

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
        program = columns.dynamics.program("grouped_rows")
        self._name = f"{program.name}_gram"
        self._device = device()
        self._module = self._device.compile(gram_source(program, self._widths))
        self._threads = gram_threads(self._widths)
        self._nothing = self._device.upload(np.zeros(1))
        self._gram = self._device.empty(8 * 16 * self._threads)
        self._device.clear(self._gram)
        self.samples = 0

    def add(self, data: Samples | Sequence[Samples]) -> None:
        """Add samples, a chunk at a time."""
        for run in [data] if isinstance(data, Samples) else data:
            self.columns.check(run)
            for start in range(0, len(run), CHUNK):
                part = slice(start, start + CHUNK)
                signals = (run.q[part], run.qd[part], run.qdd[part], run.tau[part])
                rows = np.concatenate(signals, axis=1).T
                self.add_resident(self._device.upload(rows), rows.shape[1])

    def add_resident(self, memory: Memory, samples: int) -> None:
        """Add samples that are on the GPU: q, q̇, q̈, τ one joint after another."""
        self._module.launch(
            self._name,
            self._device.multiprocessors,
            self._threads,
            [samples, memory, self._nothing, self._gram],
            gram_shared_bytes(self._widths),
        )
        self.samples += samples

    def information(self) -> list[Float[np.ndarray, "width width"]]:
        """Return YᵀY of every joint."""
        self._device.wait()
        patches = self._device.download(self._gram, (self._threads, 4, 4))
        found, place = [], 0
        for width in self._widths:
            blocks = -(-width // 4)
            full = np.zeros((4 * blocks, 4 * blocks))
            for a in range(blocks):
                for b in range(a, blocks):
                    full[4 * a : 4 * a + 4, 4 * b : 4 * b + 4] = patches[place]
                    full[4 * b : 4 * b + 4, 4 * a : 4 * a + 4] = patches[place].T
                    place += 1
            found.append(full[:width, :width])
        return found

    def result(self) -> Accumulator:
        """Return the accumulator, as if it had been filled on the CPU."""
        factors = []
        for gram in self.information():
            size = np.sqrt(np.maximum(np.diag(gram), 1e-300))
            values, vectors = np.linalg.eigh(gram / np.outer(size, size))
            root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
            factors.append(triangle(root * size))
        return Accumulator(self.columns, float(self.samples), factors)
