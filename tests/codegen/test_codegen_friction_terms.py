"""Generated friction terms: the C does what Python does, step by step."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError
from armwise.identification import FrictionTerm
from armwise.regression import FORMS, FrictionForm, FrictionModel
from tests.identification.conftest import with_drives

TERMS = (
    (FrictionTerm(0, "joint_1", "asymmetric"), 0.3),
    (FrictionTerm(0, "joint_1", "hysteresis", 0.004), 1.7),
    (FrictionTerm(0, "joint_1", "hysteresis", 0.064), 0.9),
    (FrictionTerm(1, "joint_2", "stribeck", 0.07), 2.1),
    (FrictionTerm(1, "joint_2", "load"), 0.08),
    (FrictionTerm(2, "joint_3", "root"), 0.6),
    (FrictionTerm(3, "joint_4", "quadratic", fastest=0.3), -0.2),
    (FrictionTerm(4, "joint_5", "load_driving"), 0.1),
    (FrictionTerm(5, "joint_6", "load_back_driven"), 0.2),
    (FrictionTerm(5, "joint_6", "ripple_sine", 0.13), 0.4),
    (FrictionTerm(2, "joint_3", "ripple_cosine", 0.25), -0.3),
    (FrictionTerm(5, "joint_6", "coulomb_sine", 0.19), 0.3),
    (FrictionTerm(0, "joint_1", "coulomb_cosine", 0.17), -0.2),
    (FrictionTerm(1, "joint_2", "coulomb_warming", 40.0), -0.1),
    (FrictionTerm(3, "joint_4", "viscous_warming", 0.9, warmest=0.5), -0.2),
    (FrictionTerm(4, "joint_5", "coulomb_temperature", 31.0), -0.05),
    (FrictionTerm(4, "joint_5", "viscous_temperature", 31.0), -0.02),
)

PERIOD = 1e-3


def generated(arm, terms, folder, **options):
    source = SimpleNamespace(arm=arm, friction=terms)
    return aw.generate(source, folder, ["inverse_dynamics"], tries=1, **options)


def library(code, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = tmp_path / "friction.so"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
    name = f"{code.name}_friction_terms.c"
    command = [compiler, *strict, "-O2", "-shared", "-fPIC", name, "-o", path, "-lm"]
    done = subprocess.run(command, cwd=code.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(path))


def motion(dof, steps):
    """Reversing motion at all scales, with pauses, and loads of either sign."""
    rng = np.random.default_rng(0)
    t = np.arange(steps) * 1e-3
    phases = rng.uniform(0.0, 6.0, (3, dof))
    q = sum(
        a * np.sin(w * t[:, None] + p)
        for a, w, p in zip((0.5, 0.02, 0.002), (1.1, 7.3, 31.0), phases, strict=True)
    )
    q[(t % 7.0) > 6.0] = q[0]
    qd = np.gradient(q, 1e-3, axis=0)
    return q, qd, rng.normal(scale=20.0, size=q.shape)


def stepped(handle, name, kind, q, qd, load):
    values = np.ascontiguousarray
    number = ctypes.c_double if kind is np.float64 else ctypes.c_float
    pointer = ctypes.POINTER(number)
    state = ctypes.create_string_buffer(4096)
    getattr(handle, f"{name}_friction_reset")(state, number(PERIOD))
    step = getattr(handle, f"{name}_friction_terms")
    rows = [values(x, dtype=kind) for x in (q, qd, load)]
    tau = np.zeros(q.shape, dtype=kind)
    width = q.shape[1] * tau.itemsize
    bases = [x.ctypes.data for x in (*rows, tau)]
    for k in range(len(q)):
        step(state, *[ctypes.cast(base + k * width, pointer) for base in bases])
    return tau


@pytest.mark.parametrize(
    "steps", [10_000, pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_c_equals_python_over_reversing_motion(tmp_path, steps):
    # With friction, which warms the drives up.
    arm = with_drives(aw.load_arm("puma560"))
    code = generated(arm, TERMS, tmp_path / "out")
    q, qd, load = motion(arm.dof, steps)
    found = stepped(library(code, tmp_path), code.name, np.float64, q, qd, load)
    model = FrictionModel(arm, TERMS, period=PERIOD)
    expected = np.concatenate(
        [model.torque(*(x[k : k + 1] for x in (q, qd, load))) for k in range(steps)]
    )
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


def test_single_precision_and_one_kind_of_term_compile(tmp_path):
    arm = aw.load_arm("puma560")
    q, qd, load = motion(arm.dof, 200)
    for k, (term, value) in enumerate(TERMS):
        only = ((term, value),)
        code = generated(arm, only, tmp_path / f"{k}", precision="float")
        place = tmp_path / f"build{k}"
        place.mkdir()
        found = stepped(library(code, place), code.name, np.float32, q, qd, load)
        model = FrictionModel(arm, only, period=PERIOD)
        rows = [
            model.torque(*(x[i : i + 1] for x in (q, qd, load))) for i in range(200)
        ]
        np.testing.assert_allclose(found, np.concatenate(rows), atol=1e-3)


def test_the_header_names_the_terms_and_an_arm_alone_has_none(tmp_path):
    arm = aw.load_arm("puma560")
    code = generated(arm, TERMS, tmp_path / "with")
    header = (tmp_path / "with" / f"{code.name}_friction_terms.h").read_text()
    assert all(term.name in header for term, _ in TERMS)
    bare = aw.generate(arm, tmp_path / "without", ["inverse_dynamics"], tries=1)
    assert not [path for path in bare.files if "friction_terms" in path.name]


def test_a_form_without_c_is_refused(tmp_path):
    FORMS["own"] = FrictionForm("q: a spring", lambda motion, _: motion.q)
    try:
        own = ((FrictionTerm(0, "joint_1", "own"), 1.0),)
        with pytest.raises(ArgumentError, match="has no C"):
            generated(aw.load_arm("puma560"), own, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    finally:
        del FORMS["own"]


def test_temperatures_are_set_in_the_state(tmp_path):
    """Behind the springs; a reset puts those that the terms are about."""
    arm = aw.load_arm("puma560")
    terms = ((FrictionTerm(1, "joint_2", "viscous_temperature", 30.0), 0.5),)
    code = generated(arm, terms, tmp_path / "out")
    handle = library(code, tmp_path)
    state = ctypes.create_string_buffer(4096)
    getattr(handle, f"{code.name}_friction_reset")(state)
    size = 8 * (1 + 6 + 1)  # whether it moved, six positions, one spring
    readings = np.frombuffer(state, dtype=np.float64, count=6, offset=size)
    assert readings[1] == 30.0
    readings[1] = 42.0
    q, qd = np.zeros(6), np.array([0.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    tau = np.zeros(6)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (q, qd, q, tau)]
    getattr(handle, f"{code.name}_friction_terms")(state, *pointers)
    assert tau[1] == pytest.approx(0.5 * 2.0 * 12.0, rel=1e-15)
