"""The four real recordings, read and prepared in one call each."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armwise.arms import Arm, load_arm
from armwise.cli.inspect import named_columns
from armwise.cli.main import app
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.recordings import (
    Samples,
    apply_mapping_to_arm,
    load_mapping,
    prepare,
    read_recording,
    write_recording,
)
from tests.recordings.motions import arm_with_friction, recording

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ARMWISE_DATA", ROOT.parent / "shared" / "data"))
MAPPINGS = ROOT / "examples" / "real"

real = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the real recordings are not at {DATA} (ARMWISE_DATA)"
)

EMPS = """<robot name="emps"><link name="base"/><link name="carriage"/>
<joint name="slide" type="prismatic"><parent link="base"/><child link="carriage"/>
<axis xyz="1 0 0"/><limit lower="-1" upper="1" velocity="1" effort="500"/></joint>
</robot>"""

LOGS = {
    "emps": "emps/DATA_EMPS.mat",
    "tx40": "tx40/pos_read_data.csv",
    "ur10": "ur10/ur10_exciting_trajectory.db3",
    "panda": "panda/exciting_traj_positions.txt",
}


def arm_file(name: str, tmp_path: Path) -> str:
    if name == "emps":
        path = tmp_path / "emps.urdf"
        path.write_text(EMPS)
        return str(path)
    files = {"tx40": "tx40/tx40.urdf", "ur10": "ur10/ur10_robot.urdf"}
    return str(DATA / files[name]) if name in files else "panda"


def relative_errors(arm: Arm, data: Samples) -> np.ndarray:
    """Fit everything by plain least squares; what is left, per joint."""
    Y = np.array(Dynamics(arm).regressor(data.q, data.qd, data.qdd))
    weights = np.concatenate(
        [arm.coupling_matrix, *(c.weights[None] for c in arm.couplings)]
    )
    coulomb = [i for i, n in enumerate(arm.parameter_names) if n.endswith(".coulomb")]
    for column, (w, d) in zip(
        coulomb, zip(weights, data.direction(weights).T, strict=True), strict=True
    ):
        Y[:, :, column] = np.outer(d, w)
    scale = 1.0 / data.tau.std(axis=0)
    rows = (Y * scale[:, None]).reshape(-1, Y.shape[2])
    best = np.linalg.lstsq(rows, (data.tau * scale).ravel(), rcond=1e-8)[0]
    left = data.tau - Y @ best
    return 100 * np.linalg.norm(left, axis=0) / np.linalg.norm(data.tau, axis=0)


@real
@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("emps", [4.083]),
        ("tx40", [10.4, 13.2, 14.9, 19.2, 68.3, 34.1]),
        ("ur10", [15.1, 4.2, 6.2, 9.0, 11.7, 30.3]),
        ("panda", [8.0, 1.2, 2.0, 1.2, 8.0, 3.1, 21.0]),
    ],
)
def test_a_plain_fit_beats_the_known_errors(name, limits, tmp_path):
    mapping = load_mapping(MAPPINGS / f"{name}.toml")
    arm = apply_mapping_to_arm(load_arm(arm_file(name, tmp_path)), mapping)
    log = read_recording(DATA / LOGS[name], arm, mapping)
    # Those who published these errors took no delay out either.
    data = prepare(log, arm=arm, lag=0.0)
    assert np.all(relative_errors(arm, data) < limits)


@real
def test_panda_under_the_papers_conditions():
    arm = load_arm("panda")
    rec = read_recording(DATA / "panda", arm, MAPPINGS / "panda.toml")
    data = prepare(rec, 10.0, arm=arm)
    left = relative_errors(arm, data) / 100 * np.linalg.norm(data.tau, axis=0)
    total = 100 * np.linalg.norm(left) / np.linalg.norm(data.tau)
    assert total < 1.41  # Gaz et al. 2019


@real
def test_tx40_motors_become_joints(tmp_path):
    arm = load_arm(DATA / "tx40" / "tx40.urdf")
    mapping = load_mapping(MAPPINGS / "tx40.toml")
    rec = read_recording(DATA / "tx40", arm, mapping)
    assert rec["q_2"].values[0] == pytest.approx(0.0, abs=1e-3)
    assert rec["q_3"].values[0] == pytest.approx(0.0, abs=1e-3)
    assert rec["q_1"].time[1] == pytest.approx(2e-4)
    grown = apply_mapping_to_arm(arm, mapping)
    assert grown.couplings[0].weights.tolist() == [0, 0, 0, 0, 1, 1]


@real
@pytest.mark.parametrize("name", LOGS)
def test_inspect_log_in_one_line(name, tmp_path):
    words = ["inspect-log", str(DATA / LOGS[name]), "--arm", arm_file(name, tmp_path)]
    words += ["--mapping", str(MAPPINGS / f"{name}.toml"), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["samples"] > 500
    assert report["preparation"]["cutoff_hz"] > 1.0


@real
def test_the_trajectory_bag_is_no_measurement():
    from armwise.errors import RecordingError

    with pytest.raises(
        RecordingError, match=r"no topic of joint states.*JointTrajectory"
    ):
        read_recording(DATA / "ur10" / "validation_trajectory.db3")


def test_inspect_log_speaks_to_people(tmp_path):
    rec = recording(arm_with_friction(), rate=200.0, lag=0.02)
    write_recording(replace(rec, joint_names=()), tmp_path / "run.csv")
    words = ["inspect-log", str(tmp_path / "run.csv"), "--arm", "ddarm"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "tau_3" in result.output
    assert "Torque lag removed: 20." in result.output
    result = CliRunner().invoke(app, [*words, "--cutoff-hz", "7"])
    assert "Low-pass: 7 Hz (as set)" in result.output


def test_column_options():
    assert named_columns(["tau_1=a=b"]) == {"tau_1": "a=b"}
    with pytest.raises(ArgumentError, match="CHANNEL=NAME"):
        named_columns(["tau_1"])
