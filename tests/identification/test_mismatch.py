"""Models that are not the arm's: found, named, and counted in the intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.control import simulate_log
from armwise.errors import ArgumentError
from armwise.identification import MISMATCH, Tally, read_estimate, write_estimate
from armwise.identification.mismatch import _delays_expected, _Label
from armwise.identification.remainder import (
    Remainder,
    joint_coefficients,
    own_coefficients,
    reached_by_chance,
)
from armwise.identification.sampled_rows import SampledSystem, whitened_rows
from armwise.motions import random_motion
from armwise.recordings import Recording
from armwise.regression import GAIN_STD, interval_factor, low_pass
from armwise.report.subject import Subject, judge
from tests.recordings.motions import arm_with_friction

from .conftest import samples_of, weighted


def codes(estimate: aw.Estimate) -> set[str]:
    return {warning.code for warning in estimate.warnings} & MISMATCH


def held(estimate: aw.Estimate, arm: aw.Arm) -> float:
    """Fraction of the intervals that hold the truth."""
    truth = estimate.base.values(arm.parameters)
    error = np.abs(estimate.base_values - truth)
    return float(np.mean(error <= interval_factor() * estimate.base_std))


@pytest.fixture(scope="module")
def plain(described, data):
    return weighted(described, data)


def missing(data: aw.Samples, torque: np.ndarray) -> aw.Samples:
    return replace(data, tau=data.tau + torque)


def at(data: aw.Samples, joint: int, torque: np.ndarray) -> np.ndarray:
    column = np.zeros(data.tau.shape)
    column[:, joint] = torque
    return column


def test_a_model_that_is_right_is_told_so(plain, arm):
    assert codes(plain) == set()
    assert np.array_equal(plain.gain_std, [GAIN_STD["unknown"]] * arm.dof)
    assert held(plain, arm) > 0.9


def bend(x: np.ndarray) -> np.ndarray:
    return np.gradient(x, 0.01)


@pytest.mark.parametrize(
    ("code", "torque"),
    [
        ("load", lambda d: 0.3 * np.abs(d.tau[:, 1]) * np.sign(d.qd[:, 1])),
        ("speed", lambda d: 3.0 * np.sign(d.qd[:, 1]) * np.exp(-((d.qd[:, 1]) ** 2))),
        ("direction", lambda d: 2.0 * np.abs(d.qd[:, 1])),
        ("position", lambda d: 4.0 * np.sin(2.0 * d.q[:, 1])),
        ("acceleration", lambda d: 0.1 * bend(bend(d.qdd[:, 1]))),
        ("time", lambda d: 3.0 * d.time / d.time[-1]),
    ],
)
def test_what_a_residual_follows_is_named_and_counts(
    code, torque, plain, described, data, arm
):
    """Without what is added, the intervals of such fits hold far too little."""
    wrong = missing(data, at(data, 1, torque(data)))
    estimate = weighted(described, wrong)
    names = [w.text for w in estimate.warnings if w.code == f"residual-follows-{code}"]
    assert names
    assert arm.coordinate_names[1] in names[0]
    assert np.all(np.diag(estimate.base_covariance) > 0.0)
    assert np.median(estimate.base_std / plain.base_std) > 1.0


def test_intervals_hold_the_truth_under_friction_that_depends_on_load(
    described, data, arm
):
    load = aw.Dynamics(replace_drives(arm)).inverse_dynamics(data.q, data.qd, data.qdd)
    wrong = missing(data, 0.05 * np.abs(load) * np.sign(data.qd))
    estimate = weighted(described, wrong)
    assert "residual-follows-load" in codes(estimate)
    assert held(estimate, arm) > 0.9


def test_coulomb_friction_is_not_sure_where_a_load_hardly_changes(described, data, arm):
    """Friction that grows with a load that is always alike looks like Coulomb's.

    That it is there another joint shows, for which it was chosen.
    """
    q, qd, qdd = data.q.copy(), data.qd.copy(), data.qdd.copy()
    for x in (q, qd, qdd):
        x[:, 1] *= 0.03
    bare, full = aw.Dynamics(replace_drives(arm)), aw.Dynamics(arm)
    load = np.abs(bare.inverse_dynamics(q, qd, 0.0 * qdd))
    assert np.std(load[:, 1]) < 0.03 * np.mean(load[:, 1])
    noise = np.random.default_rng(3).normal(size=q.shape)
    tau = full.inverse_dynamics(q, qd, qdd) + 0.06 * load * np.sign(qd)
    tau += 0.01 * np.abs(tau).max(axis=0) * noise
    still = replace(data, q=q, qd=qd, qdd=qdd, tau=tau)
    chosen = aw.identification.FrictionTerm(2, arm.joints[2].name, "load")
    estimate = weighted(described, still, friction=[chosen])
    row = [estimate.base.names[i] for i in estimate.base.indices].index(
        f"{arm.coordinate_names[1]}.coulomb"
    )
    truth = np.append(arm.parameters, 0.06)
    error = estimate.base_values[row] - estimate.base.values(truth)[row]
    # What the joint's load adds looks like Coulomb friction, and may be none.
    assert error > 1.0
    assert error < interval_factor() * estimate.base_std[row]


@pytest.mark.parametrize(("size", "is_burst"), [(1.2, False), (8.0, True)])
def test_a_joint_that_sticks_is_no_burst(size, is_burst, described, data, arm):
    """At rest friction has any value up to its limit; a push is larger."""
    qd, tau = data.qd.copy(), data.tau.copy()
    qd[500:550, 4] = 1e-3
    tau[500:550, 4] -= size * arm.joints[4].drive.coulomb
    estimate = weighted(described, replace(data, qd=qd, tau=tau))
    texts = [w.text for w in estimate.warnings if w.code == "burst"]
    assert bool(texts) == is_burst
    # No further friction was tried.
    assert all("or friction that was not tried" in text for text in texts)


@pytest.mark.parametrize("seed", [0, 1])
def test_coulomb_friction_is_not_sure_where_viscous_friction_thins(seed):
    """Half of it grows as |q̇|^0.6: a line through it is 4 to 8 % high at rest."""
    arm = arm_with_friction(coulomb=2.0)
    time = np.arange(10_000) / 500.0
    motion = random_motion(arm, seed, 20.0, harmonics=16, roughness=0.5, fastest=1.6)
    q, qd, qdd = motion.sample(time)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += 0.5 * np.sign(qd) * (np.abs(qd) ** 0.6 - np.abs(qd))
    tau += np.random.default_rng(seed).normal(0.0, 0.1, tau.shape)
    rec = Recording.from_arrays(time, q=np.round(q, 4), tau=tau)
    estimate = aw.identify(arm, rec)
    leaders = [estimate.base.names[k] for k in estimate.base.indices]
    rows = [k for k, name in enumerate(leaders) if name.endswith(".coulomb")]
    error = np.abs(estimate.base_values[rows] - 2.0)
    assert error.max() > 0.1
    # Six intervals: one of them may well miss by chance, but by no more than this.
    assert np.all(error <= 3.0 * estimate.base_std[rows])


def test_delays_that_only_all_joints_together_show_are_expected():
    labels = [_Label("delay", j, 0) for j in range(6)]
    std, signs = np.full(6, 1e-3), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    assert _delays_expected(labels, [], (signs * std, std)) == ([], 0.0)
    columns, size = _delays_expected(labels, [], (3.0 * signs * std, std))
    assert columns == list(range(6))
    # What is seen has the variance of the delays and that of the noise.
    np.testing.assert_allclose(np.hypot(size, std), 3e-3)
    assert 0 not in _delays_expected(labels, [0], (3.0 * signs * std, std))[0]


def test_a_compliance_moves_the_torque_of_every_joint(described, data, arm):
    """Links that lie behind are slower as well, and pull at their neighbours."""
    problem = aw.build_problem(described, data, friction="linear")
    estimate = aw.identify(problem, method=aw.WeightedLeastSquares())
    system = SampledSystem.of(problem, problem.data, estimate=estimate)
    rows = whitened_rows(problem, estimate, system)
    links = aw.Dynamics(replace_drives(estimate.arm))
    load = links.inverse_dynamics(data.q, data.qd, data.qdd)
    index = rows.samples[0][1]
    inside = (index > 10) & (index < len(data) - 10) & rows.trust.all(axis=1)
    for j in range(3):
        behind = data.q.copy()
        behind[:, j] -= 1e-6 * load[:, j]
        speed = data.qd + np.gradient(behind - data.q, 0.01, axis=0)
        pull = data.qdd + np.gradient(speed - data.qd, 0.01, axis=0)
        expected = (links.inverse_dynamics(behind, speed, pull) - load)[index] / 1e-6
        column = rows.compliances[j] * rows.std
        size = np.abs(expected).max()
        np.testing.assert_allclose(column[inside], expected[inside], atol=1e-3 * size)


def replace_drives(arm: aw.Arm) -> aw.Arm:
    parameters = arm.parameters.copy()
    parameters[arm.layout.drives] = 0.0
    return arm.with_parameters(parameters)


def test_gains_that_differ_are_found_and_covered(described, data, arm):
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    wrong = replace(data, tau=data.tau * (1.0 + 0.03 * signs))
    estimate = weighted(described, wrong)
    assert "torque-gains-differ" in codes(estimate)
    assert 0.01 < estimate.gain_std[0] < 0.1
    assert held(estimate, arm) > 0.9
    # Only differences show: what all gains have in common may be off by as much.
    relative = estimate.base_std / np.abs(estimate.base_values)
    assert np.min(relative) > 0.9 * estimate.gain_std[0]
    verdicts = {one.question: one.verdict for one in judge(Subject.of(estimate))}
    question = "Does the residual follow nothing that would move the parameters?"
    assert verdicts[question] == "look"


def test_what_chance_reaches_is_known_where_few_stretches_count():
    """Columns of every concentration; Student's t alone would alarm far more often."""
    rng = np.random.default_rng(5)
    alarms = by_student = 0
    size = np.exp(rng.normal(size=(40, 100)) * np.linspace(0.0, 2.5, 100))
    for _ in range(100):
        scores = np.sqrt(size) * rng.normal(size=size.shape)
        value, std, _ = own_coefficients(size, scores)
        sureness = np.abs(value) / std
        alarms += bool(np.any(sureness > reached_by_chance(size, scores)))
        by_student += bool(np.any(sureness > 4.0))
    assert alarms <= 4
    assert by_student >= 10
    scores = np.sqrt(size) * rng.normal(size=size.shape)
    scores[:, 30] += 3.0 * size[:, 30]
    value, std, _ = own_coefficients(size, scores)
    assert (np.abs(value) / std > reached_by_chance(size, scores))[30]


