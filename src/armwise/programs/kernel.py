"""Kernels: programs over batches of samples, in C, NumPy or CUDA."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.programs.array_backends import BLOCK, numpy_function
from armwise.programs.c_source import loop_source
from armwise.programs.compiler import (
    addresses,
    c_function,
    cache_problem,
    compiled_library,
    find_compiler,
    longs,
)
from armwise.programs.program import Program

if TYPE_CHECKING:
    from jaxtyping import Float

Backend = Literal["auto", "c", "numpy", "cuda"]

# Judgement: near here -O2 begins to take minutes.
_LARGE = 20_000
"""Steps of a program beyond which the compiler is asked for less effort."""

_noticed = False


class NoCompilerNotice(UserWarning):
    """Said once: nothing can be compiled here, NumPy does the work."""


def resolve_backend(backend: Backend) -> Literal["c", "numpy", "cuda"]:
    """Decide what runs programs here; say once when nothing can be compiled."""
    global _noticed
    if backend in ("numpy", "cuda"):
        return backend
    if backend not in ("auto", "c"):
        raise ArgumentError(
            f'backend must be "auto", "c", "numpy" or "cuda", not {backend!r}.'
        )
    if find_compiler() is None:
        reason = "No C compiler was found."
        remedy = "Install gcc or clang, set CC, or pip install ziglang."
    elif reason := cache_problem():
        remedy = "Set ARMWISE_CACHE to a folder of yours with room."
    else:
        return "c"
    if backend == "c":
        raise ArgumentError(f'{reason} {remedy} Or use backend="numpy".')
    if not _noticed:
        _noticed = True
        warnings.warn(
            f"{reason} Armwise runs on NumPy, 10 to 50 times slower. {remedy}",
            NoCompilerNotice,
            stacklevel=3,
        )
    return "numpy"


class Kernel:
    """A program compiled for batches: arrays in, arrays out, samples first."""

    def __init__(self, program: Program, backend: Backend = "auto") -> None:
        self.program = program
        self.backend = resolve_backend(backend)
        self._varying = [item for item in program.inputs if not item.is_uniform]
        self._uniform = [item for item in program.inputs if item.is_uniform]
        self._run: _Runner = _runner(program, self.backend)

    def __call__(
        self,
        inputs: Sequence[np.ndarray],
        uniforms: Sequence[np.ndarray] = (),
        out: Sequence[np.ndarray] | None = None,
    ) -> list[Float[np.ndarray, ...]]:
        """Run over samples.

        Args:
            inputs: One array (samples, size) per varying input, last axis contiguous.
            uniforms: One array (size,) per uniform input.
            out: Arrays (samples, *shape) to fill; structural zeros are not written.

        Raises:
            ArgumentError: If a sample holds a number that is not finite.
        """
        samples = inputs[0].shape[0]
        if out is None:
            out = [
                # Structural zeros are never written, so only full outputs may start
                # uninitialised.
                (np.empty if len(o.nonzero) == len(o.entries) else np.zeros)(
                    (samples, *o.shape)
                )
                for o in self.program.outputs
            ]
        sizes = [max(1, len(o.entries)) for o in self.program.outputs]
        return self._fill(inputs, uniforms, out, sizes)

    def columns(
        self,
        inputs: Sequence[np.ndarray],
        uniforms: Sequence[np.ndarray] = (),
        out: Sequence[np.ndarray] | None = None,
    ) -> list[Float[np.ndarray, "nonzeros samples"]]:
        """Run over samples; give only structural non-zeros, one row for each entry."""
        samples = inputs[0].shape[0]
        if out is None:
            shapes = [(len(o.nonzero), samples) for o in self.program.outputs]
            out = [np.empty(shape) for shape in shapes]
        # In doubles, and negative: the C loop takes a negative layout for columns.
        layouts = [-int(array.strides[0] // 8) for array in out]
        return self._fill(inputs, uniforms, out, layouts)

    def _fill(
        self,
        inputs: Sequence[np.ndarray],
        uniforms: Sequence[np.ndarray],
        out: Sequence[np.ndarray],
        layouts: list[int],
    ) -> list[np.ndarray]:
        bad = self._run(inputs, uniforms, out, layouts)
        if bad >= 0:
            raise ArgumentError(self._not_finite(inputs, bad))
        return list(out)

    def bound(
        self,
        inputs: Sequence[np.ndarray],
        out: Sequence[np.ndarray],
        uniforms: Sequence[np.ndarray] = (),
    ) -> Callable[[], None]:
        """Return a call without arguments that works on these very arrays.

        Finding their addresses takes longer than one sample's arithmetic; a control
        loop writes into `inputs`, calls, and reads `out`.
        """
        sizes = [max(1, len(o.entries)) for o in self.program.outputs]
        run = self._run
        if isinstance(run, _CRunner):
            function, fixed = run.function, run.arguments(inputs, uniforms, out, sizes)
            call = partial(function, *fixed)
        else:
            call = partial(run, inputs, uniforms, out, sizes)
        # Keeps the arrays alive: the bound call holds only their addresses.
        arrays = (inputs, uniforms, out)

        def run_bound() -> None:
            bad = call()
            if bad >= 0:
                raise ArgumentError(self._not_finite(arrays[0], int(bad)))

        return run_bound

    def _not_finite(self, inputs: Sequence[np.ndarray], bad: int) -> str:
        for item, array in zip(self._varying, inputs, strict=True):
            finite = np.isfinite(array[bad])
            if not finite.all():
                entry = int(np.argmin(finite))
                return (
                    f"{item.name}[{bad}, {entry}] is {array[bad, entry]}: every joint "
                    "value must be finite. Drop or repair that sample."
                )
        return f"Sample {bad} is not finite."


_Runner = Callable[
    [Sequence[np.ndarray], Sequence[np.ndarray], Sequence[np.ndarray], list[int]], int
]


def _runner(program: Program, backend: str) -> _Runner:
    if backend == "cuda":
        from armwise.programs.cuda import CudaRunner

        return CudaRunner(program)
    return _CRunner(program) if backend == "c" else _NumpyRunner(program)


class _CRunner:
    """Calls the compiled loop."""

    def __init__(self, program: Program) -> None:
        # Optimising longer programs further takes minutes and gains a few per cent.
        flags = ("-O1",) if len(program.steps) > _LARGE else ()
        library = compiled_library(loop_source(program), *flags)
        self.function = c_function(library, program.name)

    def __call__(
        self,
        inputs: Sequence[np.ndarray],
        uniforms: Sequence[np.ndarray],
        out: Sequence[np.ndarray],
        layouts: list[int],
    ) -> int:
        return self.function(*self.arguments(inputs, uniforms, out, layouts))

    def arguments(
        self,
        inputs: Sequence[np.ndarray],
        uniforms: Sequence[np.ndarray],
        out: Sequence[np.ndarray],
        layouts: list[int],
    ) -> tuple[object, ...]:
        """Return what the compiled loop is called with."""
        return (
            ctypes.c_long(inputs[0].shape[0]),
            addresses(inputs),
            longs([a.strides[0] // 8 for a in inputs]),
            addresses(uniforms),
            addresses(out),
            longs(layouts),
        )


def scatter_entries(
    program: Program,
    entries: Sequence[np.ndarray | float],
    out: Sequence[np.ndarray],
    layouts: list[int],
    rows: slice,
) -> None:
    """Put the outputs' non-zeros where they belong: in rows, or column by column."""
    taken = iter(entries)
    for item, array, layout in zip(program.outputs, out, layouts, strict=True):
        if layout < 0:
            for e in range(len(item.nonzero)):
                array[e, rows] = next(taken)
            continue
        flat = array[rows].reshape(rows.stop - rows.start, -1)
        for k in item.nonzero:
            flat[:, k] = next(taken)


class _NumpyRunner:
    """Calls the generated NumPy function block by block."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._function = numpy_function(program)

    def __call__(
        self,
        inputs: Sequence[np.ndarray],
        uniforms: Sequence[np.ndarray],
        out: Sequence[np.ndarray],
        layouts: list[int],
    ) -> int:
        samples = inputs[0].shape[0]
        for start in range(0, samples, BLOCK):
            stop = min(start + BLOCK, samples)
            # Transposed: every step of the program then works on a contiguous row.
            block = [np.ascontiguousarray(a[start:stop].T) for a in inputs]
            finite = np.all([np.isfinite(a).all(axis=0) for a in block], axis=0)
            if not finite.all():
                return start + int(np.argmin(finite))
            entries = self._function(block, list(uniforms))
            scatter_entries(self._program, entries, out, layouts, slice(start, stop))
        return -1
