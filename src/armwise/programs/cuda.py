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


# Gram matrices of a program's rows on a GPU, without storing the rows.
#
# A tile of samples is computed into shared memory, one sample a thread, and every
# thread then adds one 4×4 patch of one block's Gram matrix over the tile, in registers.
# The rows never leave the multiprocessor.

LARGEST_TILE = 96
"""Samples a block of threads holds in shared memory at a time, if they fit."""

SHARED_BYTES = 227 * 1024
"""Shared memory a block may have on Hopper; smaller chips refuse, with a message."""


class Patches:
    """How the Gram matrices of several blocks of columns are cut into 4×4 patches.

    Args:
        widths: Columns of each block.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        self.widths = tuple(widths)
        # Judgement: in 4×4 patches a thread reads 8 numbers from shared memory for 16
        # products; larger ones would need too many registers. Blocks are padded to
        # multiples of 4.
        across = [-(-width // 4) for width in widths]
        self.starts = [4 * sum(across[:k]) for k in range(len(across))]
        self.padded = 4 * sum(across)
        self.corners = [
            (start + 4 * a, start + 4 * b)
            for start, blocks in zip(self.starts, across, strict=True)
            for a in range(blocks)
            # The upper triangle only: a Gram matrix is symmetric.
            for b in range(a, blocks)
        ]
        self.threads = max(LARGEST_TILE, -(-len(self.corners) // 32) * 32)
        # A thread for each patch, in whole warps, and at least one for each sample.
        fitting = SHARED_BYTES // (8 * (self.padded + 2))
        # Multiples of eight; at least eight even if that does not fit, for then the
        # launch fails with a message that says so.
        self.tile = max(8, min(LARGEST_TILE, 8 * (fitting // 8)))

    @property
    def stride(self) -> int:
        """Numbers a sample takes in shared memory; two more, against bank conflicts."""
        return self.padded + 2

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block in bytes."""
        return 8 * self.tile * self.stride

    @property
    def column_indices(self) -> list[int]:
        """Where every column stands in a sample's padded row."""
        pairs = zip(self.starts, self.widths, strict=True)
        return [start + k for start, width in pairs for k in range(width)]

    def entry_indices(self, block: int) -> np.ndarray:
        """Where each entry of a block's Gram matrix stands among all patches' entries.

        Returns:
            A symmetric (width, width) matrix of whole numbers.
        """
        first, width = self.starts[block], self.widths[block]
        number = {corner: k for k, corner in enumerate(self.corners)}
        indices = np.empty((width, width), dtype=int)
        for r in range(width):
            for c in range(r, width):
                corner = (first + r - r % 4, first + c - c % 4)
                index = 16 * number[corner] + 4 * (r % 4) + c % 4
                indices[r, c] = indices[c, r] = index
        return indices


class GramSums:
    """Sums rowᵀ row over samples, block by block of the row.

    Args:
        program: Its outputs' non-zeros are the row, in order.
        widths: How many of them belong to each block.
        weighted: Whether one more input for each block multiplies its columns.
    """

    def __init__(
        self, program: Program, widths: Sequence[int], weighted: bool = False
    ) -> None:
        self.patches = Patches(widths)
        self._name = program.name
        self._device = device()
        self._module = self._device.compile(
            gram_source(program, self.patches, weighted)
        )
        # Programs without uniform inputs still take the argument.
        self._nothing = self._device.upload(np.zeros(1))

    def empty(self, groups: int = 1) -> Memory:
        """Reserve sums of so many groups, all zero."""
        memory = self._device.empty(self.group_bytes * groups)
        self._device.clear(memory)
        return memory

    @property
    def group_bytes(self) -> int:
        """Memory of the sums of one group in bytes."""
        # Sixteen doubles for every thread, those without a patch included.
        return 8 * 16 * self.patches.threads

    def add(self, sums: Memory, samples: Memory, count: int) -> None:
        """Add samples that are on the GPU: inputs × samples, one input after another.

        Args:
            sums: Of one group.
            samples: The inputs of all samples.
            count: How many samples.
        """
        self._module.launch(
            f"{self._name}_gram",
            # One block for each multiprocessor: each walks over many tiles, so that few
            # partial sums end in atomic additions.
            self._device.multiprocessors,
            self.patches.threads,
            [count, samples, self._nothing, sums],
            self.patches.shared_bytes,
        )

    def add_runs(
        self, sums: Memory, samples: Memory, runs: int, length: int, group: int
    ) -> None:
        """Add many runs at once, each in groups of its samples.

        Args:
            sums: Of all groups: the runs' one after another.
            samples: inputs × length × runs.
            runs: How many runs.
            length: Samples of a run.
            group: Samples of a group.
        """
        groups = -(-length // group)
        self._module.launch(
            f"{self._name}_runs",
            runs * groups,
            self.patches.threads,
            [runs, length, group, samples, self._nothing, sums],
            self.patches.shared_bytes,
        )

    def matrices(
        self, sums: Memory, groups: int = 1
    ) -> list[Float[np.ndarray, "groups width width"]]:
        """Return the Gram matrix of every block."""
        self._device.wait()
        flat = self._device.download(sums, (groups, 16 * self.patches.threads))
        blocks = range(len(self.patches.widths))
        return [flat[:, self.patches.entry_indices(block)] for block in blocks]


def gram_source(program: Program, patches: Patches, weighted: bool = False) -> str:
    """Return CUDA C of `NAME_gram`, all samples in one sum, and of `NAME_runs`."""
    inputs = varying_size(program)
    threads, tile, stride = patches.threads, patches.tile, patches.stride
    return fill(
        _TEMPLATES / "gram.cu.in",
        PRELUDE=PRELUDE,
        CORE=device_core(program, patches.column_indices),
        NAME=program.name,
        FIRST=_list([a for a, _ in patches.corners], threads),
        SECOND=_list([b for _, b in patches.corners], threads),
        THREADS=threads,
        TILE=tile,
        STRIDE=stride,
        TILE_SIZE=tile * stride,
        INPUTS=inputs,
        INPUT_SIZE=max(1, inputs),
        WEIGH=_weigh(patches, inputs) if weighted else "",
        PREPARE=prepare_uniforms(program),
    )


def _weigh(patches: Patches, inputs: int) -> str:
    """C that multiplies every block's columns by its weight, read after the inputs."""
    lines = []
    pairs = zip(patches.starts, patches.widths, strict=True)
    for block, (start, width) in enumerate(pairs):
        weight = f"in[{inputs + block} * step]"
        loop = f"for (int k = {start}; k < {start + width}; k++) row[k] *= weight;"
        lines.append(f"    {{ const double weight = {weight}; {loop} }}")
    return "\n" + "\n".join(lines)


def _list(values: Sequence[int], size: int) -> str:
    # Threads beyond the last patch are marked −1 and only help to fill the tile.
    return ", ".join(map(str, [*values, *[-1] * (size - len(values))]))
