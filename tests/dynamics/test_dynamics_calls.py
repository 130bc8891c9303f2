"""How Dynamics is called: shapes, batches, blocks, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError


@pytest.fixture(scope="module")
def dyn():
    return aw.Dynamics(aw.load_arm("panda"))


def test_one_sample_or_many_shapes(dyn):
    q = np.zeros(7)
    assert dyn.inverse_dynamics(q, q, q).shape == (7,)
    assert dyn.mass_matrix(np.zeros((2, 3, 7))).shape == (2, 3, 7, 7)
    assert dyn.kinetic_energy(np.zeros((5, 7)), np.zeros((5, 7))).shape == (5,)
    assert dyn.jacobian(q, "link_7").shape == (6, 7)
    assert dyn.link_pose(q, "link_7").shape == (4, 4)
    assert dyn.regressor(q, q, q).shape == (7, 98)


def test_batches_broadcast(dyn):
    q = np.random.default_rng(0).uniform(-1, 1, (6, 7))
    rest = np.zeros(7)
    np.testing.assert_allclose(
        dyn.inverse_dynamics(q, rest, rest),
        dyn.inverse_dynamics(q, np.zeros((6, 7)), np.zeros((6, 7))),
    )


def test_lists_integers_and_strides_are_taken(dyn):
    table = np.random.default_rng(0).uniform(-1, 1, (40, 30))
    part = table[::2, 3:10]
    np.testing.assert_array_equal(
        dyn.gravity_torque(part), dyn.gravity_torque(part.copy())
    )
    assert dyn.gravity_torque([0] * 7).shape == (7,)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros(6), "must end in 7 values"),
        (np.zeros((7, 5)), "must end in 7 values"),
        (0.0, "must end in 7 values"),
        (np.array(["a"] * 7), "real numbers"),
        (np.full(7, np.nan), "finite"),
        (np.array([0, 0, 0, np.inf, 0, 0, 0]), "finite"),
    ],
)
def test_bad_arrays_are_named(dyn, q, message):
    with pytest.raises(ArgumentError, match=message):
        dyn.gravity_torque(q)


def test_an_unknown_link_lists_the_known(dyn):
    with pytest.raises(ArgumentError, match="link_7"):
        dyn.link_pose(np.zeros(7), "hand_of_god")


def test_blocks_are_the_regressor(dyn):
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 1000, 7))
    full = dyn.regressor(q, qd, qdd)
    for rows, block in dyn.regressor_blocks(q, qd, qdd, block=128):
        np.testing.assert_array_equal(block, full[rows])


@pytest.mark.slow
def test_a_million_samples_never_stand_in_memory_at_once():
    """The whole regressor would take 5.5 GB; its blocks take a few."""
    code = """
import resource, numpy as np, armwise as aw
dyn = aw.Dynamics(aw.load_arm("panda"))
q = np.random.default_rng(0).uniform(-1, 1, (1_000_000, 7))
dyn.regressor(q[:10], q[:10], q[:10])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = 0
for rows, block in dyn.regressor_blocks(q, q, q):
    total += len(block)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert total == 1_000_000
assert after - before < 50_000, after - before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arms_that_differ_only_in_parameters_share_their_programs(dyn):
    other = dyn.arm.with_parameters(1.1 * dyn.arm.parameters)
    assert aw.Dynamics(other).kernel("inverse_dynamics") is dyn.kernel(
        "inverse_dynamics"
    )


def test_backends_agree(dyn):
    rng = np.random.default_rng(4)
    slow = aw.Dynamics(dyn.arm, "numpy")
    q, qd, qdd = rng.uniform(-2, 2, (3, 50, 7))
    for name, inputs in {
        "inverse_dynamics": (q, qd, qdd),
        "mass_matrix": (q,),
        "forward_dynamics": (q, qd, qdd),
        "coriolis_matrix": (q, qd),
        "regressor": (q, qd, qdd),
    }.items():
        a, b = getattr(dyn, name)(*inputs), getattr(slow, name)(*inputs)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11, err_msg=name)


def test_long_programs_are_not_compiled_unless_c_is_asked_for(monkeypatch):
    from armwise.dynamics import dynamics
    from armwise.programs import resolve_backend

    if resolve_backend("auto") != "c":
        pytest.skip("no C compiler")
    monkeypatch.setattr(dynamics, "_kernels", {})
    monkeypatch.setattr(dynamics, "_LONG_PROGRAM", 10)
    arm = aw.load_arm("ur5")
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 20, arm.dof))
    interpreted, compiled = aw.Dynamics(arm), aw.Dynamics(arm, backend="c")
    torques = [d.inverse_dynamics(q, qd, qdd) for d in (interpreted, compiled)]
    np.testing.assert_allclose(*torques, rtol=1e-12, atol=1e-12)
    assert interpreted.kernel("inverse_dynamics").backend == "numpy"
    assert compiled.kernel("inverse_dynamics").backend == "c"
