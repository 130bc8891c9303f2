"""Kernels: programs over batches of samples, in C, NumPy, JAX or CUDA."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.errors import ArgumentError, MissingExtra
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
from armwise.programs.scalars import Scalar

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


# Programs as NumPy functions over blocks of samples, and as JAX functions.

BLOCK = 1024
"""Samples at a time: 8 kB for each step, so that the live ones stay in cache."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}

Step = Callable[[list[np.ndarray], list[np.ndarray]], list[np.ndarray | float]]


def numpy_function(program: Program) -> Step:
    """Return a function of (columns of inputs, uniform inputs) → output entries.

    Each input is given as an array (size, samples) or, if uniform, (size,); entries
    come back in the order of the outputs' structural non-zeros.
    """
    scope = {"np": np}
    exec(compile(python_source(program), f"<{program.name}>", "exec"), scope)
    return scope["run"]  # type: ignore[return-value]


def python_source(program: Program) -> str:
    """Return Python text of `run(x, u)` over a namespace called np."""
    names: dict[int, str] = {}
    lines = ["def run(x, u):"]
    inputs = _input_names(program)
    for step in program.steps:
        name = f"t{step.index}"
        names[step.index] = name
        lines.append(f"    {name} = {_expression(step, names, inputs)}")
    stored = [item.entries[k] for item in program.outputs for k in item.nonzero]
    entries = (
        names[x.index] if isinstance(x, Scalar) else repr(float(x)) for x in stored
    )
    lines.append(f"    return [{', '.join(entries)}]")
    return "\n".join(lines)


def _input_names(program: Program) -> dict[str, str]:
    names: dict[str, str] = {}
    for kind, letter in ((False, "x"), (True, "u")):
        items = [item for item in program.inputs if item.is_uniform is kind]
        names |= {item.name: f"{letter}[{k}]" for k, item in enumerate(items)}
    return names


def _expression(step: Scalar, names: dict[int, str], inputs: dict[str, str]) -> str:
    if step.op == "constant":
        return repr(step.value)
    if step.op == "input":
        key, k = step.value  # type: ignore[misc]
        return f"{inputs[str(key)]}[{k}]"
    args = [names[a.index] for a in step.args]
    if step.op in _INFIX:
        return f"{args[0]} {_INFIX[step.op]} {args[1]}"
    return f"-{args[0]}" if step.op == "neg" else f"np.{step.op}({args[0]})"


# JAX.


def jax_function(program: Program) -> Callable[..., dict[str, Any]]:
    """Return a function of the program's inputs, by name, each of shape (..., size).

    It gives the outputs by name, of shape (..., *shape); uniform inputs are (size,).
    """
    try:
        import jax.numpy as jnp
    except ImportError:
        raise MissingExtra("jax", "jax", "Program.to_jax()") from None
    scope: dict[str, Any] = {"np": jnp}
    exec(compile(python_source(program), f"<{program.name}>", "exec"), scope)
    varying = [item.name for item in program.inputs if not item.is_uniform]
    uniform = [item.name for item in program.inputs if item.is_uniform]

    def function(**inputs: Any) -> dict[str, Any]:
        x = [jnp.moveaxis(jnp.asarray(inputs[name]), -1, 0) for name in varying]
        u = [jnp.asarray(inputs[name]) for name in uniform]
        entries = iter(scope["run"](x, u))
        batch = x[0].shape[1:] if x else ()
        outputs: dict[str, Any] = {}
        for item in program.outputs:
            cells = [jnp.zeros(batch)] * len(item.entries)
            for k in item.nonzero:
                # Entries that depend on uniform inputs only have no batch of their own.
                cells[k] = jnp.broadcast_to(next(entries), batch)
            outputs[item.name] = jnp.stack(cells, axis=-1).reshape(*batch, *item.shape)
        return outputs

    return function
