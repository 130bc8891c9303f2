"""Symbolic scalars: simplification changes the cost, never the value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armwise.programs import Graph, Kernel, Scalar, cos, sign, sin, sqrt, trace

LEAVES = st.sampled_from([0, 1, 2, 0.0, 1.0, -1.0, 2.5, -0.5])


def expressions(depth: int) -> st.SearchStrategy:
    if depth == 0:
        return LEAVES
    inner = expressions(depth - 1)
    binary = st.tuples(st.sampled_from("+-*"), inner, inner)
    unary = st.tuples(st.sampled_from(["sin", "cos", "neg"]), inner)
    return st.one_of(LEAVES, binary, unary)


def evaluate(tree, x, functions):
    if isinstance(tree, int):
        return x[tree]
    if isinstance(tree, float):
        return tree
    if tree[0] in "+-*":
        a, b = (evaluate(t, x, functions) for t in tree[1:])
        return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[tree[0]]()
    a = evaluate(tree[1], x, functions)
    return -a if tree[0] == "neg" else functions[tree[0]](a)


@settings(max_examples=300, deadline=None)
@given(expressions(5))
def test_simplification_keeps_the_value(tree):
    program = trace(
        "f", lambda x: {"y": evaluate(tree, x, {"sin": sin, "cos": cos})}, {"x": 3}
    )
    x = np.array([[0.3, -1.7, 2.2], [1.1, 0.4, -0.9]])
    (got,) = Kernel(program, "numpy")([x])
    want = [evaluate(tree, row, {"sin": math.sin, "cos": math.cos}) for row in x]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def counts(function, size=4):
    return trace("f", lambda x: {"y": function(x)}, {"x": size}).counts


@pytest.mark.parametrize(
    ("function", "mul", "add", "trig"),
    [
        (lambda x: x[0] * 0.0 + x[1] * 1.0, 0, 0, 0),
        (lambda x: 2.0 * (3.0 * x[0]), 1, 0, 0),
        (lambda x: (x[0] + 1.0) + 2.0, 0, 1, 0),
        (lambda x: x[0] * x[1] + x[1] * x[0], 1, 1, 0),
        (lambda x: (-x[0]) * (-x[1]), 1, 0, 0),
        (lambda x: cos(x[0]) * cos(x[0]) + sin(x[0]) * sin(x[0]), 0, 0, 0),
        (lambda x: cos(x[0]) * cos(x[1]) - sin(x[0]) * sin(x[1]), 0, 1, 1),
        (lambda x: sin(x[0]) * cos(x[1]) - cos(x[0]) * sin(x[1]), 0, 1, 1),
        (lambda x: cos(x[0] + math.pi / 2) + sin(x[0]), 0, 0, 0),
    ],
)
def test_costs(function, mul, add, trig):
    found = counts(function)
    assert (found["multiplications"], found["additions"], found["trigonometric"]) == (
        mul, add, trig,
    )  # fmt: skip


def test_equal_expressions_are_one_node():
    graph = Graph()
    a, b = graph.input("x", 0), graph.input("x", 1)
    assert a * b is b * a
    assert a + b is b + a
    minus = -a
    assert isinstance(minus, Scalar)
    assert -minus is a


def test_differences_share_one_node():
    assert counts(lambda x: [x[0] - x[1], x[1] - x[0]])["additions"] == 1


@pytest.mark.parametrize("x", [-2.0, 0.0, 3.0])
def test_functions_of_numbers(x):
    assert sign(x) == np.sign(x)
    assert sqrt(abs(x)) == math.sqrt(abs(x))


def test_uniform_work_is_not_counted_per_sample():
    program = trace("f", lambda x, p: {"y": p[0] * p[1] * x[0]}, {"x": 1}, {"p": 2})
    assert program.counts["multiplications"] == 1
