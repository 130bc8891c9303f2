"""C text: statements of a program, sine and cosine, names and comments."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from armwise import programs
from armwise.errors import ArgumentError
from armwise.programs import (
    COSINE,
    COSINE_SINGLE,
    HALF_PI,
    HALF_PI_SINGLE,
    SINE,
    SINE_SINGLE,
    Program,
    Scalar,
    horner,
    split_offset,
)

# Judgement: for people who read the code; compilers do not care.
_LONGEST = 60
"""Characters up to which an expression used once is written where it is used."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_RANK = {"add": 1, "sub": 1, "mul": 2, "div": 2, "neg": 3}
_ATOM = 4

_TRIGONOMETRIC = ("sin", "cos")


@dataclass(frozen=True)
class Precision:
    """A floating-point type: its C name, the suffix of its numbers and functions."""

    name: str
    type: str
    suffix: str
    digits: int
    unit: float

    def number(self, value: float) -> str:
        """Write a number so that it reads back the same."""
        # repr is the shortest text that reads back; nine digits determine a float32.
        text = repr(float(value)) if self.name == "double" else f"{value:.9g}"
        if not any(mark in text for mark in ".en"):
            text += ".0"
        return f"{text}{self.suffix}"


# Units are half a unit in the last place of one: the error of rounding to nearest.
DOUBLE = Precision("double", "double", "", 17, 2.0**-53)
SINGLE = Precision("float", "float", "f", 9, 2.0**-24)
PRECISIONS: Mapping[str, Precision] = {"double": DOUBLE, "float": SINGLE}


@dataclass
class Constants:
    """Numbers that get a name, shared by all functions of a file."""

    precision: Precision
    names: dict[str, str] = field(default_factory=dict)

    def name(self, value: float) -> str:
        """Return a number's name; one, two and a half stand for themselves."""
        text = self.precision.number(value)
        # Exact in any precision, and clearer as they are than as names.
        if value in (0.0, 0.5, 1.0, 2.0):
            return text
        return self.names.setdefault(text, f"K{len(self.names) + 1}")

    def lines(self) -> list[str]:
        """Return their definitions."""
        kind = self.precision.type
        return [f"static const {kind} {n} = {t};" for t, n in self.names.items()]


@dataclass(frozen=True)
class _Text:
    """An expression and how tightly its outermost operator binds."""

    text: str
    rank: int = _ATOM

    def inside(self, rank: int) -> str:
        return f"({self.text})" if self.rank < rank else self.text


