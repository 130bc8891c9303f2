"""C text of a program: one straight-line core, over vectors of samples or one sample.

The core is written over a type V. With V a vector of eight doubles (GCC and Clang
vector types, lowered to what the processor has) it runs eight samples at once; with V a
double it runs one. Around it, a loop gathers rows into vectors and scatters results.

sin r = r + r z S(z) and cos r = 1 − z/2 + z² C(z) with z = r². The coefficients are
minimax fits (Remez, 60 digits, rounded to doubles). The relative errors they leave are
far below rounding: 3.6e−18 and 5.6e−20 in double, 3.8e−9 and 1.2e−10 in single.
"""

from __future__ import annotations

from collections.abc import Sequence

from armwise.programs.program import Program
from armwise.programs.scalars import Number, Scalar

# Sine and cosine by polynomials, between −π/4 and π/4.

SINE = (
    -0.1666666666666663,
    0.008333333333322118,
    -0.00019841269829589495,
    2.7557313621370277e-06,
    -2.5050747760348875e-08,
    1.589623000726203e-10,
)
COSINE = (
    0.041666666666666595,
    -0.0013888888888873056,
    2.4801587288851653e-05,
    -2.755731417928149e-07,
    2.0875700839859294e-09,
    -1.1358536409678325e-11,
)

SINE_SINGLE = (-0.1666665460951289, 0.008332160759566947, -0.00019515282875823102)
COSINE_SINGLE = (0.04166664568291716, -0.001388731625143906, 2.4433156715749723e-05)

HALF_PI = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624879595063154e-21,
)
"""π/2 in three pieces of 33, 33 and 53 bits: k times them is exact for |k| < 2²⁰."""

HALF_PI_SINGLE = (
    1.5703125,
    4.837512969970703125e-4,
    7.549533620476723e-08,
    2.5633440682570896e-12,
)
"""The same of 8, 11, 11 and 24 bits, for |k| < 2¹³."""


def horner(coefficients: Sequence[float], suffix: str = "") -> str:
    """Write a polynomial in z as C text."""
    text = f"{coefficients[-1]!r}{suffix}"
    for coefficient in reversed(coefficients[:-1]):
        text = f"({coefficient!r}{suffix} + z * {text})"
    return text


# C text of a program: one straight-line core, over vectors of samples or one sample.

LANES = 8
"""Samples in a vector: 64 bytes of doubles."""


_SINE, _COSINE = horner(SINE), horner(COSINE)

# π/2 in three pieces: the first two have 33 bits, so k times them is exact to 2²⁰.
_REDUCTION = """\
#define HALF_PI_1 1.57079632673412561417e+00
#define HALF_PI_2 6.07710050630396597660e-11
#define HALF_PI_3 2.02226624879595063154e-21
#define TWO_OVER_PI 6.36619772367581382433e-01
#define ROUNDER 6755399441055744.0
#define LARGEST_ANGLE 1.0e4
"""

VECTOR_PRELUDE = f"""\
#include <math.h>
#include <string.h>
typedef double V __attribute__((vector_size({8 * LANES})));
typedef long long L __attribute__((vector_size({8 * LANES})));
{_REDUCTION}
static inline int any_lane(L mask) {{
  long long found = 0;
  for (int k = 0; k < {LANES}; k++) found |= mask[k];
  return found != 0;
}}
static __attribute__((noinline)) void sincos_far(const V *x, V *s, V *c) {{
  for (int k = 0; k < {LANES}; k++) {{
    (*s)[k] = sin((*x)[k]);
    (*c)[k] = cos((*x)[k]);
  }}
}}
static inline void sincos_v(V x, V *s, V *c) {{
  const V t = x * TWO_OVER_PI + ROUNDER, k = t - ROUNDER;
  const V t1 = x - k * HALF_PI_1, t2 = t1 - k * HALF_PI_2;
  const V r = t2 - (k * HALF_PI_3 - ((t1 - t2) - k * HALF_PI_2));
  const V z = r * r;
  const V sr = r + r * (z * {_SINE});
  const V cr = 1.0 - z * (0.5 - z * {_COSINE});
  const L n = (L)t, swap = -(n & 1);
  const L sb = ((L)sr & ~swap) | ((L)cr & swap), cb = ((L)cr & ~swap) | ((L)sr & swap);
  *s = (V)(sb ^ ((n & 2) << 62));
  *c = (V)(cb ^ (((n + 1) & 2) << 62));
  if (__builtin_expect(any_lane((x > LARGEST_ANGLE) | (x < -LARGEST_ANGLE)), 0))
    sincos_far(&x, s, c);
}}
static inline V sign_v(V x) {{
  const L up = x > 0.0, down = x < 0.0;
  V r;
  for (int k = 0; k < {LANES}; k++) r[k] = (double)(down[k] != 0 ? -1 : up[k] != 0);
  return r;
}}
#define EACH(name, f) static inline V name(V x) {{ V r; \\
  for (int k = 0; k < {LANES}; k++) r[k] = f(x[k]); return r; }}
EACH(sqrt_v, sqrt) EACH(abs_v, fabs) EACH(exp_v, exp) EACH(tanh_v, tanh)
"""

