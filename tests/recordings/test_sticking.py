"""Joints that stick: torque that turns from limit to limit while nothing moves."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.motions import random_motion
from armwise.recordings import Recording, prepare
from armwise.regression import stuck_or_creeping

RATE = 500.0


@pytest.fixture(scope="module")
def arm():
    return aw.load_arm("two_link_uno")


def strokes(rng, count, dwell):
    """Strokes to and fro of a joint that stands between them, and its friction's sign.

    While it stands, friction goes evenly from one limit to the other.
    """
    q, friction, at, side = [], [], 0.0, 1.0
    for _ in range(count):
        s = np.linspace(0.0, 1.0, round(RATE * rng.uniform(0.5, 0.9)))
        length = side * rng.uniform(0.3, 0.7)
        q.append(at + length * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5))
        friction.append(np.full(s.size, side))
        at, side = q[-1][-1], -side
        rest = round(RATE * dwell * rng.uniform(0.6, 1.4))
        q.append(np.full(rest, at))
        friction.append(np.linspace(-side, side, rest))
    return np.concatenate(q), np.concatenate(friction)


def sticking_log(arm, dwell):
    """Log of an arm whose two joints stand for some time in [s] at every reversal."""
    rng = np.random.default_rng(5)
    joints = [strokes(rng, 24, dwell) for _ in range(2)]
    rows = min(len(q) for q, _ in joints)
    q, friction = (np.stack([x[k][:rows] for x in joints], axis=1) for k in (0, 1))
    time = np.arange(rows) / RATE
    qd = np.gradient(q, 1.0 / RATE, axis=0)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, np.gradient(qd, 1.0 / RATE, axis=0))
    size = 0.3 * np.abs(tau).max(axis=0)
    tau = tau + size * friction + 0.01 * size * rng.standard_normal(tau.shape)
    count = 2.0 * np.pi / 2**16
    return Recording.from_arrays(time, q=count * np.round(q / count), tau=tau), size


@pytest.mark.parametrize("dwell", [0.15, 0.4])
def test_torque_that_turns_while_a_joint_sticks_was_not_filtered(arm, dwell):
    """It looks like Coulomb friction through a low-pass, and early; it is neither."""
    log, _ = sticking_log(arm, dwell)
    samples = prepare(log, arm=arm)
    assert np.all(samples.stuck.mean(axis=0) > 0.1)
    assert samples.torque_bandwidth_hz >= 0.9 * samples.preparation.low_pass_hz
    assert abs(samples.preparation.lag) < 1e-3


def test_friction_of_joints_that_stick_is_that_of_their_motion(arm):
    log, size = sticking_log(arm, 0.4)
    estimate = aw.identify(arm, log)
    coulomb = estimate.parameters[arm.layout.drive("coulomb")]
    assert coulomb == pytest.approx(size, rel=0.03)
    assert not any(term.form == "hysteresis" for term, _ in estimate.friction)


def test_a_joint_creeps_only_if_it_sticks_elsewhere(arm):
    log, _ = sticking_log(arm, 0.4)
    samples = prepare(log, arm=arm)
    speed = np.abs(samples.qd)
    creeps = (speed > 0.0) & (speed < 0.02 * speed.max(axis=0))
    assert stuck_or_creeping(samples)[creeps].all()
    free = aw.Samples(
        time=samples.time, q=samples.q, qd=samples.qd, qdd=samples.qdd, tau=samples.tau
    )
    assert not stuck_or_creeping(free).any()


def test_an_estimate_validates_recordings_as_its_own_were_prepared(arm):
    log, _ = sticking_log(arm, 0.15)
    estimate = aw.identify(arm, log)
    by_samples = estimate.validate(prepare(log, like=estimate))
    by_recording = estimate.validate(log)
    assert np.array_equal(by_recording.relative_error, by_samples.relative_error)


def test_a_joint_held_by_its_brake_lacks_no_gear_ratio():
    """Its motor's torque has nothing to do with its links; the others' has."""
    arm = aw.load_arm("ur5")
    time = np.arange(round(12.0 * RATE)) / RATE
    q, qd, qdd = (x.copy() for x in random_motion(arm, 3, 12.0).sample(time))
    q[:, 3], qd[:, 3], qdd[:, 3] = q[0, 3], 0.0, 0.0
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    size = np.abs(tau).max(axis=0)
    tau[:, 3] = 0.1 * size[3]
    tau += 0.005 * size * np.random.default_rng(1).standard_normal(tau.shape)
    log = Recording.from_arrays(time, q=q, tau=tau)
    assert prepare(log, arm=arm).preparation.torque_scale == ()
    tau[:, 2] *= 50.0
    geared = prepare(Recording.from_arrays(time, q=q, tau=tau), arm=arm)
    scale = geared.preparation.torque_scale
    assert scale[2] == pytest.approx(0.02, rel=0.1)
    assert scale[3] == 1.0
