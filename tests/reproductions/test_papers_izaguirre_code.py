"""`izaguirre1992` §3 and §7.2: counts, two rates and runs without feedback."""

from __future__ import annotations

import numpy as np

from armwise.arms import load_arm
from armwise.dynamics import Dynamics
from papers.izaguirre_code import FAST, SLOW, operation_counts, play, worst
from papers.puma_printed_code import printed_gravity, printed_inertia


def test_fewer_operations_than_the_papers():
    found = operation_counts()
    assert found["inertia and gravity"] <= (83, 60)
    assert found["velocity torques"] <= (140, 110)
    assert found["inertia and gravity, arbitrary load"] <= (190, 150)
    assert found["velocity torques, arbitrary load"] <= (200, 170)


def test_open_loop_drifts_slowly_unless_gravity_follows():
    truth = load_arm("puma260")
    off = 1 + 0.002 * np.random.default_rng(1).standard_normal(truth.parameters.size)
    model = truth.with_parameters(off * truth.parameters)
    fast, slow = (worst(play(model, truth, "together", v)) for v in (FAST, SLOW))
    held = worst(play(model, truth, "together", SLOW, "position"))
    assert fast < 0.10
    assert held < 0.10
    assert slow > 2 * held


def test_the_printed_code_is_the_model_but_for_what_it_drops():
    dynamics = Dynamics(load_arm("puma260"))
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (100, 6))
    np.testing.assert_allclose(
        printed_gravity(q), dynamics.gravity_torque(q), atol=1e-12
    )
    difference = np.abs(printed_inertia(q) - dynamics.mass_matrix(q)).max(axis=0)
    assert 1e-3 < difference.max() < 3e-3  # products of z6
    assert difference[1:, 1:].max() < 1e-12
