"""Programs as polynomials: sums of products over leaves and over each other.

The form in which operations are saved: products and sums have no order here, signs
and numbers are coefficients, and what several sums have in common can be seen.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from armwise.programs.program import Program
from armwise.programs.scalars import Scalar

Monomial = tuple[int, ...]
"""Symbols multiplied, ascending; one that is squared stands twice."""

Sum = dict[Monomial, float]
"""Coefficient of each product; the empty product is a number."""

SAME = 1e-13
"""Numbers this close to each other, relatively, are one number.

Hundreds of roundings away from 2⁻⁵³, and closer than any two measured numbers."""

_VANISHED = 1e-15
"""A coefficient this much smaller than its summands is rounding: a few times 2⁻⁵³."""


@dataclass(frozen=True)
class Leaf:
    """A symbol that is not a sum: an input, a function, a quotient.

    Attributes:
        step: Where it comes from.
        args: Symbols of what it is taken of; empty for inputs and for steps that are
            the same for a whole call, which are kept as they are.
    """

    step: Scalar
    args: tuple[int, ...] = ()


@dataclass
class System:
    """Sums that refer to leaves and to each other.

    Attributes:
        sums, leaves: By symbol.
        uniform: Leaves that are the same for a whole call: they cost nothing.
        outputs: The program's entries in order: a number, or a sign and a symbol.
    """

    sums: dict[int, Sum] = field(default_factory=dict)
    leaves: dict[int, Leaf] = field(default_factory=dict)
    uniform: set[int] = field(default_factory=set)
    outputs: list[float | tuple[float, int]] = field(default_factory=list)
    _count: int = 0

    def symbol(self) -> int:
        """Return a new symbol."""
        self._count += 1
        return self._count - 1

    def factors(self, monomial: Monomial) -> int:
        """How many of its symbols differ from sample to sample."""
        return sum(x not in self.uniform for x in monomial)

    def multiplications(self, coefficient: float, monomial: Monomial) -> int:
        """What a product costs; known numbers are multiplied beforehand."""
        varying = self.factors(monomial)
        has_factor = len(monomial) > varying or not is_one(coefficient)
        return max(0, varying + has_factor - 1) if varying else 0

    def cost(self) -> tuple[int, int]:
        """Multiplications and additions of all that the outputs need."""
        counted: set[int] = set()
        stack = [item[1] for item in self.outputs if isinstance(item, tuple)]
        multiplications = additions = 0
        while stack:
            x = stack.pop()
            if x in counted:
                continue
            counted.add(x)
            if x in self.leaves:
                stack.extend(self.leaves[x].args)
                continue
            terms = self.sums[x]
            varying = sum(self.factors(m) > 0 for m in terms)
            additions += max(0, varying + (varying < len(terms)) - 1)
            for monomial, coefficient in terms.items():
                multiplications += self.multiplications(coefficient, monomial)
                stack.extend(monomial)
        return multiplications, additions


def expand(program: Program, longest: int = 0) -> System:
    """Write a program as polynomials.

    Args:
        program: The program.
        longest: Sums of up to this many terms that are used several times are copied
            into the sums that use them; longer ones keep a symbol of their own.
    """
    return _Expansion(program, longest).run()


class _Expansion:
    """Walks a program's steps and writes each as a sum."""

    def __init__(self, program: Program, longest: int) -> None:
        self.program = program
        self.longest = longest
        self.system = System()
        self.forms: dict[int, Sum] = {}
        self.named: dict[int, int] = {}
        self.uses: dict[int, int] = defaultdict(int)
        for step in program.steps:
            for argument in step.args:
                self.uses[argument.index] += 1
        for item in program.outputs:
            for entry in item.entries:
                if isinstance(entry, Scalar):
                    self.uses[entry.index] += 1

    def run(self) -> System:
        for step in self.program.steps:
            self.forms[step.index] = self._form(step)
        symbols: dict[tuple[tuple[Monomial, float], ...], int] = {}
        for item in self.program.outputs:
            for entry in item.entries:
                self.system.outputs.append(self._output(entry, symbols))
        return self.system

    def _form(self, step: Scalar) -> Sum:
        if step.op == "constant":
            value = float(step.value)  # type: ignore[arg-type]
            return {(): value} if value else {}
        if step.index not in self.program.varying:
            return self._leaf(Leaf(step), is_uniform=True)
        match step.op:
            case "input":
                return self._leaf(Leaf(step))
            case "neg":
                return scaled(self._term(step.args[0]), -1.0)
            case "add":
                return plus(self._term(step.args[0]), self._term(step.args[1]))
            case "sub":
                right = scaled(self._term(step.args[1]), -1.0)
                return plus(self._term(step.args[0]), right)
            case "mul":
                return self._product(step)
        args = tuple(self._single(argument) for argument in step.args)
        return self._leaf(Leaf(step, args))

    def _leaf(self, leaf: Leaf, is_uniform: bool = False) -> Sum:
        symbol = self.system.symbol()
        self.system.leaves[symbol] = leaf
        if is_uniform:
            self.system.uniform.add(symbol)
        return {(symbol,): 1.0}

    def _term(self, step: Scalar) -> Sum:
        """Copy a step's sum, or refer to it by its symbol."""
        form = self.forms[step.index]
        # A sum that is used once costs nothing to copy, and its terms can then meet
        # those of the sum that uses it.
        copied = self.uses[step.index] == 1 or len(form) <= max(1, self.longest)
        return form if copied else self._factor(step)

    def _factor(self, step: Scalar) -> Sum:
        """Refer to a step: by its symbol if it has several terms."""
        form = self.forms[step.index]
        return form if len(form) <= 1 else {(self._symbol(step),): 1.0}

    def _product(self, step: Scalar) -> Sum:
        a, b = (self._factor(argument) for argument in step.args)
        if not a or not b:
            return {}
        ((m, c),), ((n, d),) = a.items(), b.items()
        return {tuple(sorted(m + n)): c * d}

    def _single(self, step: Scalar) -> int:
        """Return a symbol that stands for exactly this step."""
        form = self.forms[step.index]
        if len(form) == 1:
            ((monomial, coefficient),) = form.items()
            # Exactly one, not within `SAME`: the symbol must stand for the step itself.
            if len(monomial) == 1 and coefficient == 1.0:
                return monomial[0]
        return self._symbol(step)

    def _symbol(self, step: Scalar) -> int:
        if step.index not in self.named:
            symbol = self.system.symbol()
            self.system.sums[symbol] = dict(self.forms[step.index])
            self.named[step.index] = symbol
        return self.named[step.index]

    def _output(
        self,
        entry: Scalar | float,
        symbols: dict[tuple[tuple[Monomial, float], ...], int],
    ) -> float | tuple[float, int]:
        """Refer to an entry; entries that are equal but for a sign share a symbol."""
        if not isinstance(entry, Scalar):
            return float(entry)
        form = self.forms[entry.index]
        if not form or list(form) == [()]:
            return form.get((), 0.0)
        terms = tuple(sorted(form.items()))
        # Normalised to a positive first coefficient: a and −a then share a key.
        sign = -1.0 if terms[0][1] < 0 else 1.0
        key = tuple((m, sign * c) for m, c in terms)
        if key not in symbols:
            symbols[key] = self.system.symbol()
            self.system.sums[symbols[key]] = dict(key)
        return sign, symbols[key]


def is_one(x: float) -> bool:
    """Whether a coefficient is ±1 but for rounding, and so costs nothing."""
    return abs(abs(x) - 1.0) < SAME


def plus(a: Sum, b: Sum) -> Sum:
    """Return a + b, without terms that cancel."""
    total = dict(a)
    for monomial, coefficient in b.items():
        value = total.get(monomial, 0.0) + coefficient
        # Relative to the summand: an absolute bound would drop small parameters.
        if abs(value) <= _VANISHED * abs(coefficient):
            total.pop(monomial, None)
        else:
            total[monomial] = value
    return total


def scaled(a: Sum, factor: float) -> Sum:
    """Return factor · a."""
    return {monomial: factor * coefficient for monomial, coefficient in a.items()}