def stribeck_log(arm: aw.Arm, seed: int) -> aw.Samples:
    data = samples_of(arm, seed=seed, seed_motion=seed)
    fall = 0.4 * np.sign(data.qd) * np.exp(-((data.qd / 0.15) ** 2))
    return missing(data, fall)


def test_more_logs_of_one_robot_narrow_the_intervals(described, arm):
    """Friction that falls with speed is in all of them, and counts once."""
    logs = [stribeck_log(arm, seed) for seed in range(4)]
    every = weighted(described, logs)
    assert "residual-follows-speed" in codes(every)
    singles = [weighted(described, log) for log in logs]
    assert min(held(one, arm) for one in (*singles, every)) > 0.9
    ratio = every.base_std / np.mean([one.base_std for one in singles], axis=0)
    # What another friction does to Coulomb's no number of logs takes away.
    names = [every.base.names[k] for k in every.base.indices]
    others = np.array([not name.endswith(".coulomb") for name in names])
    assert np.median(ratio[others]) < 0.5
    assert np.mean(ratio[others] < 1.0) > 0.95


@pytest.mark.parametrize("seed", [1, 2])
def test_friction_of_another_shape_is_no_gain(seed, described, arm):
    estimate = weighted(described, stribeck_log(arm, seed))
    assert "residual-follows-speed" in codes(estimate)
    assert "torque-gains-differ" not in codes(estimate)
    assert np.array_equal(estimate.gain_std, [GAIN_STD["unknown"]] * arm.dof)