class Statements:
    """Writes the steps of a program that differ from call to call.

    Args:
        program: The program.
        constants: Where numbers get their names.
        uniform: C text of every step that is the same for a whole call.
    """

    def __init__(
        self, program: Program, constants: Constants, uniform: Mapping[int, str]
    ) -> None:
        self.program = program
        self.constants = constants
        self.lines: list[str] = []
        self._type = constants.precision.type
        self._texts: dict[int, _Text] = {i: _Text(text) for i, text in uniform.items()}
        self._uses = _uses(program)
        self._count = 0

    def write(self) -> list[str]:
        """Return the statements, sines and cosines first, results last."""
        self._write_sines()
        for step in self.program.steps:
            if step.index in self.program.varying and step.index not in self._texts:
                self._write(step)
        for item in self.program.outputs:
            for k, entry in enumerate(item.entries):
                self.lines.append(f"{item.name}[{k}] = {self._entry(entry)};")
        return self.lines

    def _write_sines(self) -> None:
        """Take the sine and cosine of all angles in one call."""
        steps = [s for s in self.program.steps if s.op in _TRIGONOMETRIC]
        if not steps:
            return
        names = _angle_names([s.args[0] for s in steps])
        # Sorted by name: the same arm always gives the same text.
        order = sorted(names, key=lambda index: names[index])
        angles = {index: k for k, index in enumerate(order)}
        by_index = {s.index: s for s in self.program.steps}
        texts = [self._angle(by_index[index]) for index in angles]
        size = padded(len(angles))
        kind = self._type
        # Zeros fill the last vector register; their sines are not read.
        rows = ", ".join(texts + ["0"] * (size - len(texts)))
        self.lines += [
            f"const {kind} angle[{size}] = {{{rows}}};",
            f"{kind} sine[{size}], cosine[{size}];",
            f"sincos_{size}(angle, sine, cosine);",
        ]
        for step in sorted(steps, key=lambda s: (names[s.args[0].index], s.op)):
            index = step.args[0].index
            name = f"{step.op[0]}{names[index]}"
            source = "sine" if step.op == "sin" else "cosine"
            self.lines.append(f"const {kind} {name} = {source}[{angles[index]}];")
            self._texts[step.index] = _Text(name)

    def _angle(self, step: Scalar) -> str:
        """Write an angle: a coordinate, or a sum of several."""
        if step.index not in self._texts:
            for argument in step.args:
                self._angle(argument)
            text = self._expression(step)
            if step.op in _INFIX and self._is_shared(step):
                self._count += 1
                name = f"t{self._count}"
                self.lines.append(f"const {self._type} {name} = {text.text};")
                text = _Text(name)
            self._texts[step.index] = text
        return self._texts[step.index].text

    def _is_shared(self, angle: Scalar) -> bool:
        """Whether something besides its sine and cosine needs an angle."""
        return any(
            step.op not in _TRIGONOMETRIC and angle in step.args
            for step in self.program.steps
        )

    def _write(self, step: Scalar) -> None:
        text = self._expression(step)
        # Signs and atoms are written where they are used: a name would only hide them.
        single = self._uses[step.index] == 1 and len(text.text) <= _LONGEST
        if text.rank == _ATOM or step.op == "neg" or single:
            self._texts[step.index] = text
            return
        self._count += 1
        name = f"t{self._count}"
        self.lines.append(f"const {self._type} {name} = {text.text};")
        self._texts[step.index] = _Text(name)

    def _expression(self, step: Scalar) -> _Text:
        if step.op == "input":
            name, index = step.value  # type: ignore[misc]
            return _Text(f"{name}[{index}]")
        if step.op == "constant":
            return _Text(self.constants.name(float(step.value)))  # type: ignore[arg-type]
        args = [self._argument(argument) for argument in step.args]
        if step.op in _INFIX:
            rank = _RANK[step.op]
            # The second operand keeps brackets of equal rank: a - (b - c) needs them,
            # and a + (b + c) rounds as the program's bounds assume only with them.
            first, second = args[0].inside(rank), args[1].inside(rank + 1)
            return _Text(f"{first} {_INFIX[step.op]} {second}", rank)
        if step.op == "neg":
            return _Text(f"-{args[0].inside(_RANK['mul'] + 1)}", _RANK["neg"])
        if step.op == "sign":
            return _Text(f"sign_of({args[0].text})")
        function = "fabs" if step.op == "abs" else step.op
        suffix = self.constants.precision.suffix
        return _Text(f"{function}{suffix}({args[0].text})")

    def _argument(self, step: Scalar) -> _Text:
        if step.index not in self._texts:
            self._texts[step.index] = self._expression(step)
        return self._texts[step.index]

    def _entry(self, entry: Scalar | float) -> str:
        if not isinstance(entry, Scalar):
            value = float(entry)
            name = self.constants.name(abs(value))
            return f"-{name}" if value < 0 else name
        return self._argument(entry).text


