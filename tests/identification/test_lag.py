"""The torque's delay: fitted beside the parameters, and part of every interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.dynamics import Dynamics
from armwise.identification import WeightedLeastSquares, pose_problem
from armwise.motions import random_motion
from armwise.recordings import UNKNOWN_LAG, Recording, Samples, prepare
from armwise.recordings.alignment.lag import fit_lag, lag_beside_hysteresis
from armwise.recordings.stretches import standstill, sticking
from armwise.regression import Columns, FrictionTerm, torque_rate
from tests.recordings.motions import arm_with_friction, recording


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_white_noise_at_a_thousand_hertz_invents_no_lag(seed):
    """Between samples interpolation lowers noise; no lag may look better for it."""
    arm = aw.load_arm("panda")
    time = np.arange(12_000) / 1000.0
    motion = random_motion(arm, seed, 12.0, harmonics=8)
    q, qd, qdd = motion.sample(time)
    noise = 0.05 * np.random.default_rng(seed).standard_normal(q.shape)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd) + noise
    done = prepare(Recording.from_arrays(time, q=q, tau=tau), arm=arm).preparation
    assert done.lag_std is not None
    assert abs(done.lag) < max(4.0 * done.lag_std, 2e-5)
    assert abs(done.lag) < 1e-4


@pytest.mark.parametrize("lag", [0.0, 0.4e-3, 1.7e-3])
def test_friction_does_not_move_the_lag(lag):
    arm = arm_with_friction(coulomb=4.0)
    rec = recording(arm, lag=lag, torque_noise=0.1, position_noise=1e-5)
    estimate = aw.identify(arm, rec, WeightedLeastSquares(), friction="linear")
    assert estimate.torque_lag is not None
    assert estimate.torque_lag.std < 0.4e-3
    assert estimate.torque_lag.seconds == pytest.approx(
        lag, abs=4.0 * estimate.torque_lag.std
    )


def test_friction_that_falls_with_speed_is_no_delay():
    """Fast motion alone shows the delay, and every interval counts with its doubt."""
    arm = arm_with_friction(coulomb=4.0)
    time = np.arange(20_000) / 1000.0
    motion = random_motion(arm, 0, 20.0, harmonics=12, roughness=0.5)
    lag = 1.5e-3
    q, qd, qdd = motion.sample(time - lag)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += 3.0 * np.exp(-((qd / 0.15) ** 2)) * np.sign(qd)
    tau += np.random.default_rng(0).normal(0.0, 0.1, tau.shape)
    # Encoders that resolve a tenth of a milliradian.
    rec = Recording.from_arrays(time, q=np.round(motion.sample(time).q, 4), tau=tau)
    estimate = aw.identify(arm, rec)
    delay = estimate.torque_lag
    assert delay is not None
    assert delay.std < 0.3e-3
    assert delay.seconds == pytest.approx(lag, abs=2.0 * delay.std)
    # Its doubt is part of the intervals.
    surer = replace(estimate.samples[0].preparation, lag_doubt=None)
    data = replace(estimate.samples[0], preparation=surer)
    other = aw.identify(arm, data, friction=estimate.columns.friction)
    wider = estimate.base_std / other.base_std
    assert wider.max() > 1.05


def test_friction_with_a_memory_is_no_delay():
    """Friction that builds up over 64 mrad turns over late; the torque does not."""
    arm = arm_with_friction(coulomb=0.0)
    time = np.arange(3000) / 100.0
    q, qd, qdd = random_motion(arm, 1, 30.0, harmonics=12, roughness=0.5).sample(time)
    data = Samples(
        time=time,
        q=q,
        qd=qd,
        qdd=qdd,
        tau=Dynamics(arm).inverse_dynamics(q, qd, qdd)
        + np.random.default_rng(0).normal(0.0, 0.05, q.shape),
    )
    lagging = Columns(
        arm,
        tuple(
            FrictionTerm(j, arm.driven[j].name, "hysteresis", 0.064)
            for j in range(arm.dof)
        ),
    )
    friction = lagging.friction_columns(data, slice(0, len(data))).sum(axis=2)
    moved = replace(data, tau=data.tau + 3.0 * friction)
    taken = fit_lag(moved, Columns(arm), 0.0)
    assert taken.seconds > 3e-3
    seconds, std = lag_beside_hysteresis(moved, Columns(arm), taken.seconds)
    assert abs(seconds) < 2.0 * std
    # A third of a sample.
    assert std < 3e-3
    # A delay that is there stays.
    late = replace(moved, tau=np.roll(moved.tau, 2, axis=0))
    seconds, _ = lag_beside_hysteresis(late, Columns(arm), 0.03)
    assert seconds == pytest.approx(0.02, abs=3e-3)


def test_joints_with_a_memory_are_fitted_while_they_reverse():
    arm = arm_with_friction(coulomb=2.0)
    data = prepare(recording(arm, torque_noise=0.5), 5.0, arm=arm)
    term = FrictionTerm(0, arm.driven[0].name, "hysteresis", 1e-3)
    plain, columns = Columns(arm), Columns(arm, (term,))
    masks = [c.trust(data, c.signals(data)[1][4:]) for c in (plain, columns)]
    assert masks[0][:, 0].min() == 0.0
    assert masks[1][:, 0].all()
    np.testing.assert_array_equal(masks[0][:, 1:], masks[1][:, 1:])


def test_the_profile_is_the_joint_fit_of_parameters_and_lag():
    """Base parameters are those of least squares with one more column, the slope."""
    arm = arm_with_friction(coulomb=0.0)
    data = prepare(recording(arm, torque_noise=0.5), 5.0, arm=arm)
    problem = pose_problem(Columns(arm, has_lags=True), [data])
    plain = Columns(arm)
    leaders = plain.user[:, list(problem.base.indices)]
    weights = WeightedLeastSquares(2).solve(pose_problem(plain, [data])).torque_std
    solution = WeightedLeastSquares(torque_std=tuple(weights)).solve(problem)
    rows, right = [], []
    slope = torque_rate(data)
    for block in plain.blocks([data]):
        for j, matrix in enumerate(block.joints):
            trust = block.trust[:, j] / weights[j]
            base = matrix[:-1].T @ leaders[plain.support[j]]
            lag = -slope[block.rows, j, None]
            rows.append(np.hstack([base, lag]) * trust[:, None])
            right.append(matrix[-1] * trust)
    joint = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0]
    np.testing.assert_allclose(solution.values, joint[:-1], rtol=1e-6, atol=1e-9)
    assert problem.lag(solution.values) == pytest.approx(joint[-1], abs=1e-9)


def test_an_open_lag_widens_intervals_and_a_given_one_does_not():
    arm = arm_with_friction(coulomb=2.0)
    data = prepare(recording(arm, torque_noise=0.5), 5.0, arm=arm)
    known = replace(data, preparation=replace(data.preparation, lag_std=None))
    estimates = [
        aw.identify(arm, one, WeightedLeastSquares(), friction="linear")
        for one in (data, known)
    ]
    assert estimates[1].torque_lag is None
    wider = estimates[0].base_std / estimates[1].base_std
    assert wider.max() > 1.05
    assert np.median(wider) > 0.98


def test_a_joint_that_sticks_is_seen_in_its_raw_position():
    """A pause of 60 ms at a reversal, in counts of an encoder of 16 bits."""
    time = np.arange(4000) / 1000.0
    # It stops for 60 ms wherever it turns back: time itself pauses there.
    moving = np.interp(time, [0, 1, 1.06, 3, 3.06, 4], [0, 1, 1, 2.94, 2.94, 3.88])
    q = 0.5 * np.sin(0.5 * np.pi * moving)
    count = 2.0 * np.pi / 2**16
    still = standstill(np.round(q / count) * count, 1000.0)
    assert np.all(still[1005:1055] == 1.0)
    assert still[500:900].sum() == 0.0
    # A rest of a second is no reversal: the joint holds its load.
    held = np.where(time < 1.0, q, np.where(time < 2.5, q[1000], q))
    assert standstill(held, 1000.0)[1300:2200].sum() == 0.0


@pytest.mark.parametrize(("bits", "slowness"), [(16, 1.0), (19, 1.0), (19, 0.2)])
def test_slow_motion_is_no_sticking(bits, slowness):
    """Pauses of 60 ms stick; reversals in between, however slow, do not."""
    time = np.arange(12_000) / 1000.0
    pauses = [1.0, 5.06]
    moving = time - sum(np.clip(time - start, 0.0, 0.06) for start in pauses)
    q = slowness * 0.5 * np.sin(0.5 * np.pi * moving)
    count = 2.0 * np.pi / 2**bits
    stuck = sticking(np.round(q / count) * count, 1000.0)
    for start in pauses:
        first = round(1000 * start)
        assert np.all(stuck[first + 15 : first + 45] == 1.0)
        stuck[first - 30 : first + 90] = 0.0
    assert not stuck.any()


@pytest.mark.parametrize(("pause", "is_seen"), [(0.05, False), (0.2, True)])
def test_a_few_samples_do_not_show_a_pause(pause, is_seen):
    """At 100 samples a second, 50 ms leave three at rest."""
    time = np.arange(400) / 100.0
    q = 0.5 * np.sin(0.5 * np.pi * (time - np.clip(time - 1.0, 0.0, pause)))
    count = 2.0 * np.pi / 2**19
    assert sticking(np.round(q / count) * count, 100.0).any() == is_seen


def slow_recording(seed: int, noise: float = 8.0):
    """Minutes-long waves under noise that hides how the torque changes."""
    arm, lag = arm_with_friction(coulomb=10.0), 2e-3
    time = np.arange(1500) / 50.0
    motion = random_motion(arm, seed, 60.0, harmonics=4)
    tau = Dynamics(arm).inverse_dynamics(*motion.sample(time - lag))
    tau += np.random.default_rng(seed).normal(0.0, noise, tau.shape)
    return arm, Recording.from_arrays(time, q=motion.sample(time)[0], tau=tau)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_lag_that_noise_hides_is_open_and_said_to_be(seed, tmp_path):
    """Noise has a slope, too: fitted to that a delay of 25 ms would look sure."""
    arm, rec = slow_recording(seed)
    estimate = aw.identify(arm, rec, friction="linear")
    lag = estimate.torque_lag
    assert abs(lag.seconds - 2e-3) < 2.0 * lag.std
    assert lag.std > 10e-3
    aw.write_estimate(estimate, tmp_path / "estimate.json")
    assert aw.read_estimate(tmp_path / "estimate.json").torque_lag == lag


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_log_of_one_speed_shows_no_lag(seed):
    """A delay is another posture there, which other masses explain."""
    arm = arm_with_friction()
    rng = np.random.default_rng(seed)
    time = np.arange(2000) / 200.0
    speed = rng.uniform(0.05, 0.1, arm.dof)
    q = rng.uniform(-1.0, 1.0, arm.dof) + speed * time[:, None]
    tau = Dynamics(arm).inverse_dynamics(q, 0.0 * q + speed, 0.0 * q)
    tau += 0.01 * np.abs(tau).max(axis=0) * rng.standard_normal(tau.shape)
    count = 2.0 * np.pi / 2**16
    log = Recording.from_arrays(time, q=count * np.round(q / count), tau=tau)
    lag = aw.identify(arm, log, friction="linear").torque_lag
    assert lag.seconds == 0.0
    assert lag.std >= UNKNOWN_LAG


def test_a_lag_that_is_hardly_determined_widens_intervals():
    arm, rec = slow_recording(0, noise=0.1)
    data = prepare(rec, arm=arm)
    sure = replace(data, preparation=replace(data.preparation, lag_doubt=None))
    estimates = [aw.identify(arm, one, friction="linear") for one in (data, sure)]
    assert estimates[0].torque_lag.std > 1e-3
    assert estimates[1].torque_lag is None
    is_finite = np.isfinite(estimates[1].base_std)
    ratio = estimates[0].base_std[is_finite] / estimates[1].base_std[is_finite]
    assert ratio.min() > 1.0 - 1e-9
    assert ratio.max() > 1.02


def test_a_log_too_short_to_show_a_lag_says_that_nothing_shows_it(tmp_path):
    arm, rec = slow_recording(0)
    estimate = aw.identify(arm, rec.between(0.0, 1.3), friction="linear")
    assert estimate.torque_lag.std == np.inf
    aw.write_estimate(estimate, tmp_path / "estimate.json")
    again = aw.read_estimate(tmp_path / "estimate.json")
    assert again.torque_lag == estimate.torque_lag
