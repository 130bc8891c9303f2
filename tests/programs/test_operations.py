"""Fewer operations: the same values, never more work, the same every time."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armwise.programs import Kernel, cos, sign, sin, trace
from armwise.programs.operations import extract, fewer_operations, operations
from armwise.programs.polynomials import System, expand

NUMBERS = st.sampled_from([1.0, -1.0, 2.0, 0.3, 1.0 + 2e-16, -0.7])
LEAVES = st.one_of(st.integers(0, 5), NUMBERS)
TREES = st.recursive(
    LEAVES, lambda x: st.tuples(st.sampled_from("+-*+-*s/"), x, x), max_leaves=40
)


def value(tree, x):
    if isinstance(tree, int):
        return x[tree]
    if isinstance(tree, float):
        return tree
    op, left, right = tree
    a, b = value(left, x), value(right, x)
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / (b * b + 2.0)
    return sin(a) * cos(b)


@settings(max_examples=150, deadline=None)
@given(st.lists(TREES, min_size=1, max_size=4))
def test_values_stay_and_work_does_not_grow(trees):
    program = trace(
        "f",
        lambda x, u: {"y": [value(tree, [*x, *u]) for tree in trees]},
        {"x": 4},
        {"u": 2},
    )
    found = fewer_operations(program, tries=2)
    assert operations(found) <= operations(program)
    rng = np.random.default_rng(0)
    x, u = rng.uniform(-2, 2, (5, 4)), rng.uniform(-2, 2, 2)
    before = Kernel(program, "numpy")([x], [u])[0]
    after = Kernel(found, "numpy")([x], [u])[0]
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "multiplications", "additions"),
    [
        (lambda x: [x[0] * x[1] + x[0] * x[2]], 1, 1),
        (lambda x: [3.0 * x[0] + 3.0 * x[1]], 1, 1),
        (lambda x: [x[0] + x[1] + x[2], x[0] + x[1] - x[2]], 0, 3),
        (lambda x: [x[0] * (x[1] + x[2]), x[3] * x[1] + x[3] * x[2]], 2, 1),
        (lambda x: [x[0] * x[1] * x[2], x[0] * x[1] * x[3]], 3, 0),
        (lambda x: [2.0 * x[0] + 6.0 * x[1], x[0] + 3.0 * x[1]], 2, 1),
    ],
)
def test_common_parts_are_found(function, multiplications, additions):
    program = trace("f", lambda x: {"y": function(x)}, {"x": 4})
    counts = fewer_operations(program).counts
    assert (counts["multiplications"], counts["additions"]) == (
        multiplications,
        additions,
    )


def test_what_is_known_before_the_call_is_free():
    program = trace(
        "f", lambda x, u: {"y": [u[0] * u[1] * x[0] + u[0] * x[1]]}, {"x": 2}, {"u": 2}
    )
    counts = fewer_operations(program).counts
    assert (counts["multiplications"], counts["additions"]) == (2, 1)


def test_the_same_seed_gives_the_same_program():
    def function(x):
        return {
            "y": [x[0] * x[1] + x[2] * x[3] + x[0] * x[3] + x[1] * x[2], x[0] * x[2]]
        }

    program = trace("f", function, {"x": 4})
    first, second = (fewer_operations(program, tries=6, seed=3) for _ in range(2))
    shape = [(s.op, tuple(a.index for a in s.args)) for s in first.steps]
    assert shape == [(s.op, tuple(a.index for a in s.args)) for s in second.steps]


def test_terms_that_cancel_vanish():
    program = trace(
        "f", lambda x: {"y": [(x[0] * x[1] + x[2]) - x[1] * x[0]]}, {"x": 3}
    )
    system = expand(program)
    assert system.cost() == (0, 0)


def test_signs_and_functions_survive():
    program = trace(
        "f", lambda x: {"y": [-sign(x[0]) * 2.0 - 2.0 * sign(x[1]), -x[0]]}, {"x": 2}
    )
    found = fewer_operations(program)
    result = Kernel(found, "numpy")([np.array([[3.0, -1.0], [-0.5, -2.0]])])[0]
    assert result.tolist() == [[0.0, -3.0], [4.0, 0.5]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [x[0] + 3.0 * x[1], -(x[0] * x[2]) - 3.0 * (x[1] * x[2]) + x[3]],
        lambda x: [x[0] - x[1] + x[2], x[3] * x[1] - x[3] * x[0] + x[2]],
        lambda x: [
            cos(x[0] + (x[1] - np.pi)) * x[2] + x[3],
            sin(x[0] + (x[1] - np.pi)),
        ],
    ],
    ids=["scaled", "opposite", "half turn"],
)
def test_signs_of_what_is_shared(function):
    program = trace("f", lambda x: {"y": function(x)}, {"x": 4})
    found = fewer_operations(program)
    assert operations(found) < operations(program)
    x = np.random.default_rng(1).uniform(-2, 2, (6, 4))
    before, after = (Kernel(p, "numpy")([x])[0] for p in (program, found))
    np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-12)


def test_terms_that_cancelled_share_no_sum() -> None:
    system = System()
    a, b, c = (system.symbol() for _ in range(3))
    first, second = system.symbol(), system.symbol()
    # a c has cancelled to nothing, as products put in the place of others may.
    system.sums[first] = {(a, b): 1.0, (a, c): 0.0, (b, c): 2.0}
    system.sums[second] = {(a, b): 2.0, (b, c): 4.0}
    extract(system, random.Random(0), 0.0)
    values = {a: 3.0, b: 5.0, c: 7.0}

    def evaluated(symbol: int) -> float:
        if symbol in values:
            return values[symbol]
        terms = system.sums[symbol].items()
        return sum(x * math.prod(map(evaluated, factors)) for factors, x in terms)

    assert evaluated(first) == 3 * 5 + 2 * 5 * 7
    assert evaluated(second) == 2 * evaluated(first)
