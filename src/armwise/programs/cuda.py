"""GPU kernels: a program over many samples, and banded matrices.

A thread runs one sample of a program. A banded matrix, such as a filter, is applied to
many columns at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.programs.c_source import core_source, count_uniform, fill
from armwise.programs.cuda_device import Memory, device
from armwise.programs.kernel import scatter_entries
from armwise.programs.program import Program

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_TEMPLATES = Path(__file__).parent / "templates"

PRELUDE = fill(_TEMPLATES / "prelude.cu.in")
"""What generated cores are written over, on the GPU."""


def elementwise_source(program: Program) -> str:
    """Return CUDA C of `NAME`: non-zeros of each sample, entry by entry (columns).

    Arguments: number of samples, the inputs side by side as rows (samples × inputs),
    the uniform inputs one after another, and the outputs (entries × samples).
    """
    inputs = varying_size(program)
    stored = sum(len(item.nonzero) for item in program.outputs)
    return fill(
        _TEMPLATES / "elementwise.cu.in",
        PRELUDE=PRELUDE,
        CORE=device_core(program),
        NAME=program.name,
        PREPARE=prepare_uniforms(program),
        INPUTS=inputs,
        INPUT_SIZE=max(1, inputs),
        STORED=stored,
        OUTPUT_SIZE=max(1, stored),
    )


def varying_size(program: Program) -> int:
    """Numbers that go into a sample."""
    return sum(item.size for item in program.inputs if not item.is_uniform)


def device_core(program: Program, indices: Sequence[int] | None = None) -> str:
    """The core for the GPU; result k goes to y[indices[k]] if `indices` are given."""
    text = (
        core_source(program)
        .replace("static void", "static __forceinline__ void")
        # On the GPU V is double: there are no lanes to fill.
        .replace("(V){0} + ", "")
    )
    if indices is None:
        return text
    return re.sub(r"\by\[(\d+)\]", lambda match: f"y[{indices[int(match[1])]}]", text)


def prepare_uniforms(program: Program) -> str:
    """Work out, in every thread, what is the same for all samples."""
    sizes = [item.size for item in program.inputs if item.is_uniform]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    pointers = ", ".join(f"given + {start}" for start in starts) or "given"
    return (
        f"  double u[{max(1, count_uniform(program))}];\n"
        f"  const double *const uniform[] = {{{pointers}}};\n"
        f"  prepare_{program.name}(uniform, u);"
    )


CHUNK = 1_000_000
"""Samples on the GPU at a time: a few hundred megabytes even for a full regressor."""

# Four warps. Judgement: straight-line programs need many registers a thread, and larger
# blocks would leave multiprocessors partly empty.
_THREADS = 128
"""Threads of a block: enough warps to hide memory latency, few enough registers."""


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
        # The appended number keeps the array from being empty.
        uniform = self._device.upload(np.concatenate([np.zeros(0), *uniforms, [0.0]]))
        samples = inputs[0].shape[0]
        for start in range(0, samples, CHUNK):
            rows = slice(start, min(start + CHUNK, samples))
            block = np.concatenate([a[rows] for a in inputs], axis=1)
            # Tested before the copy, as the C loop does: one NaN would spread
            # unnoticed.
            finite = np.isfinite(block).all(axis=1)
            if not finite.all():
                return start + int(np.argmin(finite))
            count = len(block)
            results = self._device.empty(8 * self._stored * count)
            self._module.launch(
                self._program.name,
                -(-count // _THREADS),
                _THREADS,
                [count, self._device.upload(block), uniform, results],
            )
            self._device.wait()
            entries = self._device.download(results, (self._stored, count))
            scatter_entries(self._program, list(entries), out, layouts, rows)
        return -1


# Judgement: eight sums stay in registers; neighbouring rows overlap in most of their
# columns.
_ROWS = 8
"""Rows a thread works on at once: each number it reads serves all of them."""


class BandProduct:
    """A banded matrix on the GPU.

    Args:
        first: First column of every row's stretch.
        weights: The stretches.
        size: Number of columns.
    """

    def __init__(
        self,
        first: Int[np.ndarray, " rows"],
        weights: Float[np.ndarray, "rows reach"],
        size: int,
    ) -> None:
        self._device = device()
        self._module = self._device.compile(band_source())
        self.rows, self.size = len(first), size
        starts, blocks = grouped(first, weights, size)
        self._reach = blocks.shape[1]
        self._first = self._device.upload(starts)
        self._weights = self._device.upload(blocks)

    def __call__(self, signals: Memory, count: int, runs: int, out: Memory) -> None:
        """Multiply `count` signals of many runs; all are on the GPU.

        Args:
            signals: count × size × runs.
            count, runs: How many.
            out: Becomes count × rows × runs.
        """
        across = -(-runs // _THREADS)
        groups = -(-self.rows // _ROWS)
        sizes = [runs, self.rows, self.size, self._reach]
        self._module.launch(
            "band",
            across * groups * count,
            _THREADS,
            [*sizes, self._first, self._weights, signals, out],
        )


def band_source() -> str:
    """Return CUDA C of `band`: signals × rows × runs from signals × size × runs."""
    return fill(
        _TEMPLATES / "band.cu.in",
        THREADS=_THREADS,
        LAST_THREAD=_THREADS - 1,
        ROWS=_ROWS,
        LAST_ROW=_ROWS - 1,
    )


def grouped(
    first: Int[np.ndarray, " rows"],
    weights: Float[np.ndarray, "rows reach"],
    size: int,
) -> tuple[Int[np.ndarray, " groups"], Float[np.ndarray, "groups width rows"]]:
    """Put neighbouring rows together, over columns that hold all their stretches."""
    rows, reach = weights.shape
    groups = -(-rows // _ROWS)
    parts = [slice(g * _ROWS, (g + 1) * _ROWS) for g in range(groups)]
    width = reach + max(int(np.ptp(first[part])) for part in parts)
    # Shifted left at the right edge: a group must not read past the last column.
    starts = np.array([min(int(first[p].min()), size - width) for p in parts])
    blocks = np.zeros((groups, width, _ROWS))
    for start, part, block in zip(starts, parts, blocks, strict=True):
        for r, row in enumerate(range(rows)[part]):
            shift = int(first[row] - start)
            block[shift : shift + reach, r] = weights[row]
    return starts, blocks
