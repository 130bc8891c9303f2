"""A traced program compiled for one state at a time: no lanes, quick to build."""

from __future__ import annotations

import ctypes

import numpy as np

from armwise.programs.c_source import SCALAR_PRELUDE, core_source
from armwise.programs.cache import cached_object
from armwise.programs.compiler import Compiler
from armwise.programs.program import Program

_ENTRY = """
static const int place[] = {{{places}}};
void call_{name}(const double *x, double *out)
{{
  double y[{count} + 1], u[1];
  core_{name}(x, u, y);
  for (int k = 0; k < {count}; k++) out[place[k]] = y[k];
}}
"""


class NativeFunction:
    """Calls a program on one sample; its outputs come back without a samples axis."""

    def __init__(self, program: Program, compiler: Compiler) -> None:
        self._program = program
        self._size = sum(item.size for item in program.inputs)
        self._ends = np.cumsum([len(item.entries) for item in program.outputs])
        starts = self._ends - [len(item.entries) for item in program.outputs]
        places = [
            int(start) + k
            for start, item in zip(starts, program.outputs, strict=True)
            for k in item.nonzero
        ]
        entry = _ENTRY.format(
            name=program.name,
            count=len(places),
            places=", ".join(map(str, places)) or "0",
        )
        # Called seldom: a quick compilation is worth more than quick code.
        text = "\n".join([SCALAR_PRELUDE, core_source(program), entry])
        self._library = ctypes.CDLL(str(cached_object(text, compiler, ("-O1",))))
        self._call = getattr(self._library, f"call_{program.name}")
        self._call.restype, self._call.argtypes = None, [ctypes.c_void_p] * 2

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Return the outputs for one sample of every input."""
        x = np.concatenate(inputs)
        out = np.zeros(int(self._ends[-1]))
        self._call(x.ctypes.data, out.ctypes.data)
        parts = np.split(out, self._ends[:-1])
        outputs = self._program.outputs
        return [
            part.reshape(item.shape) for part, item in zip(parts, outputs, strict=True)
        ]
