"""Symbolic scalars: a hash-consed graph that simplifies as it grows.

Two equal expressions are one node, so common subexpressions are shared by
construction; zeros, ones, signs and constants vanish before they become nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Union

Number = Union["Scalar", float]

_HALF_PI = math.pi / 2
_UNARY: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "sqrt": math.sqrt,
    "sign": lambda x: float((x > 0) - (x < 0)),
    "abs": abs,
    "exp": math.exp,
    "tanh": math.tanh,
}


class Scalar:
    """One node of a graph; arithmetic on it makes more nodes.

    Attributes:
        graph: The graph it belongs to.
        op: "input", "constant", "add", "sub", "mul", "div", "neg" or a function.
        args: The nodes it is made of.
        value: The number of a constant, the name and index of an input.
        index: Its index in the graph; arguments have smaller ones.
    """

    __slots__ = ("args", "graph", "index", "op", "value")

    def __init__(
        self,
        graph: Graph,
        op: str,
        args: tuple[Scalar, ...],
        value: float | tuple[str, int] | None,
        index: int,
    ) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.value = value
        self.index = index

    def __add__(self, other: Number) -> Number:
        return self.graph.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return self.graph.subtract(self, other)

    def __rsub__(self, other: Number) -> Number:
        return self.graph.subtract(other, self)

    def __mul__(self, other: Number) -> Number:
        return self.graph.multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Number:
        return self.graph.divide(self, other)

    def __rtruediv__(self, other: Number) -> Number:
        return self.graph.divide(other, self)

    def __neg__(self) -> Number:
        return self.graph.negate(self)

    def __repr__(self) -> str:
        return f"Scalar({self.op} #{self.index})"


class Graph:
    """Makes scalars, each expression once."""

    def __init__(self) -> None:
        self.nodes: list[Scalar] = []
        self._nodes: dict[tuple[object, ...], Scalar] = {}
        # Sines and cosines by node, so that products of two can be recognised at once.
        self._trig: dict[int, tuple[str, Number]] = {}

    def input(self, name: str, index: int) -> Scalar:
        """Return entry `index` of the input called `name`."""
        return self._node("input", (), (name, index))

    def constant(self, value: float) -> Scalar:
        """Return a number as a node."""
        return self._node("constant", (), float(value))

    def _node(
        self, op: str, args: tuple[Scalar, ...], value: float | tuple[str, int] | None
    ) -> Scalar:
        # Hash-consing: equal expressions are one node, so that equality is identity.
        key = (op, value, *[a.index for a in args])
        node = self._nodes.get(key)
        if node is None:
            node = Scalar(self, op, args, value, len(self.nodes))
            self.nodes.append(node)
            self._nodes[key] = node
        return node

    def raw(self, op: str, *args: Scalar) -> Scalar:
        """Return a node as given, without simplifying it."""
        # Commutative: one order, so that a·b and b·a are one node.
        if op in ("add", "mul") and args[0].index > args[1].index:
            args = (args[1], args[0])
        return self._node(op, args, None)

    def operate(self, op: str, args: Sequence[Number]) -> Number:
        """Return an operation of any kind, simplified."""
        match op:
            case "add":
                return self.add(args[0], args[1])
            case "sub":
                return self.subtract(args[0], args[1])
            case "mul":
                return self.multiply(args[0], args[1])
            case "div":
                return self.divide(args[0], args[1])
            case "neg":
                return self.negate(args[0])
        return self.apply(op, args[0])

    def _lift(self, x: Number) -> Scalar:
        return x if isinstance(x, Scalar) else self.constant(x)

    def add(self, a: Number, b: Number) -> Number:
        """Return a + b."""
        if not isinstance(a, Scalar):
            a, b = b, a
        if not isinstance(a, Scalar):
            return a + b
        if not isinstance(b, Scalar):
            if b == 0.0:
                return a
            return self._add_constant(a, b)
        if b.op == "neg":
            return self.subtract(a, b.args[0])
        if a.op == "neg":
            return self.subtract(b, a.args[0])
        if (merged := self._trigonometric(a, b, +1)) is not None:
            return merged
        # One order for both a + b and b + a, so that they are one node.
        if a.index > b.index:
            a, b = b, a
        return self._node("add", (a, b), None)

    def _add_constant(self, a: Scalar, c: float) -> Number:
        if a.op in ("add", "sub"):
            a_term, right = a.args
            if a_term.op == "constant":
                total = float(a_term.value) + c  # type: ignore[arg-type]
                return self.subtract(total, right) if a.op == "sub" else right + total
            if right.op == "constant":
                constant = float(right.value)  # type: ignore[arg-type]
                return a_term + (c - constant if a.op == "sub" else c + constant)
        if a.op == "neg":
            return self.subtract(c, a.args[0])
        if c < 0:
            return self._node("sub", (a, self.constant(-c)), None)
        return self._node("add", (a, self.constant(c)), None)

    def subtract(self, a: Number, b: Number) -> Number:
        """Return a − b."""
        if not isinstance(b, Scalar):
            return self.add(a, -b)
        if not isinstance(a, Scalar):
            if a == 0.0:
                return self.negate(b)
            if b.op == "neg":
                return self.add(b.args[0], a)
            return self._node("sub", (self.constant(a), b), None)
        if a is b:
            return 0.0
        if b.op == "neg":
            return self.add(a, b.args[0])
        if a.op == "neg":
            return self.negate(self.add(a.args[0], b))
        if (merged := self._trigonometric(a, b, -1)) is not None:
            return merged
        # b − a may be there already; a sign is free, a second subtraction is not.
        opposite = self._nodes.get(("sub", None, b.index, a.index))
        if opposite is not None:
            return self.negate(opposite)
        return self._node("sub", (a, b), None)

    def negate(self, a: Number) -> Number:
        """Return −a."""
        if not isinstance(a, Scalar):
            return -a
        if a.op == "neg":
            return a.args[0]
        if a.op == "constant":
            return -float(a.value)  # type: ignore[arg-type]
        return self._node("neg", (a,), None)

    def multiply(self, a: Number, b: Number) -> Number:
        """Return a · b."""
        if not isinstance(a, Scalar):
            a, b = b, a
        if not isinstance(a, Scalar):
            return a * b
        if not isinstance(b, Scalar):
            return self._scale(a, b)
        if a.op == "neg":
            return self.negate(self.multiply(a.args[0], b))
        if b.op == "neg":
            return self.negate(self.multiply(a, b.args[0]))
        for x, y in ((a, b), (b, a)):  # a number goes outermost, to meet others
            if x.op == "mul" and x.args[0].op == "constant":
                product = self.multiply(x.args[1], y)
                return self.multiply(product, float(x.args[0].value))  # type: ignore[arg-type]
        if a.index > b.index:
            a, b = b, a
        return self._node("mul", (a, b), None)

    def _scale(self, a: Scalar, c: float) -> Number:
        if c == 0.0:
            return 0.0
        if c == 1.0:
            return a
        if c < 0:
            return self.negate(self._scale(a, -c))
        if a.op == "neg":
            return self.negate(self._scale(a.args[0], c))
        if a.op == "mul" and a.args[0].op == "constant":
            return self.multiply(a.args[1], float(a.args[0].value) * c)  # type: ignore[arg-type]
        return self._node("mul", (self.constant(c), a), None)

    def divide(self, a: Number, b: Number) -> Number:
        """Return a / b."""
        if not isinstance(b, Scalar):
            return self.multiply(a, 1.0 / b)
        if not isinstance(a, Scalar) and a == 0.0:
            return 0.0
        if b.op == "neg":
            return self.negate(self.divide(a, b.args[0]))
        if isinstance(a, Scalar) and a.op == "neg":
            return self.negate(self.divide(a.args[0], b))
        if a is b:
            return 1.0
        return self._node("div", (self._lift(a), b), None)

    def apply(self, function: str, a: Number) -> Number:
        """Return function(a) for one of the known functions."""
        if not isinstance(a, Scalar):
            return _UNARY[function](a)
        if a.op == "neg" and function in ("sin", "sign", "tanh"):
            return self.negate(self.apply(function, a.args[0]))
        if a.op == "neg" and function in ("cos", "abs"):
            return self.apply(function, a.args[0])
        if function in ("sin", "cos"):
            return self._sine_or_cosine(function, a)
        return self._node(function, (a,), None)

    def _sine_or_cosine(self, function: str, a: Scalar) -> Number:
        """Fold quarter turns away: cos(q + π/2) is −sin(q)."""
        angle, offset = split_offset(a)
        quarters = round(offset / _HALF_PI)
        # Descriptions write π/2 with some 13 digits: 1.5707963267949.
        if quarters and abs(offset - quarters * _HALF_PI) < 1e-12:
            turn = (quarters + (function == "cos")) % 4
            node = self.apply("cos" if turn % 2 else "sin", angle)
            return self.negate(node) if turn >= 2 else node
        node = self._node(function, (a,), None)
        self._trig[node.index] = (function, a)
        return node

    def _trigonometric(self, a: Scalar, b: Scalar, sign: int) -> Number | None:
        """See cos α cos β ∓ sin α sin β, sin α cos β ± cos α sin β and s² + c²."""
        if a.op != "mul" or b.op != "mul":
            return None
        try:
            (f, x), (g, y) = (self._trig[n.index] for n in a.args)
            (h, u), (k, v) = (self._trig[n.index] for n in b.args)
        except KeyError:
            return None
        # By identity: angles are hash-consed, so that equal ones are one object.
        if {id(x), id(y)} != {id(u), id(v)}:
            return None
        if x is y:
            # sin² x + cos² x; the difference, cos 2x, would save nothing.
            if sign > 0 and f == g and h == k and f != h:
                return 1.0
            return None
        if x is v:  # order both products by angle
            h, k = k, h
        if f == g and h == k and f != h:
            if f == "cos":  # cos cos ∓ sin sin
                return self.apply("cos", x + y if sign < 0 else x - y)
            turned = self.apply("cos", x + y if sign < 0 else x - y)
            return self.negate(turned) if sign < 0 else turned
        if f != g and h != k and f == k:
            sine_first = f == "sin"
            if sign > 0:
                return self.apply("sin", x + y)
            difference = self.apply("sin", x - y)
            return difference if sine_first else self.negate(difference)
        return None


def split_offset(a: Scalar) -> tuple[Number, float]:
    """Split x + c into x and the number c."""
    if a.op == "add" and a.args[1].op == "constant":
        return a.args[0], float(a.args[1].value)  # type: ignore[arg-type]
    if a.op == "sub" and a.args[1].op == "constant":
        return a.args[0], -float(a.args[1].value)  # type: ignore[arg-type]
    if a.op == "sub" and a.args[0].op == "constant":
        return -a.args[1], float(a.args[0].value)  # type: ignore[arg-type]
    return a, 0.0


def apply(function: str, a: Number) -> Number:
    """Return function(a), symbolic or numeric."""
    if isinstance(a, Scalar):
        return a.graph.apply(function, a)
    return _UNARY[function](a)


def sin(a: Number) -> Number:
    """Sine of an angle in [rad]."""
    return apply("sin", a)


def cos(a: Number) -> Number:
    """Cosine of an angle in [rad]."""
    return apply("cos", a)


def sqrt(a: Number) -> Number:
    """Square root."""
    return apply("sqrt", a)


def sign(a: Number) -> Number:
    """−1, 0 or 1."""
    return apply("sign", a)