def test_columns_that_are_alike_count_once():
    """Each alone takes the whole of what both explain; beside each other, half."""
    rng = np.random.default_rng(2)
    column, noise = rng.normal(size=4000), rng.normal(size=(3, 4000))
    alike = column + 0.05 * noise[:2]
    torque = 0.5 * column + 0.1 * noise[2]
    edges = np.linspace(0, 4000, 41).astype(int)
    remainder = Remainder.of(np.stack([*alike, torque]), edges)
    sizes, scatter = joint_coefficients(remainder, [0, 1])
    expected = np.linalg.lstsq(alike.T, torque, rcond=None)[0]
    np.testing.assert_allclose(sizes, expected, rtol=1e-6)
    assert sizes.sum() == pytest.approx(0.5, rel=0.01)
    # The noise's: white, so that the textbook's covariance is right.
    covariance = 0.01 * np.linalg.inv(alike @ alike.T)
    variance = np.sum(scatter**2, axis=1)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=0.5)


def test_friction_of_the_load_is_not_surer_than_the_rotor_beside_it(described, arm):
    """A rotor turns with its joint and loads no gear; torques show the sum alone."""
    data = samples_of(arm, noise=0.001)
    load = aw.Dynamics(replace_drives(arm)).inverse_dynamics(data.q, data.qd, data.qdd)
    friction = 0.1 * np.abs(load[:, 1]) * np.sign(data.qd[:, 1])
    term = aw.identification.FrictionTerm(1, arm.joints[1].name, "load")
    wrong = missing(data, at(data, 1, friction))
    estimate = aw.identify(described, wrong, friction=[term])
    rotor = arm.layout.drive("rotor_inertia")[1]
    assert np.isinf(estimate.std[rotor])
    assert abs(estimate.parameters[rotor] - 0.2) > 0.05
    row = list(estimate.base.indices).index(arm.parameters.size)
    error = abs(estimate.base_values[row] - 0.1)
    assert error < interval_factor() * estimate.base_std[row]
    # It is in doubt, but known to a tenth.
    assert estimate.base_std[row] < 0.01


