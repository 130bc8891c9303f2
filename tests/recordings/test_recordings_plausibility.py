from __future__ import annotations

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.errors import RecordingError
from armwise.recordings import (
    Recording,
    read_recording,
    suspicions,
    write_recording,
)


def write(tmp_path, q, tau=None, names=None):
    time = np.arange(len(q)) * 0.01
    tau = np.zeros_like(q) if tau is None else tau
    path = tmp_path / "run3.csv"
    write_recording(Recording.from_arrays(time, q=q, tau=tau), path)
    return path


def inside(arm, rows=50):
    lower = np.maximum(arm.limits("lower"), -3.0)
    upper = np.minimum(arm.limits("upper"), 3.0)
    share = 0.5 + 0.45 * np.sin(np.linspace(0, 6, rows))[:, None]
    return lower + share * (upper - lower)


def test_degrees_are_suspected_and_said(tmp_path):
    arm = load_arm("panda")
    path = write(tmp_path, np.rad2deg(inside(arm)))
    with pytest.raises(RecordingError, match=r"run3.csv: q_\d .*seem to be in degrees"):
        read_recording(path, arm)
    read_recording(write(tmp_path, inside(arm)), arm)


def test_degrees_are_noted_when_the_arm_is_not_known(tmp_path):
    arm = load_arm("panda")
    rec = read_recording(write(tmp_path, np.rad2deg(inside(arm))))
    assert "in degrees?" in rec.notes[0]
    assert not read_recording(write(tmp_path, inside(arm))).notes


def test_wrong_joint_count(tmp_path):
    arm = load_arm("panda")
    with pytest.raises(RecordingError, match="positions of 6 joints, but panda has 7"):
        read_recording(write(tmp_path, inside(arm)[:, :6]), arm)
    with pytest.raises(RecordingError, match='column "q_7" is for joint 7, but ur10'):
        read_recording(write(tmp_path, inside(arm)), load_arm("ur10"))


def test_missing_torque_is_named(tmp_path):
    arm = load_arm("panda")
    q = inside(arm)
    path = write(tmp_path, q, q[:, :2])
    with pytest.raises(RecordingError, match=r'no column "tau_3".*--column tau_3=NAME'):
        read_recording(path, arm)


def test_swapped_joints_are_suspected(tmp_path):
    arm = load_arm("panda")  # joint 4 is always negative, joint 6 always positive
    q = inside(arm)
    swapped = q[:, [0, 1, 2, 5, 4, 3, 6]]
    with pytest.raises(RecordingError, match="if q_4 and q_6 were exchanged"):
        read_recording(write(tmp_path, swapped), arm)


def test_names_that_are_no_joints(tmp_path):
    arm = load_arm("panda")
    path = tmp_path / "log.csv"
    path.write_text("time,q_elbow\n0,1\n1,1\n")
    with pytest.raises(RecordingError, match=r'"q_elbow" names no joint of panda'):
        read_recording(path, arm)
    path.write_text("time,q_1,q1\n0,1,1\n1,1,1\n")
    with pytest.raises(RecordingError, match="both give q_1"):
        read_recording(path, arm)


@pytest.mark.parametrize("is_signed", [True, False])
def test_a_torque_of_one_sign_is_not_an_absolute_value(is_signed):
    arm = load_arm("two_link_uno")
    time = np.arange(0.0, 20.0, 0.01)
    wave = np.sin(3.0 * time) + 0.02 * np.sin(0.7 * time)
    # Its lowest values come near zero again and again, and turn back above it.
    signed = wave - wave.min() + 0.002
    tau = np.stack([signed if is_signed else np.abs(wave)] * 2, axis=1)
    tau += 1e-4 * np.random.default_rng(0).random(tau.shape)
    q = np.stack([np.sin(time), np.cos(time)], axis=1)
    recording = Recording.from_arrays(time, q=q, tau=tau)
    codes = {warning.code for warning in suspicions(recording, arm)}
    assert ("torque-unsigned" in codes) is not is_signed
