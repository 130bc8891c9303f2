"""Gram matrices of a program's rows on a GPU, without storing the rows.

A tile of samples is computed into shared memory, one sample a thread, and every thread
then adds one 4×4 patch of one block's Gram matrix over the tile, in registers. The rows
never leave the multiprocessor.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.programs.c_source import fill
from armwise.programs.cuda import (
    PRELUDE,
    device_core,
    prepare_uniforms,
    varying_size,
)
from armwise.programs.cuda_device import Memory, device
from armwise.programs.program import Program

if TYPE_CHECKING:
    from jaxtyping import Float

_TEMPLATES = Path(__file__).parent / "templates"

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
