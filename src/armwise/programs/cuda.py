"""Run a program on a GPU, one sample a thread."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from armwise.programs.c_source import core_source
from armwise.programs.cuda_driver import device
from armwise.programs.kernel import scatter_entries
from armwise.programs.program import Program

# CUDA C of a program: one sample a thread.

PRELUDE = """\
typedef double V;
#define sincos_v(x, s, c) sincos(x, s, c)
static inline V sign_v(V x) { return (x > 0.0) - (x < 0.0); }
#define sqrt_v sqrt
#define abs_v fabs
#define exp_v exp
#define tanh_v tanh
"""
"""What generated cores are written over, on the GPU."""


def elementwise_source(program: Program) -> str:
    """Return CUDA C of `NAME`: non-zeros of each sample, entry by entry (columns).

    Arguments: number of samples, the inputs side by side as rows (samples × inputs),
    the uniform inputs one after another, and the outputs (entries × samples).
    """
    inputs = varying_size(program)
    stored = sum(len(item.nonzero) for item in program.outputs)
    return f"""{PRELUDE}{device_core(program)}
extern "C" __global__ void {program.name}(long long n, const double *__restrict__ in,
    const double *__restrict__ given, double *__restrict__ out)
{{
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
{prepare_uniforms(program)}
  double x[{max(1, inputs)}], y[{max(1, stored)}];
  for (int j = 0; j < {inputs}; j++) x[j] = in[i * {inputs} + j];
  core_{program.name}(x, u, y);
  for (int e = 0; e < {stored}; e++) out[e * n + i] = y[e];
}}
"""


def varying_size(program: Program) -> int:
    """Numbers that go into a sample."""
    return sum(item.size for item in program.inputs if not item.is_uniform)


def device_core(program: Program, place: Sequence[int] | None = None) -> str:
    """The core for the GPU; its results go to other places of y if `place` says so."""
    text = (
        core_source(program)
        .replace("static void", "static __forceinline__ void")
        .replace("(V){0} + ", "")
    )
    if place is None:
        return text
    return re.sub(r"\by\[(\d+)\]", lambda found: f"y[{place[int(found[1])]}]", text)


def prepare_uniforms(program: Program) -> str:
    """Work out, in every thread, what is the same for all samples."""
    count = sum(
        step.index not in program.varying and step.op != "constant"
        for step in program.steps
    )
    sizes = [item.size for item in program.inputs if item.is_uniform]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    pointers = ", ".join(f"given + {start}" for start in starts) or "given"
    return (
        f"  double u[{max(1, count)}];\n"
        f"  const double *const uniform[] = {{{pointers}}};\n"
        f"  prepare_{program.name}(uniform, u);"
    )


# Run a program on a GPU, one sample a thread.

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
