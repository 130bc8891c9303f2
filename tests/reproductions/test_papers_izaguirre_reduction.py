"""`izaguirre1992` Tables 1 to 3: 78 parameters, 52 independent, 23 that matter."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from armwise import WeightedLeastSquares, identify
from armwise.arms import load_arm
from armwise.identification import TERMS, Prefiltered
from papers import puma_reduction as reduction
from papers.puma_trajectories import (
    PERIOD,
    central_differences,
    independent_parameters,
    order_of_search,
    trajectories,
)


@pytest.fixture(scope="module")
def found():
    with threadpool_limits(limits=1):
        return reduction.reduction()


def test_78_then_the_papers_52():
    arm = load_arm("puma260")
    assert len(order_of_search(arm)) == 78
    base = independent_parameters(arm)
    leaders = [base.names[i] for i in base.indices]
    assert base.count == 52
    assert leaders[:6] == [f"joint_{j}.rotor_inertia" for j in range(1, 7)]
    assert [n for n in leaders if n.startswith("link_2.")] == [
        f"link_2.{x}" for x in ("mx", "my", "Ixy", "Iyz")
    ]
    assert not np.any(base.matrix[:, [n.endswith("offset") for n in base.names]])


def test_the_rule_finds_the_23_again(found):
    wanted = {n for n, v in _named(found.arm) if v != 0.0}
    assert len(wanted) == 23
    assert wanted <= set(_leaders(found.significant))
    assert set(_leaders(found.small)) == wanted


def test_rotor_inertias_lie_inside_their_intervals(found):
    """Joint 5's was 3.4 standard deviations off while only the motion was averaged."""
    for estimate in (found.full, found.small):
        truth = estimate.base.matrix[:, : found.arm.parameters.size]
        error = estimate.base_values - truth @ found.arm.parameters
        away = dict(zip(_leaders(estimate), error / estimate.base_std, strict=True))
        assert abs(away["joint_5.rotor_inertia"]) < 2.0
        rotors = [z for name, z in away.items() if name.endswith("rotor_inertia")]
        assert np.abs(rotors).max() < 3.0


def test_a_prefilter_keeps_joint_5_inside(found):
    """Torque and every column through one filter: the interval still holds it."""
    method = Prefiltered(method=WeightedLeastSquares())
    terms = [term for term in TERMS if term != "offset"]
    estimate = identify(found.arm, found.data, method, friction="linear", terms=terms)
    error = estimate.base_values - estimate.base.values(found.arm.parameters)
    away = dict(zip(_leaders(estimate), error / estimate.base_std, strict=True))
    assert abs(away["joint_5.rotor_inertia"]) < 2.0


def test_the_delay_is_half_the_period_for_which_a_torque_is_held(found):
    lag = found.full.torque_lag
    assert abs(lag.seconds - 0.001) < 2.0 * lag.std
    assert lag.std < 0.001


def test_the_condition_number_falls(found):
    before = reduction.extreme_singular_values(found.full, found.data)
    after = reduction.extreme_singular_values(found.small, found.data)
    assert before[0] / before[1] > 5 * after[0] / after[1]


def test_central_differences_are_the_papers():
    t = np.arange(100) * PERIOD
    q = np.stack([t**2, np.sin(t)], axis=1)
    data = central_differences(t, q, 0 * q)
    assert len(data) == 70
    assert data.qd[:, 0] == pytest.approx(2 * data.time)
    assert data.qdd[:, 0] == pytest.approx(2.0)
    assert data.qdd[:, 1] == pytest.approx(-np.sin(data.time), abs=1e-3)


def test_trajectories_start_and_end_at_rest_within_their_speed():
    for motion in trajectories(load_arm("puma260")):
        _q, qd, qdd = motion.sample(np.linspace(0.0, motion.duration, 400))
        assert np.abs(qd[[0, -1]]).max() < 1e-9
        assert np.abs(qd).max() <= np.pi * 1.001
        assert np.abs(qdd).max() <= 8.1


def _named(arm):
    return list(zip(arm.parameter_names, arm.parameters, strict=True))


def _leaders(estimate):
    return [estimate.base.names[i] for i in estimate.base.indices]