def test_assumed_gains_widen_every_interval(plain, described, data, tmp_path):
    wide = weighted(described, data, gain_std="current")
    assert np.array_equal(wide.gain_std, [0.1] * data.dof)
    assert np.all(wide.base_std >= plain.base_std)
    # What all gains have in common scales everything: 10 % of six joints is 4 %.
    relative = wide.base_std / np.abs(wide.base_values)
    assert np.min(relative) > 0.02
    write_estimate(wide, tmp_path / "wide.json")
    assert np.array_equal(read_estimate(tmp_path / "wide.json").gain_std, wide.gain_std)
    with pytest.raises(ArgumentError):
        weighted(described, data, gain_std="volts")


def test_gains_widen_no_band_of_what_the_same_sensors_show(described, data, tmp_path):
    narrow, wide = (weighted(described, data, gain_std=x) for x in (0.0, 0.1))
    one = wide.band(data)
    np.testing.assert_allclose(one.width, narrow.band(data).width, rtol=0.02)
    assert np.all(wide.band(data, residual=False).width > 2.0 * one.width)
    write_estimate(wide, tmp_path / "wide.json")
    again = read_estimate(tmp_path / "wide.json").band(data)
    np.testing.assert_allclose(again.width, one.width, rtol=1e-6)


def test_a_band_is_as_wide_as_errors_on_stretches_left_out(described, arm):
    """A short log with friction that depends on position fits better than it tells."""
    both = samples_of(arm, seed=3, noise=0.02, seconds=14.0)
    both = missing(both, 3.0 * np.sign(both.qd) * np.sin(2.0 * both.q))
    short, unseen = both.split(0.3)
    estimate = aw.identify(described, short)
    blind = replace(estimate, solved=None)
    held_out = [x.band(unseen).holds(unseen.tau).mean() for x in (estimate, blind)]
    assert held_out[0] > held_out[1]
    assert estimate.band(unseen).width.sum() > 1.1 * blind.band(unseen).width.sum()


def test_whiteness_sees_coloured_residuals_and_not_the_filter():
    """White noise has none, however hard it was filtered; a slow residual has."""
    rng = np.random.default_rng(3)
    filtered = low_pass(rng.normal(size=(20_000, 2)), 10.0, 200.0)
    filtered[:, 1] += np.sin(2.0 * np.pi * 0.7 * np.arange(20_000) / 200.0)
    tally = Tally(2)
    for part in np.array_split(filtered, 70):
        tally.add(np.ones(part.shape), part, None, 20)
    noise, coloured = tally.result().whiteness
    assert abs(noise) < 0.1
    assert coloured > 0.5
    once = Tally(2)
    once.add(np.ones(filtered.shape), filtered, None, 20)
    np.testing.assert_allclose(once.result().whiteness, [noise, coloured], rtol=1e-9)


def test_a_trace_of_the_filters_is_no_elastic_joint():
    """With friction, 0.2 % of this log's torque goes as its second derivative."""
    arm = arm_with_friction("ur10", coulomb=6.0)
    motion = random_motion(arm, 11, 15.0)
    log = simulate_log(arm, motion, encoder_counts=2**17, torque_noise=0.01, seed=11)
    assert codes(aw.identify(arm, log)) == set()
