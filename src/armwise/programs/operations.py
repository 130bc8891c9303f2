"""Operation count, and equal programs with fewer by common subexpressions."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from armwise.programs.polynomials import Monomial, Sum, System, expand, is_one
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


# Common sums and products of polynomials, extracted where they save most.
#
# Two kinds of thing are taken out and given a symbol of their own: a product of two
# factors that several terms contain, and a sum of two terms a + ρ b that several places
# contain, each multiplied by something: α u a + α ρ u b. The latter is at once common
# factors (one place, u not 1), shared sums (several places, u = 1) and what is between.
# The method is that of logic synthesis (Rajski and Vasudevamurthy 1992), over numbers.

Pair = tuple[Monomial, Monomial, float]
"""a, b and ρ of a sum a + ρ b, with a < b."""

Coefficient = tuple[float, Monomial]
"""Size of a number and the uniform symbols that multiply it."""

Product = tuple[Coefficient | int, int]
"""A known number or a symbol, and a symbol, multiplied."""

_TIE = 0.4
"""Gains this close are chosen between at random: gains are whole numbers, so only equal
ones tie, and another try breaks the tie otherwise."""


@dataclass(frozen=True)
class _Occurrence:
    """Where a + ρ b occurs: terms first and second of a sum, both times `common`."""

    symbol: int
    first: Monomial
    second: Monomial
    common: Monomial


@dataclass(frozen=True)
class _Kernel:
    """A sum of two terms to take out, where from, and what that saves."""

    gain: float
    first: float
    second: float
    occurrences: tuple[_Occurrence, ...]


def extract(system: System, rng: random.Random, noise: float = 0.0) -> None:
    """Take out common sums and products until nothing more is saved.

    Args:
        system: Changed in place.
        rng: Breaks ties, so that another try may end elsewhere.
        noise: How far below the best gain a choice may be, in operations.
    """
    # Greedy: the best set of common subexpressions is a hard combinatorial problem, so
    # the largest gain is taken at every step and `noise` varies the path.
    extractor = _Extractor(system, rng, noise)
    terms = sum(len(m) + 1 for terms in system.sums.values() for m in terms)
    for _ in range(2 * terms):  # each step saves an operation: far fewer are needed
        if not extractor.step():
            return


class _Extractor:
    """Knows of every pair where it occurs, and what taking it out would save."""

    def __init__(self, system: System, rng: random.Random, noise: float) -> None:
        self.system = system
        self.rng = rng
        self.noise = noise
        self.occurrences: dict[Pair, dict[int, list[_Occurrence]]] = defaultdict(dict)
        self.kernels: dict[Pair, _Kernel] = {}
        self.products: dict[Product, dict[int, int]] = defaultdict(dict)
        self.pairs_of: dict[int, set[Pair]] = {}
        self.products_of: dict[int, set[Product]] = {}
        for symbol in list(system.sums):
            self._enter(symbol)

    def step(self) -> bool:
        """Take out the best thing there is; say whether there was one."""
        sums = [(k.gain, pair) for pair, k in self.kernels.items() if k.gain > 0]
        products = [
            (gain, product)
            for product, where in self.products.items()
            if (gain := sum(where.values()) - 1) > 0
        ]
        gains = [gain for gain, _ in sums] + [gain for gain, _ in products]
        if not gains:
            return False
        least = max(gains) - _TIE - self.noise
        best = [pair for gain, pair in sums if gain >= least]
        candidates = [product for gain, product in products if gain >= least]
        choice = self.rng.randrange(len(best) + len(candidates))
        if choice < len(best):
            self._take_sum(best[choice], self.kernels[best[choice]])
        else:
            self._take_product(candidates[choice - len(best)])
        return True

    def _enter(self, symbol: int) -> None:
        """Note what a sum contains."""
        terms = self.system.sums[symbol]
        occurrences: dict[Pair, list[_Occurrence]] = defaultdict(list)
        # Terms may have cancelled to nothing when a product was put in their place.
        items = [(m, c) for m, c in terms.items() if c]
        for i, (m, c) in enumerate(items):
            for n, d in items[:i]:
                common, a, b = _common(m, n)
                # One order of the two terms, and the ratio accordingly: a + ρ b and b +
                # a/ρ are, up to a factor, one pair.
                if a < b:
                    occurrences[a, b, _rounded(d / c)].append(
                        _Occurrence(symbol, m, n, common)
                    )
                else:
                    occurrences[b, a, _rounded(c / d)].append(
                        _Occurrence(symbol, n, m, common)
                    )
        self.pairs_of[symbol] = set(occurrences)
        for pair, where in occurrences.items():
            self.occurrences[pair][symbol] = where
            self._weigh(pair)
        counted = self._products_in(terms)
        self.products_of[symbol] = set(counted)
        for product, count in counted.items():
            self.products[product][symbol] = count

    def _leave(self, symbol: int) -> None:
        """Forget what a sum contained."""
        for pair in self.pairs_of.pop(symbol):
            del self.occurrences[pair][symbol]
            self._weigh(pair)
        for product in self.products_of.pop(symbol):
            del self.products[product][symbol]
            if not self.products[product]:
                del self.products[product]

    def _weigh(self, pair: Pair) -> None:
        """Work out again what taking out a sum would save."""
        where = self.occurrences.get(pair)
        if not where:
            self.occurrences.pop(pair, None)
            self.kernels.pop(pair, None)
            return
        self.kernels[pair] = self._kernel(pair, where)

    def _kernel(self, pair: Pair, where: dict[int, list[_Occurrence]]) -> _Kernel:
        """Choose a scale of a + ρ b that saves most."""
        disjoint = tuple(_disjoint(where))
        a, b, _ = pair
        terms = self.system.sums[disjoint[0].symbol]
        # Pairs are compared by a rounded ratio; what is written must be the exact one.
        ratio = terms[disjoint[0].second] / terms[disjoint[0].first]  # not rounded
        # Parameters of a link that weighs nothing may differ by 300 orders of size:
        # a ratio that is no number any more cannot be factored out.
        if ratio == 0.0 or not isfinite(ratio) or not isfinite(1.0 / ratio):
            return _Kernel(-1.0, 1.0, ratio, disjoint)
        # Only scales at which some factor becomes ±1 can save a multiplication.
        sizes = {1.0, 1.0 / abs(ratio)}
        sizes |= {abs(self.system.sums[p.symbol][p.first]) for p in disjoint}
        best = _Kernel(-1.0, 1.0, ratio, disjoint)
        for size in sizes:
            first, second = _unit(size), _unit(size * ratio)
            # The sum itself costs an addition and its own products, once.
            gain = -1.0 - self.system.multiplications(first, a)
            gain -= self.system.multiplications(second, b)
            gain += sum(self._saving(one, first) for one in disjoint)
            # Both terms are the same for a whole call: their sum costs nothing anyway.
            if self._is_named(a, b):
                gain = -1.0
            if gain > best.gain:
                best = _Kernel(gain, first, second, disjoint)
        return best

    def _is_named(self, a: Monomial, b: Monomial) -> bool:
        return not self.system.factors(a) and not self.system.factors(b)

    def _saving(self, occurrence: _Occurrence, first: float) -> float:
        """Operations that one place has less when it refers to the sum."""
        terms = self.system.sums[occurrence.symbol]
        c, d = terms[occurrence.first], terms[occurrence.second]
        before = self.system.multiplications(c, occurrence.first)
        before += self.system.multiplications(d, occurrence.second)
        varying = self.system.factors(occurrence.common)
        is_scaled = len(occurrence.common) > varying or not is_one(c / first)
        return 1.0 + before - (varying + is_scaled)

    def _take_sum(self, pair: Pair, kernel: _Kernel) -> None:
        a, b, _ = pair
        first, second = kernel.first, kernel.second
        symbol = None
        for occurrence in kernel.occurrences:  # the sum may be there already
            terms = self.system.sums[occurrence.symbol]
            size = abs(terms[occurrence.first] / kernel.first)
            if len(terms) == 2 and not occurrence.common and is_one(size):
                symbol = occurrence.symbol
                first = terms[occurrence.first]
        touched = {occurrence.symbol for occurrence in kernel.occurrences} - {symbol}
        if symbol is None:
            symbol = self.system.symbol()
            self.system.sums[symbol] = {a: first, b: second}
            self.pairs_of[symbol], self.products_of[symbol] = set(), set()
        for other in touched:
            self._leave(other)
        for occurrence in kernel.occurrences:
            if occurrence.symbol != symbol:
                terms = self.system.sums[occurrence.symbol]
                factor = _unit(terms.pop(occurrence.first) / first)
                del terms[occurrence.second]
                _add_term(terms, (*occurrence.common, symbol), factor)
        for other in (*touched, symbol):
            if other in self.pairs_of:
                self._leave(other)
            self._enter(other)

    def _products_in(self, terms: Sum) -> dict[Product, int]:
        """Count the pairs of factors in the terms of a sum."""
        counted: dict[Product, int] = defaultdict(int)
        for monomial, coefficient in terms.items():
            coefficient_factor, varying = self._split(monomial, coefficient)
            if coefficient_factor is not None:
                for x in set(varying):
                    counted[coefficient_factor, x] += 1
            for i, x in enumerate(varying):
                for y in varying[:i]:
                    counted[y, x] += 1
        return counted

    def _split(
        self, monomial: Monomial, coefficient: float
    ) -> tuple[Coefficient | None, Monomial]:
        """Part a term into what is known beforehand and what varies."""
        uniform = tuple(x for x in monomial if x in self.system.uniform)
        varying = tuple(x for x in monomial if x not in self.system.uniform)
        size = _rounded(abs(coefficient))
        factor = (size, uniform) if not is_one(size) or uniform else None
        return factor, varying

    def _take_product(self, product: Product) -> None:
        a, b = product
        symbol = self.system.symbol()
        if isinstance(a, tuple):
            size = self._exactly(a, product)
            self.system.sums[symbol] = {tuple(sorted((*a[1], b))): size}
        else:
            self.system.sums[symbol] = {tuple(sorted((a, b))): 1.0}
        for other in list(self.products[product]):
            self._leave(other)
            changed: Sum = {}
            for monomial, coefficient in self.system.sums[other].items():
                term = self._divided(monomial, coefficient, product, symbol)
                _add_term(changed, *term)
            self.system.sums[other] = changed
            self._enter(other)
        self._enter(symbol)

    def _exactly(self, factor: Coefficient, product: Product) -> float:
        """Return a number that was rounded to be compared as it was before."""
        terms = self.system.sums[next(iter(self.products[product]))]
        return next(abs(c) for m, c in terms.items() if self._split(m, c)[0] == factor)

    def _divided(
        self, monomial: Monomial, coefficient: float, product: Product, symbol: int
    ) -> tuple[Monomial, float]:
        """Put a symbol in place of a product, once, where a term contains it."""
        a, b = product
        factor, varying = self._split(monomial, coefficient)
        quotient = list(varying)
        if isinstance(a, tuple):
            if factor != a or b not in quotient:
                return monomial, coefficient
            quotient.remove(b)
            return (*quotient, symbol), 1.0 if coefficient > 0 else -1.0
        for x in (a, b):
            if x not in quotient:
                return monomial, coefficient
            quotient.remove(x)
        uniform = tuple(x for x in monomial if x in self.system.uniform)
        return (*quotient, *uniform, symbol), coefficient


def _disjoint(where: dict[int, list[_Occurrence]]) -> Iterable[_Occurrence]:
    """Places that do not need the same term twice."""
    for occurrences in where.values():
        used: set[Monomial] = set()
        for occurrence in occurrences:
            if occurrence.first not in used and occurrence.second not in used:
                used |= {occurrence.first, occurrence.second}
                yield occurrence


def _common(a: Monomial, b: Monomial) -> tuple[Monomial, Monomial, Monomial]:
    """Common factors of two products, and what is left of each."""
    common, only_a, only_b = [], [], []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            common.append(a[i])
            i, j = i + 1, j + 1
        elif a[i] < b[j]:
            only_a.append(a[i])
            i += 1
        else:
            only_b.append(b[j])
            j += 1
    return tuple(common), (*only_a, *a[i:]), (*only_b, *b[j:])


def _add_term(terms: Sum, monomial: Monomial, coefficient: float) -> None:
    key = tuple(sorted(monomial))
    terms[key] = terms.get(key, 0.0) + coefficient


def _rounded(x: float) -> float:
    # Fourteen digits, as in `SAME`: coefficients that differ by rounding share a key.
    return float(f"{x:.13e}")


def _unit(x: float) -> float:
    """Let what is one but for rounding be one."""
    if is_one(x):
        return 1.0 if x > 0 else -1.0
    return x
