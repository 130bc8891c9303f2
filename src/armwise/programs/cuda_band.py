"""Banded matrices times many columns at once on a GPU: filters as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.programs.cuda_driver import Memory, device

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_TOGETHER = 8
"""Rows a thread works on at once: each number it reads serves all of them."""

_THREADS = 128

SOURCE = f"""
extern "C" __global__ void __launch_bounds__({_THREADS}) band(long long runs,
    long long rows, long long size, long long reach, const int *__restrict__ first,
    const double *__restrict__ weights, const double *__restrict__ in,
    double *__restrict__ out)
{{
  const long long across = (runs + {_THREADS - 1}) / {_THREADS};
  const long long groups = (rows + {_TOGETHER - 1}) / {_TOGETHER};
  const long long run = blockIdx.x % across * {_THREADS} + threadIdx.x;
  const long long group = blockIdx.x / across % groups;
  const long long signal = blockIdx.x / across / groups;
  if (run >= runs) return;
  const double *x = in + (signal * size + first[group]) * runs + run;
  const double *w = weights + group * reach * {_TOGETHER};
  double sum[{_TOGETHER}] = {{0}};
  for (long long k = 0; k < reach; k++, x += runs, w += {_TOGETHER}) {{
    const double value = *x;
    #pragma unroll
    for (int r = 0; r < {_TOGETHER}; r++) sum[r] += w[r] * value;
  }}
  double *const y = out + (signal * rows + group * {_TOGETHER}) * runs + run;
  for (int r = 0; r < {_TOGETHER} && group * {_TOGETHER} + r < rows; r++)
    y[r * runs] = sum[r];
}}
"""
"""CUDA C of `band`: signals × rows × runs from signals × size × runs."""


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
        self._module = self._device.compile(SOURCE)
        self.rows, self.size = len(first), size
        starts, together = grouped(first, weights, size)
        self._reach = together.shape[1]
        self._first = self._device.upload(starts)
        self._weights = self._device.upload(together)

    def __call__(self, signals: Memory, count: int, runs: int, out: Memory) -> None:
        """Treat `count` signals of many runs; all are on the GPU.

        Args:
            signals: count × size × runs.
            count, runs: How many.
            out: Becomes count × rows × runs.
        """
        across = -(-runs // _THREADS)
        groups = -(-self.rows // _TOGETHER)
        sizes = [runs, self.rows, self.size, self._reach]
        self._module.launch(
            "band",
            across * groups * count,
            _THREADS,
            [*sizes, self._first, self._weights, signals, out],
        )


def grouped(
    first: Int[np.ndarray, " rows"],
    weights: Float[np.ndarray, "rows reach"],
    size: int,
) -> tuple[Int[np.ndarray, " groups"], Float[np.ndarray, "groups wide together"]]:
    """Put neighbouring rows together, over columns that hold all their stretches."""
    rows, reach = weights.shape
    groups = -(-rows // _TOGETHER)
    parts = [slice(g * _TOGETHER, (g + 1) * _TOGETHER) for g in range(groups)]
    wide = reach + max(int(np.ptp(first[part])) for part in parts)
    starts = np.array([min(int(first[p].min()), size - wide) for p in parts])
    together = np.zeros((groups, wide, _TOGETHER))
    for start, part, block in zip(starts, parts, together, strict=True):
        for r, row in enumerate(range(rows)[part]):
            shift = int(first[row] - start)
            block[shift : shift + reach, r] = weights[row]
    return starts, together
