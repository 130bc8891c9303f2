"""Every backend runs the same program: one conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from armwise.errors import ArgumentError
from armwise.programs import Kernel, cos, sign, sin, sqrt, trace
from armwise.programs.compiler import find_compiler
from tests.programs.test_cuda import has_gpu

BACKENDS = ["numpy", "c", "cuda"]


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "c" and find_compiler() is None:
        pytest.skip("no C compiler on this machine")
    if request.param == "cuda" and not has_gpu():
        pytest.skip("no NVIDIA GPU on this machine")
    return request.param


def example(q, p):
    rows = [[sin(q[0]) * p[0], 0.0], [cos(q[0] + q[1]), sign(q[2])]]
    return {"matrix": rows, "number": sqrt(q[2] * q[2] + 1.0) / (p[1] + 3.0)}


PROGRAM = trace("example", example, {"q": 3}, {"p": 2})


def expected(q, p):
    matrix = np.zeros((len(q), 2, 2))
    matrix[:, 0, 0] = np.sin(q[:, 0]) * p[0]
    matrix[:, 1, 0] = np.cos(q[:, 0] + q[:, 1])
    matrix[:, 1, 1] = np.sign(q[:, 2])
    return matrix, np.sqrt(q[:, 2] ** 2 + 1) / (p[1] + 3)


@pytest.mark.parametrize("samples", [1, 7, 8, 9, 1024, 1025, 5000])
def test_any_number_of_samples(backend, samples):
    q = np.random.default_rng(samples).normal(size=(samples, 3))
    p = np.array([2.0, 0.5])
    got = Kernel(PROGRAM, backend)([q], [p])
    for a, b in zip(got, expected(q, p), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def test_columns_hold_only_structural_nonzeros(backend):
    q = np.random.default_rng(0).normal(size=(21, 3))
    p = np.array([2.0, 0.5])
    matrix, _ = Kernel(PROGRAM, backend).columns([q], [p])
    want = expected(q, p)[0].reshape(21, 4)[:, [0, 2, 3]].T
    np.testing.assert_allclose(matrix, want, rtol=1e-13, atol=1e-14)


def test_rows_may_lie_in_a_wider_table(backend):
    table = np.random.default_rng(1).normal(size=(50, 9))
    p = np.array([2.0, 0.5])
    got = Kernel(PROGRAM, backend)([table[:, 4:7]], [p])
    np.testing.assert_allclose(got[0], expected(table[:, 4:7], p)[0], rtol=1e-13)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named(backend, bad):
    q = np.zeros((40, 3))
    q[33, 1] = bad
    with pytest.raises(ArgumentError, match=r"q\[33, 1\]"):
        Kernel(PROGRAM, backend)([q], [np.ones(2)])


def ulps(got, exact):
    spacing = np.spacing(np.abs(exact).astype(float))
    return np.abs((got.astype(np.longdouble) - exact) / spacing).max()


@pytest.mark.parametrize("reach", [3.2, 100.0, 1e4])
def test_sine_and_cosine_to_two_ulps(backend, reach):
    program = trace("trig", lambda x: {"s": sin(x[0]), "c": cos(x[0])}, {"x": 1})
    rng = np.random.default_rng(3)
    x = np.concatenate([
        rng.uniform(-reach, reach, 200_000),
        np.arange(-50, 50) * np.pi / 4,
        [0.0, 1e-300, 1e-9, -1e-9],
    ])[:, None]  # fmt: skip
    s, c = Kernel(program, backend)([x])
    exact = x[:, 0].astype(np.longdouble)
    # Long double sine is exact to far below a double's ulp in this range.
    near = np.abs(np.sin(exact)) > 1e-3
    assert ulps(s[near], np.sin(exact)[near]) < 2
    near = np.abs(np.cos(exact)) > 1e-3
    assert ulps(c[near], np.cos(exact)[near]) < 2
    np.testing.assert_allclose(s, np.sin(x[:, 0]), rtol=1e-12, atol=1e-17)


def test_far_angles_fall_back_to_the_library(backend):
    program = trace("trig", lambda x: {"s": sin(x[0])}, {"x": 1})
    x = np.array([[1e7], [3e12], [-4e8], [0.5]])
    (s,) = Kernel(program, backend)([x])
    np.testing.assert_allclose(s, np.sin(x[:, 0]), rtol=1e-15)


def test_without_a_compiler_numpy_takes_over_and_says_so_once():
    code = (
        "import warnings, numpy as np, armwise as aw\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    arm = aw.load_arm('two_link_slotine')\n"
        "    tau = aw.Dynamics(arm).gravity_torque(np.zeros(2))\n"
        "    aw.Dynamics(arm).mass_matrix(np.zeros(2))\n"
        "said = [str(w.message) for w in seen if 'compiler' in str(w.message)]\n"
        "assert len(said) == 1 and 'NumPy' in said[0], said\n"
        "assert aw.Dynamics(arm).backend == 'numpy'\n"
        "try:\n"
        "    aw.Dynamics(arm, backend='c')\n"
        "except ValueError as error:\n"
        "    assert 'Install gcc' in str(error)\n"
        "else:\n"
        "    raise SystemExit('backend c was accepted')\n"
    )
    hidden = {**os.environ, "ARMWISE_NO_COMPILER": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=hidden, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()


def test_an_unknown_backend_is_refused():
    with pytest.raises(ArgumentError, match="fortran"):
        Kernel(PROGRAM, "fortran")
