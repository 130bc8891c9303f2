"""Operation count of programs, and a search for equal programs with fewer."""

from __future__ import annotations

import random
from collections.abc import Sequence

from armwise.programs.common_subexpressions import extract
from armwise.programs.polynomials import Monomial, System, expand, is_one
from armwise.programs.program import Output, Program, build_program
from armwise.programs.scalars import Graph, Number, Scalar

LONGEST = 40
"""Sums of up to this many terms may be copied into the sums that use them; beyond,
the number of terms explodes and the search takes minutes."""

_Signed = tuple[float, Scalar]
"""A sign and a node: signs are free, so they are carried to where they are used."""


def fewer_operations(program: Program, tries: int = 4, seed: int = 0) -> Program:
    """Take out common factors, sums and products; return the cheapest program found.

    Exact but for rounding. The time grows with the square of the longest sum: a few
    milliseconds a try for a reduced six-joint model, a second for a full regressor.

    Args:
        program: The program.
        tries: How often to start again, breaking ties differently.
        seed: Of those choices; the same seed gives the same program.
    """
    rng = random.Random(seed)
    best = program
    for k in range(tries):
        # Half of the tries keep sums apart, and those after the fourth take gains that
        # are not quite the best: a greedy search ends in local minima.
        system = expand(program, longest=LONGEST if k % 2 else 0)
        extract(system, rng, noise=0.0 if k < 4 else 0.6 * rng.random())
        candidate = rebuild(system, program)
        if operations(candidate) < operations(best):
            best = candidate
    return best


def operations(program: Program) -> int:
    """Multiplications, additions and divisions together."""
    counts = program.counts
    return counts["multiplications"] + counts["additions"] + counts["divisions"]


def rebuild(system: System, program: Program) -> Program:
    """Write polynomials as a program with the inputs and outputs of another."""
    build = _Build(system)
    entries = iter(system.outputs)
    outputs = []
    for item in program.outputs:
        nodes = tuple(build.entry(next(entries)) for _ in item.entries)
        outputs.append(Output(item.name, item.shape, nodes))
    return build_program(program.name, program.inputs, tuple(outputs))


class _Build:
    """Writes sums of products as nodes, each once, in the order needed."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.graph = Graph()
        self._done: dict[int, _Signed] = {}
        self._copied: dict[int, Number] = {}

    def entry(self, item: float | tuple[float, int]) -> Number:
        """Return an entry of an output."""
        if not isinstance(item, tuple):
            return item
        sign, node = self._value(item[1])
        return node if sign * item[0] > 0 else self.graph.raw("neg", node)

    def _value(self, symbol: int) -> _Signed:
        """Return the node of a symbol, once all that it needs is there."""
        # A stack of our own: chains of sums may be deeper than Python's recursion
        # limit.
        stack = [symbol]
        while stack:
            needed = [x for x in self._needs(stack[-1]) if x not in self._done]
            if stack[-1] in self._done or not needed:
                top = stack.pop()
                if top not in self._done:
                    self._done[top] = self._make(top)
            else:
                stack.extend(needed)
        return self._done[symbol]

    def _needs(self, symbol: int) -> Sequence[int]:
        if symbol in self.system.leaves:
            return self.system.leaves[symbol].args
        return [x for monomial in self.system.sums[symbol] for x in monomial]

    def _make(self, symbol: int) -> _Signed:
        leaf = self.system.leaves.get(symbol)
        if leaf is None:
            return self._sum(symbol)
        if not leaf.args:
            return 1.0, self._scalar(self._copy(leaf.step))
        args = [self._done[x] for x in leaf.args]
        nodes = [n if s > 0 else self.graph.raw("neg", n) for s, n in args]
        if leaf.step.op in ("sin", "cos"):  # quarter turns fold away, signs come out
            node = self._scalar(self.graph.apply(leaf.step.op, nodes[0]))
            return (-1.0, node.args[0]) if node.op == "neg" else (1.0, node)
        return 1.0, self.graph.raw(leaf.step.op, *nodes)

    def _copy(self, step: Scalar) -> Number:
        """Copy an input, or a step that is the same for a whole call."""
        if step.index not in self._copied:
            args = [self._copy(argument) for argument in step.args]
            if step.op == "input":
                node: Number = self.graph.input(*step.value)  # type: ignore[misc]
            elif step.op == "constant":
                node = float(step.value)  # type: ignore[arg-type]
            else:
                node = self.graph.operate(step.op, args)
            self._copied[step.index] = node
        return self._copied[step.index]

    def _scalar(self, x: Number) -> Scalar:
        return x if isinstance(x, Scalar) else self.graph.constant(x)

    def _sum(self, symbol: int) -> _Signed:
        """Add terms in pairs, so that additions need not wait for each other."""
        uniform: Number = 0.0
        terms: list[_Signed] = []
        for monomial, coefficient in self.system.sums[symbol].items():
            if self.system.factors(monomial):
                terms.append(self._term(monomial, coefficient))
            else:
                uniform = uniform + self._uniform_product(monomial, coefficient)
        if isinstance(uniform, Scalar) or uniform:
            sign = -1.0 if not isinstance(uniform, Scalar) and uniform < 0 else 1.0
            terms.append((sign, self._scalar(sign * uniform)))
        while len(terms) > 1:
            pairs = [self._pair(terms[k : k + 2]) for k in range(0, len(terms), 2)]
            terms = pairs
        return terms[0] if terms else (1.0, self.graph.constant(0.0))

    def _pair(self, terms: Sequence[_Signed]) -> _Signed:
        if len(terms) == 1:
            return terms[0]
        (s, a), (t, b) = terms
        if s == t:
            return s, self.graph.raw("add", a, b)
        return (1.0, self.graph.raw("sub", *((a, b) if s > 0 else (b, a))))

    def _uniform_product(self, monomial: Monomial, coefficient: float) -> Number:
        product: Number = coefficient
        for x in monomial:
            sign, node = self._done[x]
            product = product * node * sign
        return product

    def _term(self, monomial: Monomial, coefficient: float) -> _Signed:
        """Multiply what varies, then by what is known, unless it is one."""
        uniform = tuple(x for x in monomial if x in self.system.uniform)
        factor = self._uniform_product(uniform, coefficient)
        sign = 1.0
        if not isinstance(factor, Scalar) and factor < 0:
            sign, factor = -1.0, -factor
        factors: list[Scalar] = []
        for x in monomial:
            if x not in self.system.uniform:
                s, node = self._done[x]
                sign *= s
                factors.append(node)
        if isinstance(factor, Scalar) or not is_one(factor):
            # In front, so that it is multiplied last: products of what varies can be
            # shared between terms with different coefficients.
            factors.insert(0, self._scalar(factor))
        while len(factors) > 1:
            last = factors.pop()
            factors[-1] = self.graph.raw("mul", factors[-1], last)
        return sign, factors[0]
