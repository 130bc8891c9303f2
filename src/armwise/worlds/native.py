"""Steps in C: the traced rates in a loop, for as long as all is well.

The loop knows no physics. It takes steps with the program's rates until the work is
done or the program's health says that a step needs a closer look; that step is then
taken by the slower path, which can drop singular values, break things and explain.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from armwise.programs.c_source import SCALAR_PRELUDE, core_source
from armwise.programs.cache import cached_object
from armwise.programs.compiler import Compiler
from armwise.programs.program import Program
from armwise.worlds.layout import Layout

_LARGE = 20_000
"""Programs of more steps than this are compiled with less effort."""

_LOOP = """
#define NX {states}
#define NS {signals}
#define NR {rates}
#define NH {health}
static const int place[] = {{{places}}};
static const int quaternion[] = {{{quaternions}}};

static int rates(const double *x, const double *s, double *dx)
{{
  double in[NX + NS + 1], y[NR + NH + 1], u[1];
  memcpy(in, x, NX * sizeof(double));
  memcpy(in + NX, s, NS * sizeof(double));
  core_{name}(in, u, y);
  memset(dx, 0, NX * sizeof(double));
  for (int k = 0; k < NR; k++) dx[place[k]] = y[k];
  for (int k = 0; k < NH; k++) if (!(y[NR + k] <= 1.0)) return 1;
  return 0;
}}

static int settle(double *x)
{{
  double sum = 0.0;
  for (int k = 0; k < {quaternion_count}; k++) {{
    double *q = x + quaternion[k];
    const double r = 1.0 / sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]);
    for (int j = 0; j < 4; j++) q[j] *= r;
  }}
  for (int j = 0; j < NX; j++) sum += x[j] * 0.0;
  return sum != 0.0;
}}

long rates_{name}(const double *x, const double *s, double *dx)
{{
  return rates(x, s, dx);
}}

/* One explicit Runge-Kutta step after another; row i*rows + k of `signal` holds the
   signals of stage k of step i, `stride` doubles apart. Returns the steps taken. */
long advance_{name}(long steps, double h, double *x, const double *signal, long stride,
                    long stages, const double *a, const double *b,
                    double *record, long every, long phase)
{{
  double k[8][NX], y[NX], dx[NX];
  for (long i = 0; i < steps; i++) {{
    for (long s = 0; s < stages; s++) {{
      for (int j = 0; j < NX; j++) {{
        double sum = 0.0;
        for (long m = 0; m < s; m++) sum += a[s * stages + m] * k[m][j];
        y[j] = x[j] + h * sum;
      }}
      if (rates(y, signal + (i * stages + s) * stride, k[s])) return i;
    }}
    for (int j = 0; j < NX; j++) {{
      double sum = 0.0;
      for (long m = 0; m < stages; m++) sum += b[m] * k[m][j];
      dx[j] = x[j] + h * sum;
    }}
    if (settle(dx)) return i;
    memcpy(x, dx, NX * sizeof(double));
    if ((phase + i + 1) % every == 0) {{
      memcpy(record, x, NX * sizeof(double));
      record += NX;
    }}
  }}
  return steps;
}}

/* One explicit step from x to y, and its error by the weights e. */
long attempt_{name}(double h, const double *x, const double *signal, long stride,
                    long stages, const double *a, const double *b, const double *e,
                    double *y, double *error)
{{
  double k[8][NX];
  for (long s = 0; s < stages; s++) {{
    for (int j = 0; j < NX; j++) {{
      double sum = 0.0;
      for (long m = 0; m < s; m++) sum += a[s * stages + m] * k[m][j];
      y[j] = x[j] + h * sum;
    }}
    if (rates(y, signal + s * stride, k[s])) return 1;
  }}
  for (int j = 0; j < NX; j++) {{
    double sum = 0.0, rest = 0.0;
    for (long m = 0; m < stages; m++) {{
      sum += b[m] * k[m][j];
      rest += e[m] * k[m][j];
    }}
    y[j] = x[j] + h * sum;
    error[j] = h * rest;
  }}
  return 0;
}}

