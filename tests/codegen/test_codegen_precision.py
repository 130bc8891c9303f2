"""Single precision and its bound; sines and cosines to two units in the last place."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import armwise as aw
from armwise.codegen.c_text import DOUBLE, FARTHEST, SINGLE, ULP, sincos_text
from armwise.programs.compiler import cached_object, find_compiler

compiler = find_compiler()
needs_compiler = pytest.mark.skipif(compiler is None, reason="no C compiler")


def sines(precision, angles, flags):
    """Run the generated text on many angles, four at a time."""
    text = sincos_text(4, precision).replace("static void", "void")
    kind = np.float64 if precision is DOUBLE else np.float32
    path = cached_object(text, compiler, flags)
    function = ctypes.CDLL(str(path)).sincos_4
    x = np.ascontiguousarray(angles, dtype=kind)
    s, c = np.empty_like(x), np.empty_like(x)
    size = 4 * x.itemsize
    for k in range(len(x) // 4):
        pointers = (ctypes.c_void_p(a.ctypes.data + k * size) for a in (x, s, c))
        function(*pointers)
    return x, s, c


def in_ulps(found, exact):
    spacing = np.spacing(np.abs(exact).astype(found.dtype)).astype(np.longdouble)
    return float(np.max(np.abs(found.astype(np.longdouble) - exact) / spacing))


@needs_compiler
@pytest.mark.parametrize("flags", [("-std=c99",), ("-O3",)], ids=["plain", "fused"])
@pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=["double", "float"])
def test_two_units_in_the_last_place(precision, flags):
    rng = np.random.default_rng(0)
    kind = np.float64 if precision is DOUBLE else np.float32
    near = (np.arange(-400, 400) * np.pi / 4).astype(kind)
    close = np.concatenate([near, np.nextafter(near, kind(99)), near * (1 + 1e-6)])
    far = rng.uniform(-1, 1, 20000) * FARTHEST[precision.name]
    joints = rng.uniform(-2 * np.pi, 2 * np.pi, 60000)
    x, s, c = sines(precision, np.concatenate([close, far, joints]), flags)
    wide = x.astype(np.longdouble)
    assert in_ulps(s, np.sin(wide)) <= ULP
    assert in_ulps(c, np.cos(wide)) <= ULP


@needs_compiler
def test_what_is_not_a_number_stays_so():
    _, s, c = sines(DOUBLE, [np.nan, np.inf, -np.inf, 0.0], ("-std=c99",))
    assert np.isnan(s[:3]).all()
    assert np.isnan(c[:3]).all()
    assert (s[3], c[3]) == (0.0, 1.0)


def test_the_bound_holds_and_is_not_idle(tmp_path):
    arm = aw.load_arm("puma260")
    chosen = ["inverse_dynamics", "mass_matrix_and_gravity"]
    single = aw.generate(arm, tmp_path / "f", chosen, precision="float", tries=1)
    double = aw.generate(arm, tmp_path / "d", chosen, tries=1)
    for name in chosen:
        error = single.precision[name]
        assert error.measured <= error.bound < 100 * error.measured
        assert 1e-9 * error.scale < error.bound < 1e-4 * error.scale
        assert double.precision[name].bound < 1e-12 * error.scale
    header = (tmp_path / "f" / f"{single.name}.h").read_text()
    assert "Rounding in float changes inverse_dynamics by at most" in header


@needs_compiler
def test_compiled_single_precision_is_within_the_bound(tmp_path):
    arm = aw.load_arm("panda")
    code = aw.generate(
        arm, tmp_path / "out", ["inverse_dynamics"], precision="float", tries=1
    )
    library = aw.codegen.load_generated(tmp_path / "out")
    from armwise.codegen.accuracy import random_states

    states = random_states(arm, 300, seed=9)
    motion = [x.astype(np.float32) for x in (states.q, states.qd, states.qdd)]
    exact = aw.Dynamics(arm).inverse_dynamics(*(x.astype(float) for x in motion))
    gap = np.abs(library.inverse_dynamics(*motion) - exact).max()
    assert 0 < gap <= code.precision["inverse_dynamics"].bound
