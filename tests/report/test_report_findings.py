"""What a report says: verdicts from numbers, motions that would help, honest curves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.motions import random_motion
from armwise.report.report import (
    continued_time,
    envelope_rows,
    points_per_curve,
    with_breaks,
)
from armwise.report.sections.unidentified import poorly_determined, revealing_motions
from armwise.report.subject import Subject, graded, judge


def verdicts(result) -> dict[str, str]:
    return {j.question: j.verdict for j in judge(Subject.of(result))}


def test_a_good_identification_passes(identified):
    found = verdicts(identified)
    assert found["Does it predict data it was not fitted to?"] == "pass"
    assert found["Does the model explain the data it was fitted to?"] == "pass"


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(1.0, "pass"), (2.0, "look"), (4.0, "fail"), (np.inf, "fail"), (np.nan, "fail")],
)
def test_grades(value, verdict):
    assert graded(value, (1.5, 3.0)) == verdict


def test_prediction_far_worse_than_the_fit_fails(identified):
    rmse = identified.fit.rmse * [1.0, 4.0]
    errors = np.array([0.001, 0.04])
    question = "Does it predict data it was not fitted to?"
    # A motion that the fit hardly determined has wide intervals, which hold it.
    for ratio, verdict in ((4.0, "fail"), (1.2, "pass")):
        worse = replace(
            identified.validation,
            relative_error=errors,
            rmse=rmse,
            interval_ratio=np.array([1.0, ratio]),
        )
        assert verdicts(replace(identified, validation=worse))[question] == verdict


def test_impossible_bodies_fail(identified):
    parameters = np.array(identified.all_parameters)
    parameters[0] = -1.0
    bad = replace(identified, all_parameters=parameters)
    found = verdicts(bad)
    assert found["Are the inertias physically realisable?"] == "fail"


def test_driving_friction_is_looked_at(identified):
    names = identified.base.names
    parameters = np.array(identified.all_parameters)
    parameters[names.index("joint_1.viscous")] = -0.5
    bad = replace(identified, all_parameters=parameters)
    found = verdicts(bad)
    assert found["Does friction only brake?"] == "look"


def test_what_a_still_joint_hides_is_shown_by_moving_it(still):
    """Moving the joint that stood still must be what is asked for, and must help."""
    combinations = revealing_motions(still, most=50)
    unknown = [h for h in combinations if not np.isfinite(h.std)]
    assert unknown
    assert all("joint_2" in h.motion for h in unknown if "joint_2" in h.expression)
    names = {h.expression for h in unknown}
    assert {"joint_2.viscous", "joint_2.coulomb"} <= names


def test_everything_known_leaves_nothing_to_reveal(identified):
    sure = replace(
        identified,
        base_values=np.ones(identified.base.count),
        base_covariance=1e-6 * np.eye(identified.base.count),
    )
    assert poorly_determined(sure) == []
    assert revealing_motions(sure) == ()


def test_thinning_keeps_the_spike():
    values = np.zeros(100_000)
    values[51_234] = 7.0
    rows = envelope_rows(values, 2000)
    assert rows.size <= 2000
    assert 51_234 in rows
    assert np.all(np.diff(rows) > 0)


def test_many_curves_share_the_points():
    assert points_per_curve(3) == 2000
    assert points_per_curve(1000) * 1000 <= 130_000
    assert points_per_curve(10**6) == 50


def test_no_line_crosses_a_gap(arm):
    two = aw.Samples.concatenate([_short(arm), _short(arm)])
    time = continued_time(two)
    assert np.all(np.diff(time) > 0)
    rows = np.arange(len(two))
    drawn = with_breaks(rows, time, two)
    assert np.flatnonzero(np.isnan(drawn)).tolist() == [two.starts[1]]
    assert drawn.size == len(two) + 1


def _short(arm: aw.Arm) -> aw.Samples:
    zeros = np.zeros((5, arm.dof))
    return aw.Samples(np.arange(5.0), zeros, zeros, zeros, zeros)


def test_intervals_of_a_right_model_hold_what_was_not_fitted(arm):
    runs = []
    for seed in (0, 1):
        time = np.arange(2000) / 100.0
        motion = random_motion(arm, seed, 20.0, harmonics=12).sample(time)
        tau = aw.Dynamics(arm).inverse_dynamics(*motion)
        noise = np.random.default_rng(seed).normal(0.0, 0.05, tau.shape)
        runs.append(aw.Samples(time, *motion, tau + noise))
    estimate = aw.identify(arm, runs[0], validation=runs[1], friction="linear")
    ratio = estimate.validation.interval_ratio
    assert np.all((ratio > 0.8) & (ratio < 1.3))


@pytest.mark.parametrize("gain_std", [0.0, 0.1])
def test_a_load_that_the_fit_did_not_have_fails(arm, identified, gain_std):
    """Unknown gains widen intervals, but not those of the same sensors' torques."""
    estimate = aw.identify(arm, identified.samples[0], gain_std=gain_std)
    (other,) = identified.validation_samples
    parameters = arm.parameters.copy()
    # Half a kilogram more in the last link.
    last = slice(10 * (arm.dof - 1), 10 * (arm.dof - 1) + 4)
    parameters[last] += 0.5 * np.array([1.0, 0.3, 0.0, 0.0])
    motion = (other.q, other.qd, other.qdd)
    more = aw.Dynamics(arm.with_parameters(parameters)).inverse_dynamics(*motion)
    heavy = other.tau + more - aw.Dynamics(arm).inverse_dynamics(*motion)
    checked = estimate.validate(replace(other, tau=heavy))
    assert checked.interval_ratio.max() > 3.0
    found = verdicts(replace(estimate, validation=checked))
    assert found["Does it predict data it was not fitted to?"] == "fail"


def test_a_model_that_leaves_half_of_a_torque_fails_however_wide_its_intervals(
    identified,
):
    """A fit as bad as its validation is no reason to call that a prediction."""
    checked, fit = identified.validation, identified.fit
    bad = np.full(checked.relative_error.shape, 0.6)
    both = replace(
        identified,
        fit=replace(fit, relative_error=bad),
        validation=replace(checked, relative_error=bad),
    )
    assert verdicts(both)["Does it predict data it was not fitted to?"] == "fail"