/* Semi-implicit Euler: velocities NP..NV first, then positions with the new ones. */
long advance_softly_{name}(long steps, double h, double *x, const double *signal,
                           long stride, double *record, long every, long phase)
{{
  double first[NX], second[NX], y[NX];
  for (long i = 0; i < steps; i++) {{
    const double *s = signal + i * stride;
    if (rates(x, s, first)) return i;
    memcpy(y, x, NX * sizeof(double));
    for (int j = {positions}; j < {velocities}; j++) y[j] += h * first[j];
    if (rates(y, s, second)) return i;
    for (int j = 0; j < {positions}; j++) y[j] += h * second[j];
    for (int j = {velocities}; j < NX; j++) y[j] += 0.5 * h * (first[j] + second[j]);
    if (settle(y)) return i;
    memcpy(x, y, NX * sizeof(double));
    if ((phase + i + 1) % every == 0) {{
      memcpy(record, x, NX * sizeof(double));
      record += NX;
    }}
  }}
  return steps;
}}
"""


@dataclass(frozen=True, eq=False)
class Steps:
    """How far the loop came: steps taken, and the states it was asked to keep."""

    taken: int
    kept: np.ndarray


class NativeLoop:
    """A world's rates compiled for one state at a time, and loops around them."""

    def __init__(self, program: Program, layout: Layout, compiler: Compiler) -> None:
        text = _source(program, layout)
        extra = ("-O1",) if len(program.steps) > _LARGE else ()
        self._library = ctypes.CDLL(str(cached_object(text, compiler, extra)))
        self._size = layout.size
        number, pointer, real = ctypes.c_long, ctypes.c_void_p, ctypes.c_double
        keep = [pointer, number, number]
        start = [number, real, pointer, pointer, number]
        self._rates = self._function(f"rates_{program.name}", [pointer] * 3)
        self._explicit = self._function(
            f"advance_{program.name}", [*start, number, pointer, pointer, *keep]
        )
        self._attempt = self._function(
            f"attempt_{program.name}",
            [real, pointer, pointer, number, number, *[pointer] * 5],
        )
        self._softly = self._function(f"advance_softly_{program.name}", [*start, *keep])

    def _function(self, name: str, arguments: list[Any]) -> Any:
        function = getattr(self._library, name)
        function.restype, function.argtypes = ctypes.c_long, arguments
        return function

    def rates(self, state: np.ndarray, signal: np.ndarray, out: np.ndarray) -> bool:
        """Fill the rate of the state; return whether all is well."""
        bad = self._rates(state.ctypes.data, signal.ctypes.data, out.ctypes.data)
        return not bad

    def attempt(
        self,
        state: np.ndarray,
        h: float,
        signal: np.ndarray,
        tableau: tuple[np.ndarray, np.ndarray],
        errors: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the state after one step and its error, or None if not all is well.

        Args:
            state: The state, unchanged.
            h: Step in [s].
            signal: One row per stage.
            tableau: Runge–Kutta coefficients.
            errors: Weights of the stages in the error.
        """
        a, b = tableau
        new, error = np.empty(self._size), np.empty(self._size)
        bad = self._attempt(
            h, state.ctypes.data, signal.ctypes.data, signal.shape[1], len(b),
            a.ctypes.data, b.ctypes.data, errors.ctypes.data, new.ctypes.data,
            error.ctypes.data,
        )  # fmt: skip
        return None if bad else (new, error)

    def advance(
        self,
        state: np.ndarray,
        h: float,
        signal: np.ndarray,
        tableau: tuple[np.ndarray, np.ndarray] | None,
        steps: int,
        every: int = 1,
        phase: int = 0,
    ) -> Steps:
        """Take up to `steps` steps in place.

        Args:
            state: The state, changed in place to the last good one.
            h: Step in [s].
            signal: One row per stage of each step, or one row if nothing changes.
            tableau: Runge–Kutta coefficients (stages, stages) and (stages,); None
                for semi-implicit steps.
            steps: How many.
            every: Keep every so many-th state.
            phase: Steps taken since the last one that was kept.
        """
        kept = np.empty(((phase + steps) // every, self._size))
        stride = signal.shape[1] if len(signal) > 1 else 0
        start = (steps, h, state.ctypes.data, signal.ctypes.data, stride)
        keep = (kept.ctypes.data, every, phase)
        if tableau is None:
            taken = self._softly(*start, *keep)
        else:
            a, b = tableau
            stages = (len(b), a.ctypes.data, b.ctypes.data)
            taken = self._explicit(*start, *stages, *keep)
        return Steps(int(taken), kept[: (phase + taken) // every])


def _source(program: Program, layout: Layout) -> str:
    """Return the C text of the rates and the loops."""
    rate, health = program.outputs
    loops = _LOOP.format(
        name=program.name,
        states=layout.size,
        signals=program.inputs[1].size,
        rates=len(rate.nonzero),
        health=len(health.nonzero),
        places=", ".join(map(str, rate.nonzero)) or "0",
        quaternions=", ".join(map(str, layout.quaternions)) or "0",
        quaternion_count=len(layout.quaternions),
        positions=layout.position_count,
        velocities=layout.velocity_slice.stop,
    )
    return "\n".join([SCALAR_PRELUDE, core_source(program), loops])
