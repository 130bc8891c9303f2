"""What is assumed of torque gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.identification import identify
from armwise.motions import random_motion
from armwise.recordings import Recording, prepare
from armwise.regression import GAIN_STD, joint_gain_std


def test_the_kind_of_signal_says_how_far_a_gain_may_be_off():
    assert np.array_equal(joint_gain_std("current", 3), [0.1, 0.1, 0.1])
    assert np.array_equal(joint_gain_std(None, 2), [GAIN_STD["unknown"]] * 2)
    assert np.array_equal(joint_gain_std(None, 1, "sensor"), [GAIN_STD["sensor"]])
    assert np.array_equal(joint_gain_std([0.0, 0.03], 2), [0.0, 0.03])


@pytest.mark.parametrize("wrong", ["volts", -0.1, 1.0, np.nan, [0.1, 0.1]])
def test_what_is_no_deviation_of_a_gain_is_refused(wrong: object):
    with pytest.raises(ArgumentError):
        joint_gain_std(wrong, 3)


def _log(name: str, scale: np.ndarray, seed: int = 3) -> Recording:
    """A log whose torques would have to be multiplied by a scale."""
    arm, random = load_arm(name), np.random.default_rng(seed)
    time = np.arange(0.0, 20.0, 0.01)
    motion = random_motion(arm, seed, 20.0, reach=0.4).sample(time)
    tau = Dynamics(arm).inverse_dynamics(motion.q, motion.qd, motion.qdd)
    # Of the last link's joint a newton metre, of the first some ten: the same robot's
    # friction in every log.
    size = np.linspace(30.0, 1.0, arm.dof)
    tau += size * (0.15 * np.tanh(motion.qd / 0.02) + 0.1 * motion.qd)
    tau += 0.02 * size * random.normal(size=tau.shape)
    return Recording.from_arrays(
        time, q=motion.q, tau=tau / scale, joint_names=arm.coordinate_names
    )


@pytest.mark.parametrize(
    ("name", "joints", "factor"), [("ur10", [0, 1], 9.0), ("iiwa", [3], 100.0)]
)
def test_torques_that_contradict_each_other_are_brought_together(name, joints, factor):
    """A gear ratio that was forgotten in some joints is found, and said."""
    arm = load_arm(name)
    scale = np.ones(arm.dof)
    scale[joints] = factor
    samples = prepare(_log(name, scale), arm=arm)
    assert np.allclose(samples.preparation.torque_scale, scale, rtol=0.02)
    # Others of the same robot are treated alike.
    other = prepare(_log(name, scale, seed=4), like=samples)
    estimate = identify(arm, samples, friction="linear")
    assert estimate.validate(other).relative_error.max() < 0.05
    said = {w.code: w.text for w in estimate.warnings}
    assert all(arm.coordinate_names[j] in said["torque-scale"] for j in joints)


def test_light_joints_off_by_two_are_found_though_others_hardly_suffer():
    arm = load_arm("panda")
    scale = np.array([1.0, 1.0, 1.0, 1.0, 0.46, 0.46, 0.46])
    factors = prepare(_log("panda", scale), arm=arm).preparation.torque_scale
    assert np.allclose(factors, scale, rtol=0.02)


@pytest.mark.parametrize("name", ["ur10", "tx40"])
def test_torques_within_their_tolerance_are_left_alone(name):
    arm = load_arm(name)
    scale = np.exp(0.1 * np.random.default_rng(1).normal(size=arm.dof))
    assert prepare(_log(name, scale), arm=arm).preparation.torque_scale == ()


def test_another_arm_is_no_matter_of_scale():
    """A description that is not the robot's is not mended by factors."""
    log = _log("puma560", np.ones(6))
    other = replace(load_arm("ur10"), name="another")
    assert prepare(log, arm=other).preparation.torque_scale == ()
