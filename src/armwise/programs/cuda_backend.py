"""Run a program on a GPU, one sample a thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.programs.cuda_driver import device
from armwise.programs.cuda_source import elementwise_source
from armwise.programs.kernel import scatter_entries
from armwise.programs.program import Program

CHUNK = 1_000_000
"""Samples on the GPU at a time."""

_THREADS = 128


class CudaRunner:
    """Copies samples to the GPU, runs the program there, and copies results back."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._device = device()
        self._module = self._device.compile(elementwise_source(program))
        self._stored = sum(len(item.nonzero) for item in program.outputs)

    def __call__(
        self,
        inputs: Sequence[np.ndarray],
        uniforms: Sequence[np.ndarray],
        out: Sequence[np.ndarray],
        layouts: list[int],
    ) -> int:
        """Fill `out`; return −1, or the first sample that is not finite."""
        given = self._device.upload(np.concatenate([np.zeros(0), *uniforms, [0.0]]))
        samples = inputs[0].shape[0]
        for start in range(0, samples, CHUNK):
            rows = slice(start, min(start + CHUNK, samples))
            block = np.concatenate([a[rows] for a in inputs], axis=1)
            finite = np.isfinite(block).all(axis=1)
            if not finite.all():
                return start + int(np.argmin(finite))
            count = len(block)
            results = self._device.empty(8 * self._stored * count)
            self._module.launch(
                self._program.name,
                -(-count // _THREADS),
                _THREADS,
                [count, self._device.upload(block), given, results],
            )
            self._device.wait()
            entries = self._device.download(results, (self._stored, count))
            scatter_entries(self._program, list(entries), out, layouts, rows)
        return -1
