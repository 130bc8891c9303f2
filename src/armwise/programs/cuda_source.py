"""CUDA C of a program: one sample a thread, and the fused Gram matrix of its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from armwise.programs.c_source import core_source
from armwise.programs.program import Program

LARGEST_TILE = 96
"""Samples a block of threads holds in shared memory at a time, if they fit."""

_SHARED_BYTES = 227 * 1024
"""Shared memory a block may have on Hopper; smaller chips refuse, with a message."""

_PRELUDE = """\
typedef double V;
#define sincos_v(x, s, c) sincos(x, s, c)
__device__ static inline double sign_v(double x) { return (x > 0.0) - (x < 0.0); }
#define sqrt_v sqrt
#define abs_v fabs
#define exp_v exp
#define tanh_v tanh
"""


def elementwise_source(program: Program) -> str:
    """Return CUDA C of `NAME`: non-zeros of each sample, entry by entry (columns).

    Arguments: number of samples, the inputs side by side as rows (samples × inputs),
    the uniform inputs one after another, and the outputs (entries × samples).
    """
    inputs = sum(item.size for item in program.inputs if not item.is_uniform)
    stored = sum(len(item.nonzero) for item in program.outputs)
    return f"""{_PRELUDE}{_device_core(program)}
extern "C" __global__ void {program.name}(long long n, const double *__restrict__ in,
    const double *__restrict__ given, double *__restrict__ out)
{{
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
{_prepare(program)}
  double x[{max(1, inputs)}], y[{max(1, stored)}];
  for (int j = 0; j < {inputs}; j++) x[j] = in[i * {inputs} + j];
  core_{program.name}(x, u, y);
  for (int e = 0; e < {stored}; e++) out[e * n + i] = y[e];
}}
"""


def gram_source(program: Program, widths: Sequence[int]) -> str:
    """Return CUDA C of `NAME_gram`: Σ over samples of rowᵀ row, block by block.

    The rows never leave the multiprocessor: a tile of samples is computed into shared
    memory, one sample a thread, and every thread then adds one 4×4 patch of one block's
    Gram matrix over the tile, in registers.

    Args:
        program: Its outputs' non-zeros are the rows, in order.
        widths: How many of them belong to each block.
    """
    inputs = sum(item.size for item in program.inputs if not item.is_uniform)
    starts, padded = [], 0
    for width in widths:
        starts.append(padded)
        padded += -(-width // 4) * 4
    stride = padded + 2
    patches = [
        (start + 4 * a, start + 4 * b)
        for start, width in zip(starts, widths, strict=True)
        for a in range(-(-width // 4))
        for b in range(a, -(-width // 4))
    ]
    place = [
        start + k
        for start, width in zip(starts, widths, strict=True)
        for k in range(width)
    ]
    threads, tile = gram_threads(widths), gram_tile(widths)
    return f"""{_PRELUDE}{_device_core(program, place)}
__constant__ short first[{threads}] = {{{_list([p[0] for p in patches], threads)}}};
__constant__ short second[{threads}] = {{{_list([p[1] for p in patches], threads)}}};
extern "C" __global__ void __launch_bounds__({threads}) {program.name}_gram(long long n,
    const double *__restrict__ in, const double *__restrict__ given,
    double *__restrict__ gram)
{{
  extern __shared__ double tile[];
  const int me = threadIdx.x;
  const int a = first[me], b = second[me];
  double sum[16] = {{0}};
{_prepare(program)}
  for (int k = me; k < {tile * stride}; k += {threads}) tile[k] = 0.0;
  for (long long start = blockIdx.x * (long long){tile}; start < n;
       start += gridDim.x * (long long){tile}) {{
    __syncthreads();
    if (me < {tile}) {{
      double x[{max(1, inputs)}];
      const long long i = start + me;
      double *const row = tile + me * {stride};
      if (i < n) {{
        for (int j = 0; j < {inputs}; j++) x[j] = in[j * n + i];
        core_{program.name}(x, u, row);
      }} else {{
        for (int e = 0; e < {stride}; e++) row[e] = 0.0;
      }}
    }}
    __syncthreads();
    if (a >= 0) {{
      #pragma unroll 4
      for (int s = 0; s < {tile}; s++) {{
        const double2 *const p = (const double2 *)(tile + s * {stride} + a);
        const double2 *const q = (const double2 *)(tile + s * {stride} + b);
        const double2 p0 = p[0], p1 = p[1], q0 = q[0], q1 = q[1];
        const double r[4] = {{p0.x, p0.y, p1.x, p1.y}};
        const double c[4] = {{q0.x, q0.y, q1.x, q1.y}};
        #pragma unroll
        for (int k = 0; k < 16; k++) sum[k] += r[k / 4] * c[k % 4];
      }}
    }}
  }}
  if (a >= 0)
    for (int k = 0; k < 16; k++) atomicAdd(gram + me * 16 + k, sum[k]);
}}
"""


def gram_threads(widths: Sequence[int]) -> int:
    """Threads of a block: one per 4×4 patch, in whole warps."""
    patches = sum((-(-w // 4)) * (-(-w // 4) + 1) // 2 for w in widths)
    return max(LARGEST_TILE, -(-patches // 32) * 32)


def gram_tile(widths: Sequence[int]) -> int:
    """Samples of a tile: as many as shared memory holds, in multiples of eight."""
    fitting = _SHARED_BYTES // (8 * (_padded(widths) + 2))
    return max(8, min(LARGEST_TILE, 8 * (fitting // 8)))


def gram_shared_bytes(widths: Sequence[int]) -> int:
    """Shared memory of a block in bytes."""
    return 8 * gram_tile(widths) * (_padded(widths) + 2)


def _padded(widths: Sequence[int]) -> int:
    return sum(-(-width // 4) * 4 for width in widths)


def _device_core(program: Program, place: Sequence[int] | None = None) -> str:
    """The core for the GPU; its results go to other places of y if `place` says so."""
    text = (
        core_source(program)
        .replace("static void", "__device__ static __forceinline__ void")
        .replace("(V){0} + ", "")
    )
    if place is None:
        return text
    return re.sub(r"\by\[(\d+)\]", lambda found: f"y[{place[int(found[1])]}]", text)


def _prepare(program: Program) -> str:
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


def _list(values: Sequence[int], size: int) -> str:
    return ", ".join(map(str, [*values, *[-1] * (size - len(values))]))
