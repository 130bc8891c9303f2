"""C text of a program: one straight-line core, over vectors of samples or one sample.

The core is written over a type V. With V a vector of eight doubles (GCC and Clang
vector types, lowered to what the processor has) it runs eight samples at once; with V a
double it runs one. Around it, a loop gathers rows into vectors and scatters results.

sin r = r + r z S(z) and cos r = 1 − z/2 + z² C(z) with z = r². The coefficients are
minimax fits (Remez, 60 digits, rounded to doubles). The relative errors they leave are
far below rounding: 3.6e−18 and 5.6e−20 in double, 3.8e−9 and 1.2e−10 in single.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from armwise.errors import ArgumentError
from armwise.files import write_atomically
from armwise.programs.program import Program
from armwise.programs.scalars import Number, Scalar

_TEMPLATES = Path(__file__).parent / "templates"
_PLACEHOLDER = re.compile(r"@([A-Z_]+)@")


def fill(template: Path, **values: object) -> str:
    """Return the text of a template file with its @PLACEHOLDERS@ replaced."""
    return _PLACEHOLDER.sub(
        lambda match: str(values[match.group(1)]), _template_text(template)
    )


def write_c(
    template: Path, folder: str | Path, name: str, values: Mapping[str, object]
) -> list[Path]:
    """Write NAME.h and NAME.c from a pair of template files; return their paths.

    Args:
        template: Path of the pair without its endings, `.h.in` and `.c.in`.
        folder: Where to; created if need be.
        name: Prefix of all names in C: the templates' @NAME@ and @GUARD@.
        values: Their other placeholders.

    Raises:
        ArgumentError: If the name is none in C.
    """
    if not name.isidentifier() or not name.isascii():
        raise ArgumentError(f"{name!r} is no name in C.")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{name}{ending}" for ending in (".h", ".c")]
    for path in paths:
        source = template.with_name(f"{template.name}{path.suffix}.in")
        text = fill(source, NAME=name, GUARD=name.upper(), **values)
        write_atomically(path, text)
    return paths


def c_numbers(values: Iterable[float]) -> str:
    """Numbers with all their digits, as C's initialisers take them."""
    return ", ".join(repr(float(x)) for x in values)


@cache
def _template_text(template: Path) -> str:
    return template.read_text(encoding="utf-8")


# Polynomials over one reduced interval, without branches or tables: the compiler can
# then do a whole vector of angles at once, which libm's functions prevent.
# Coefficients of sine and cosine between −π/4 and π/4.

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
"""π/2 as three summands of 33, 33 and 53 bits: k times each is exact for |k| < 2²⁰."""

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


LANES = 8
"""Samples in a vector: 64 bytes of doubles, one cache line and one AVX-512 register."""

# The first two parts of π/2 have 33 bits, so k times them is exact up to k = 2²⁰.
_TRIGONOMETRY = {
    "REDUCTION": fill(_TEMPLATES / "angle_reduction.c.in"),
    "SINE": horner(SINE),
    "COSINE": horner(COSINE),
}


def vector_prelude(lanes: int | str) -> str:
    """Return the helpers of programs over a type V of some doubles.

    Args:
        lanes: How many, or the name of a macro that says so.
    """
    return fill(_TEMPLATES / "vector_prelude.c.in", LANES=lanes, **_TRIGONOMETRY)


VECTOR_PRELUDE = vector_prelude(LANES)
"""C on which cores over vectors of samples rest."""

SCALAR_PRELUDE = fill(_TEMPLATES / "scalar_prelude.c.in", **_TRIGONOMETRY)
"""C on which cores over one sample rest."""


def loop_source(program: Program) -> str:
    """Return the C text of a function that runs a program over many samples.

    Its C signature is `long f(n, in, stride, uniform, out, layout)`: arrays by input
    and output; `stride` is the distance between samples of an input, `layout` that of
    an output or, if negative, minus the distance between its columns when only
    structural non-zeros are stored, column by column. It returns −1, or the first
    sample that holds a number that is not finite.
    """
    varying = [item for item in program.inputs if not item.is_uniform]
    body = fill(
        _TEMPLATES / "loop.c.in",
        NAME=program.name,
        LANES=LANES,
        UNIFORMS=max(1, count_uniform(program)),
        INPUTS=max(1, sum(item.size for item in varying)),
        OUTPUTS=max(1, sum(len(item.nonzero) for item in program.outputs)),
        GATHER=_gather(program),
        SCATTER=_scatter(program),
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
    stored = [item.entries[k] for item in program.outputs for k in item.nonzero]
    core += [_store(program, k, entry, names) for k, entry in enumerate(stored)]
    # Programs may leave an argument unused, and generated C must compile under -Werror.
    prepare += ["  (void)uniform; (void)u;", "}"]
    core += ["  (void)x; (void)u; (void)y;", "}"]
    return "\n".join([*prepare, *core, ""])


def count_uniform(program: Program) -> int:
    """Count the steps whose value is the same for every sample of a call."""
    return sum(
        step.index not in program.varying and step.op != "constant"
        for step in program.steps
    )


def _names(program: Program) -> dict[int, str]:
    """Name every step in C: x[..] inputs, u[..] fixed in a call, t.. all others."""
    start: dict[str, int] = {}
    size = 0
    for item in program.inputs:
        if not item.is_uniform:
            start[item.name] = size
            size += item.size
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
    # Two comparisons instead of a branch; sign(0) is 0 and NaN gives 0.
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


def _store(program: Program, index: int, entry: Number, names: dict[int, str]) -> str:
    if not isinstance(entry, Scalar):
        return f"  y[{index}] = (V){{0}} + {entry!r};"
    if entry.index in program.varying:
        return f"  y[{index}] = {names[entry.index]};"
    # A double added to a zero vector fills all its lanes.
    return f"  y[{index}] = (V){{0}} + {names[entry.index]};"


def _tables(program: Program) -> str:
    """Return where each stored entry of a sparse output goes in its row."""
    lines = []
    for o, item in enumerate(program.outputs):
        if len(item.nonzero) < len(item.entries):
            indices = ", ".join(map(str, item.nonzero)) or "0"
            lines.append(f"static const int place_{o}[] = {{{indices}}};")
    return "\n".join(lines)


def _gather(program: Program) -> str:
    """Return C that copies rows of every input into vectors, lane by lane."""
    texts = []
    start = 0
    varying = [item for item in program.inputs if not item.is_uniform]
    for k, item in enumerate(varying):
        sizes = {"INPUT": k, "SIZE": item.size, "START": start, "LANES": LANES}
        texts.append(fill(_TEMPLATES / "gather.c.in", **sizes))
        start += item.size
    return "".join(texts)


def _scatter(program: Program) -> str:
    """Return C that copies vectors of every output to rows, or to columns."""
    texts = []
    start = 0
    for o, item in enumerate(program.outputs):
        stored = len(item.nonzero)
        is_sparse = stored < len(item.entries)
        texts.append(
            fill(
                _TEMPLATES / "scatter.c.in",
                OUTPUT=o,
                STORED=stored,
                START=start,
                INDEX=f"place_{o}[e]" if is_sparse else "e",
                LANES=LANES,
            )
        )
        start += stored
    return "".join(texts)