SCALAR_PRELUDE = f"""\
#include <math.h>
#include <string.h>
typedef double V;
{_REDUCTION}
static inline void sincos_v(V x, V *s, V *c) {{
  if (__builtin_expect(!(fabs(x) <= LARGEST_ANGLE), 0)) {{
    *s = sin(x);
    *c = cos(x);
    return;
  }}
  const double t = x * TWO_OVER_PI + ROUNDER, k = t - ROUNDER;
  const double t1 = x - k * HALF_PI_1, t2 = t1 - k * HALF_PI_2;
  const double r = t2 - (k * HALF_PI_3 - ((t1 - t2) - k * HALF_PI_2));
  const double z = r * r;
  const double sr = r + r * (z * {_SINE});
  const double cr = 1.0 - z * (0.5 - z * {_COSINE});
  long long n;
  memcpy(&n, &t, sizeof n);
  const double a = n & 1 ? cr : sr, b = n & 1 ? sr : cr;
  *s = n & 2 ? -a : a;
  *c = (n + 1) & 2 ? -b : b;
}}
static inline V sign_v(V x) {{ return (x > 0.0) - (x < 0.0); }}
#define sqrt_v sqrt
#define abs_v fabs
#define exp_v exp
#define tanh_v tanh
"""

_LOOP = """\
long {name}(long n, const double *const *in, const long *stride,
            const double *const *uniform, double *const *out, const long *layout)
{{
  double u[{uniforms}];
  prepare_{name}(uniform, u);
  for (long i = 0; i < n; i += {lanes}) {{
    V x[{inputs}], y[{outputs}];
    double *const xs = (double *)x;
    const long count = n - i < {lanes} ? n - i : {lanes};
    V check = {{0}};
{gather}
    if (__builtin_expect(any_lane(check != 0.0), 0))
      for (long k = 0; k < count; k++) if (check[k] != 0.0) return i + k;
    core_{name}(x, u, y);
    const double *const ys = (const double *)y;
{scatter}
  }}
  return -1;
}}
"""


def loop_source(program: Program) -> str:
    """Return the C text of a function that runs a program over many samples.

    Its C signature is `long f(n, in, stride, uniform, out, layout)`: arrays by input
    and output; `stride` is the distance between samples of an input, `layout` that of
    an output or, if negative, minus the distance between its columns when only
    structural non-zeros are stored, column by column. It returns −1, or the first
    sample that holds a number that is not finite.
    """
    varying = [item for item in program.inputs if not item.is_uniform]
    body = _LOOP.format(
        name=program.name,
        lanes=LANES,
        uniforms=max(1, _count_uniform(program)),
        inputs=max(1, sum(item.size for item in varying)),
        outputs=max(1, sum(len(item.nonzero) for item in program.outputs)),
        gather=_gather(program),
        scatter=_scatter(program),
    )
    return "\n".join([VECTOR_PRELUDE, _tables(program), core_source(program), body])


def core_source(program: Program) -> str:
    """Return the C text of `prepare_NAME(uniform, u)` and `core_NAME(x, u, y)`.

    `prepare` does what is the same for every sample; `core` takes its result u, the
    inputs x and fills y with the structural non-zeros of the outputs, in order.
    """
    names = _names(program)
    prepare = [f"static void prepare_{program.name}"
               "(const double *const *uniform, double *u) {"]  # fmt: skip
    core = [f"static void core_{program.name}(const V *x, const double *u, V *y) {{"]
    trig_done: set[int] = set()
    for step in program.steps:
        if step.op == "constant":
            continue
        if step.op == "input":
            if step.index not in program.varying:
                prepare.append(
                    f"  {names[step.index]} = {_uniform_input(program, step)};"
                )
        elif step.index in program.varying:
            core.append(_statement(program, step, names, trig_done))
        else:
            prepare.append(f"  {names[step.index]} = {_scalar(step, names)};")
    place = 0
    for item in program.outputs:
        for k in item.nonzero:
            core.append(_store(program, place, item.entries[k], names))
            place += 1
    prepare += ["  (void)uniform; (void)u;", "}"]
    core += ["  (void)x; (void)u; (void)y;", "}"]
    return "\n".join([*prepare, *core, ""])


def _count_uniform(program: Program) -> int:
    return sum(
        step.index not in program.varying and step.op != "constant"
        for step in program.steps
    )