def padded(count: int) -> int:
    """Return how many angles are taken at once: enough to fill vector registers."""
    # Four doubles fill a 256-bit register.
    return -(-count // 4) * 4


def _uses(program: Program) -> Counter[int]:
    """Count where each step is written; a sign is written with what it is put to."""
    uses: Counter[int] = Counter()
    for item in program.outputs:
        uses.update(x.index for x in item.entries if isinstance(x, Scalar))
    for step in reversed(program.steps):
        times = uses[step.index] if step.op == "neg" else 1
        for argument in step.args:
            uses[argument.index] += times
    return uses


def _angle_names(angles: list[Scalar]) -> dict[int, str]:
    """Name angles after their joints: 4 for q4, 23 for q2 + q3; a letter if taken."""
    names: dict[int, str] = {}
    for angle in angles:
        if angle.index in names:
            continue
        joints = _joints(angle)
        name = "".join(str(k) for k in joints) if max(joints, default=0) < 10 else (
            "_".join(str(k) for k in joints))  # fmt: skip
        while name in names.values():
            name += "b"
        names[angle.index] = name
    return names


def _joints(angle: Scalar) -> list[int]:
    inner, _ = split_offset(angle)
    if not isinstance(inner, Scalar):
        return []
    if inner.op == "input":
        return [int(inner.value[1]) + 1]  # type: ignore[index]
    return sorted({k for argument in inner.args for k in _joints(argument)})


# Sine and cosine of all angles at once, without branches.

ULP = 2.0
"""Largest error in units in the last place, for angles up to FARTHEST."""

FARTHEST = {"double": 1.0e5, "float": 1.0e3}
"""Largest angle in [rad] for which that holds.

Beyond it, quarter turns are clipped to this number so that they fit an int: a result is
then wrong, but never undefined. Truncating after a shift rounds without a branch."""


def sincos_text(size: int, precision: Precision) -> str:
    """Return a C function for `size` angles at once."""
    is_double = precision.name == "double"
    number, suffix = precision.number, precision.suffix
    parts = HALF_PI if is_double else HALF_PI_SINGLE
    farthest = FARTHEST[precision.name]
    return fill(
        "sincos.c.in",
        SIZE=size,
        TYPE=precision.type,
        ULP=int(ULP),
        FARTHEST=f"{farthest:g}",
        TWO_OVER_PI=number(0.6366197723675814),
        MOST=number(round(farthest)),
        # The power of two above the clip: exact, and makes every shifted number
        # positive, where truncation rounds down.
        SHIFT=131072 if is_double else 1024,
        SUFFIX=suffix,
        HALF=number(0.5),
        ONE=number(1.0),
        REDUCED=_reduced([number(part) for part in parts]),
        SINE=horner(SINE if is_double else SINE_SINGLE, suffix),
        COSINE=horner(COSINE if is_double else COSINE_SINGLE, suffix),
    )


def _reduced(parts: list[str]) -> str:
    """Take k quarter turns from x, the largest part first: nothing is lost."""
    text = "x"
    for part in parts:
        text = f"({text} - k * {part})"
    return text[1:-1]


# Names and comments.

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
# Judgement: C promises 31 characters of external names, linkers take far more.
_LONGEST_NAME = 40

_WORDS = """
auto break case char const continue default do double else enum extern float for goto
if inline int long register restrict return short signed sizeof static struct switch
typedef union unsigned void volatile while main
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept bitand bitor
bool catch char8_t char16_t char32_t class co_await co_return co_yield compl concept
consteval constexpr constinit const_cast decltype delete dynamic_cast explicit export
false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public reflexpr reinterpret_cast requires static_assert static_cast
synchronized template this thread_local throw true try typeid typename typeof using
virtual wchar_t xor xor_eq std import module final override
linux unix i386 arm vax sun hpux
abort abs access acos acosh asin asinh atan atan2 atanh atexit atof atoi atol cbrt ceil
clock close copysign cos cosh div environ erf erfc errno exit exp exp2 expm1 fabs fdim
floor fma fmax fmin fmod free frexp gamma getenv hypot ilogb index isfinite isinf isnan
j0 j1 jn labs ldexp ldiv lgamma link llabs llrint llround log log10 log1p log2 logb
lrint lround malloc memchr memcmp memcpy memmove memset modf nan nearbyint nextafter
open pause pow printf puts qsort raise rand read realloc remainder remove remquo rename
rindex rint round scalbln scalbn signal sin sinh sleep sqrt srand stderr stdin stdout
strcmp strlen system tan tanh tgamma time trunc write y0 y1 yn double_t float_t size_t
"""
"""Words of C and C++, macros compilers define, and functions whose names the standard
headers take: a namespace of C++ cannot have them."""
_RESERVED = frozenset(_WORDS.split())


def prefix_for(arm_name: str, requested: str | None) -> str:
    """Return the prefix of all generated names.

    Args:
        arm_name: The arm's own name: what is not a letter, digit or `_` becomes `_`.
        requested: What the user asked for instead; must be an identifier as it is.
    """
    if requested is not None:
        if not is_identifier(requested):
            raise ArgumentError(
                f"name={requested!r} cannot begin a C name. Use up to "
                f"{_LONGEST_NAME} letters, digits and underscores, a letter first, and "
                "no word of C, C++ or their libraries."
            )
        return requested
    prefix = re.sub(r"[^A-Za-z0-9_]+", "_", arm_name).strip("_")[:_LONGEST_NAME]
    if prefix and (prefix[0].isdigit() or prefix in _RESERVED):
        prefix = f"arm_{prefix}"[:_LONGEST_NAME]
    if not is_identifier(prefix):
        raise ArgumentError(
            f"No C name can be made of the arm's name {arm_name!r}. "
            "Choose one: generate(..., name='my_arm')."
        )
    return prefix


def is_identifier(text: str) -> bool:
    """Whether a text may stand as a name in C, C++ and Python."""
    return (
        bool(_IDENTIFIER.match(text))
        and len(text) <= _LONGEST_NAME
        and text not in _RESERVED
        and not keyword.iskeyword(text)
    )


def comment(text: str) -> str:
    """Return a text that cannot end a C comment or confuse a reader."""
    plain = "".join(c if c.isascii() and c.isprintable() else "?" for c in str(text))
    # A backslash at the end of a line would join it with the next.
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")


# Template files of this folder.

_FOLDER = Path(__file__).parent / "templates"


def fill(template: str, **values: object) -> str:
    """Return a template of this folder with its @PLACEHOLDERS@ replaced."""
    return programs.fill(_FOLDER / template, **values)
