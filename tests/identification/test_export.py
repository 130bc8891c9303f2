"""The model in a file: friction fitted for it, and its error as others find it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armwise as aw
from armwise.arms import Drive, load_arm, save_arm
from armwise.dynamics import Dynamics
from armwise.identification import (
    FrictionTerm,
    arm_for_file,
    file_error,
    nearest_bodies,
    read_back,
    read_estimate,
    write_estimate,
)
from armwise.motions import random_motion
from armwise.recordings import Samples


@pytest.fixture(scope="module")
def samples() -> tuple[aw.Arm, Samples]:
    """A two-link arm with friction that no URDF can hold: a root of speed."""
    arm = load_arm("two_link_uno")
    drives = [Drive(0.0, 0.05, 0.2), Drive(0.0, 0.03, 0.1)]
    joints = zip(arm.joints, drives, strict=True)
    arm = replace(arm, joints=tuple(replace(j, drive=d) for j, d in joints))
    time = np.arange(0.0, 10.0, 0.005)
    q, qd, qdd = random_motion(arm, 0, 10.0).sample(time)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += 0.4 * np.sign(qd) * np.sqrt(np.abs(qd))
    tau += 0.01 * np.random.default_rng(1).standard_normal(tau.shape)
    return arm, Samples(time, q, qd, qdd, tau, arm=arm)


def test_the_files_error_is_what_its_reader_finds(samples, tmp_path: Path):
    arm, data = samples
    terms = [FrictionTerm(j, arm.joints[j].name, "root") for j in range(2)]
    estimate = aw.identify(arm, data, friction=terms)
    path = tmp_path / "identified.urdf"
    save_arm(arm_for_file(estimate), path)
    reported = file_error(read_back(path, estimate), [data])
    stranger = load_arm(path).with_gravity(arm.gravity)
    torque = Dynamics(stranger).inverse_dynamics(data.q, data.qd, data.qdd)
    expected = np.linalg.norm(data.tau - torque, axis=0)
    expected /= np.linalg.norm(data.tau, axis=0)
    np.testing.assert_allclose(reported.relative_error, expected, rtol=1e-9)


def test_friction_of_the_file_is_fitted_without_the_lost_terms(samples):
    arm, data = samples
    terms = [FrictionTerm(j, arm.joints[j].name, "root") for j in range(2)]
    estimate = aw.identify(arm, data, friction=terms)
    dropped = file_error(estimate.arm, [data]).relative_error
    fitted = file_error(arm_for_file(estimate), [data]).relative_error
    assert np.all(fitted < 0.5 * dropped)
    assert np.all(estimate.fit.relative_error < fitted)


def test_joints_without_further_terms_keep_their_friction(samples):
    arm, data = samples
    term = FrictionTerm(0, arm.joints[0].name, "root")
    estimate = aw.identify(arm, data, friction=[term])
    shoulder, elbow = arm_for_file(estimate).joints
    assert elbow.drive == estimate.arm.joints[1].drive
    assert shoulder.drive.viscous > 1.1 * estimate.arm.joints[0].drive.viscous


def test_the_estimates_file_knows_the_friction_of_other_files(samples, tmp_path: Path):
    """Without the log an export has the friction that was fitted on it."""
    arm, data = samples
    terms = [FrictionTerm(j, arm.joints[j].name, "root") for j in range(2)]
    estimate = aw.identify(arm, data, friction=terms)
    write_estimate(estimate, tmp_path / "estimate.json")
    known = read_estimate(tmp_path / "estimate.json")
    written = load_arm(aw.export(known, tmp_path / "x.urdf", to="urdf").files[0])
    expected = arm_for_file(estimate).parameters
    viscous = arm.layout.drive("viscous")
    assert np.any(expected[viscous] != estimate.parameters[viscous])
    np.testing.assert_allclose(written.parameters[viscous], expected[viscous])


def test_without_further_terms_the_arm_is_the_estimates(samples):
    arm, data = samples
    estimate = aw.identify(arm, data, friction="linear")
    assert arm_for_file(estimate) is estimate.arm


def test_what_was_not_delivered_is_an_error(tmp_path: Path, monkeypatch, capsys):
    """Plain least squares on a short, noisy log gives bodies that cannot exist."""
    from armwise.cli import main as cli
    from armwise.recordings import Recording, write_recording

    arm = load_arm("ur5")
    time = np.arange(0.0, 3.0, 0.01)
    q, qd, qdd = random_motion(arm, 0, 3.0).sample(time)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += 2.0 * np.random.default_rng(1).standard_normal(tau.shape)
    log = tmp_path / "log.csv"
    write_recording(Recording.from_arrays(time, q=q, qd=qd, tau=tau), log)
    words = ["identify", "ur5", str(log), "--method", "weighted", "--json"]
    monkeypatch.setattr("sys.argv", ["armwise", *words, "-o", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert ended.value.code == 1
    assert "--method physical" in err
    assert "urdf" not in json.loads(out)["files"]
    assert not (tmp_path / "out" / "identified.urdf").exists()


def test_published_numbers_that_no_body_has_become_bodies():
    arm = aw.load_arm("ddarm")
    assert arm.defects()
    bodies, missing = nearest_bodies(arm)
    assert not bodies.defects()
    assert missing.max() < 1e-4


def test_exact_torques_of_numbers_that_no_body_has_are_identified():
    """Their gains scatter by nothing at all, which is no matrix to invert."""
    arm = aw.load_arm("ddarm")
    times = np.arange(0.0, 20.0, 0.02)
    motion = random_motion(arm, 1).sample(times)
    data = Samples(times, *motion, Dynamics(arm).inverse_dynamics(*motion), arm=arm)
    estimate = aw.identify(arm, data, friction="linear")
    assert not estimate.arm.defects()
    assert estimate.fit.relative_error.max() < 1e-6