def _names(program: Program) -> dict[int, str]:
    """Name every step in C: x[..] inputs, u[..] the same in a call, t.. the rest."""
    start: dict[str, int] = {}
    place = 0
    for item in program.inputs:
        if not item.is_uniform:
            start[item.name] = place
            place += item.size
    names: dict[int, str] = {}
    used = 0
    for step in program.steps:
        if step.op == "constant":
            names[step.index] = repr(step.value)
        elif step.op == "input" and step.index in program.varying:
            key, k = step.value  # type: ignore[misc]
            names[step.index] = f"x[{start[str(key)] + int(k)}]"
        elif step.index in program.varying:
            names[step.index] = f"t{step.index}"
        else:
            names[step.index] = f"u[{used}]"
            used += 1
    return names


def _uniform_input(program: Program, step: Scalar) -> str:
    key, k = step.value  # type: ignore[misc]
    uniform = [item.name for item in program.inputs if item.is_uniform]
    return f"uniform[{uniform.index(str(key))}][{k}]"


_BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def _scalar(step: Scalar, names: dict[int, str]) -> str:
    args = [names[a.index] for a in step.args]
    if step.op in _BINARY:
        return f"{args[0]} {_BINARY[step.op]} {args[1]}"
    if step.op == "neg":
        return f"-{args[0]}"
    if step.op == "sign":
        return f"(double)(({args[0]} > 0.0) - ({args[0]} < 0.0))"
    return f"{'fabs' if step.op == 'abs' else step.op}({args[0]})"


def _statement(
    program: Program, step: Scalar, names: dict[int, str], trig_done: set[int]
) -> str:
    args = [names[a.index] for a in step.args]
    name = names[step.index]
    if step.op in _BINARY:
        return f"  const V {name} = {args[0]} {_BINARY[step.op]} {args[1]};"
    if step.op == "neg":
        return f"  const V {name} = -{args[0]};"
    if step.op in ("sin", "cos"):
        return _sincos(step, name, args[0], trig_done)
    return f"  const V {name} = {step.op}_v({args[0]});"


def _sincos(step: Scalar, name: str, angle: str, done: set[int]) -> str:
    """Take sine and cosine of an angle together, once."""
    key = step.args[0].index
    lines = []
    if key not in done:
        done.add(key)
        lines.append(
            f"  V sin_{key}, cos_{key}; sincos_v({angle}, &sin_{key}, &cos_{key});"
        )
    lines.append(f"  const V {name} = {step.op}_{key};")
    return "\n".join(lines)


def _store(program: Program, place: int, entry: Number, names: dict[int, str]) -> str:
    if not isinstance(entry, Scalar):
        return f"  y[{place}] = (V){{0}} + {entry!r};"
    if entry.index in program.varying:
        return f"  y[{place}] = {names[entry.index]};"
    return f"  y[{place}] = (V){{0}} + {names[entry.index]};"


def _tables(program: Program) -> str:
    """Return where each stored entry of a sparse output goes in its row."""
    lines = []
    for o, item in enumerate(program.outputs):
        if len(item.nonzero) < len(item.entries):
            places = ", ".join(map(str, item.nonzero)) or "0"
            lines.append(f"static const int place_{o}[] = {{{places}}};")
    return "\n".join(lines)


def _gather(program: Program) -> str:
    lines = []
    place = 0
    varying = [item for item in program.inputs if not item.is_uniform]
    for j, item in enumerate(varying):
        lines.append(f"""\
    {{
      const double *row = in[{j}] + i * stride[{j}];
      for (long k = 0; k < {LANES}; k++) {{
        for (long j = 0; j < {item.size}; j++) xs[({place} + j) * {LANES} + k] = row[j];
        if (k + 1 < count) row += stride[{j}];
      }}
      for (long j = 0; j < {item.size}; j++) check += x[{place} + j] * 0.0;
    }}""")
        place += item.size
    return "\n".join(lines)


def _scatter(program: Program) -> str:
    lines = []
    start = 0
    for o, item in enumerate(program.outputs):
        stored = len(item.nonzero)
        sparse = stored < len(item.entries)
        where = f"place_{o}[e]" if sparse else "e"
        lines.append(f"""\
    if (layout[{o}] > 0) {{
      double *row = out[{o}] + i * layout[{o}];
      for (long k = 0; k < count; k++, row += layout[{o}])
        for (long e = 0; e < {stored}; e++)
          row[{where}] = ys[({start} + e) * {LANES} + k];
    }} else if (layout[{o}] < 0) {{
      double *column = out[{o}] + i;
      const double *from = ys + {start} * {LANES};
      if (count == {LANES})
        for (long e = 0; e < {stored}; e++, column -= layout[{o}], from += {LANES})
          memcpy(column, from, {LANES} * sizeof(double));
      else
        for (long e = 0; e < {stored}; e++, column -= layout[{o}], from += {LANES})
          memcpy(column, from, (size_t)count * sizeof(double));
    }}""")
        start += stored
    return "\n".join(lines)
