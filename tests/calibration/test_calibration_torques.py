"""Torque gains from a known load."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from armwise.arms import InertialParameters, load_arm
from armwise.calibration import calibrate_torques
from armwise.cli.main import app
from armwise.control import ComputedTorque
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.loads import TorqueGains, read_torque_gains, write_torque_gains
from armwise.motions import Triangle
from armwise.plants import (
    Encoder,
    Payload,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
    carrying,
    perturbed,
    run,
)
from armwise.recordings import write_recording
from tests.calibration.hands import hand

TRUE = np.array([1.07, 0.93])
LOAD = Payload(
    "hand",
    InertialParameters.from_center_of_mass(0.2, [0.02, 0.0, 0.0], np.eye(3) / 1e4),
)


def motion(middle: float) -> Triangle:
    return Triangle(
        np.array([-0.2, middle]), np.array([0.6, 0.7]), np.array([4.0, 3.1]), 12.0,
        rounding=0.3,
    )  # fmt: skip


def recorded(arm, path: Triangle, seed: int):
    """What amplifiers log whose torques are not what they think."""
    sensors = [Encoder(1e-5), Tachometer(), TorqueSensor(noise_std=0.002)]
    plant = SimulatedArm(arm, sensors=sensors, control_rate_hz=250, seed=seed)
    log = run(plant, ComputedTorque(arm, 400.0, 40.0), path)
    channels = {
        f"tau_{j + 1}": replace(
            log[f"tau_{j + 1}"], values=log[f"tau_{j + 1}"].values / TRUE[j]
        )
        for j in range(2)
    }
    return log.with_channels(channels)


def written(log, path):
    """Positions and torques on one time base."""
    kept = {k: v for k, v in log.channels.items() if k[:2] in ("q_", "ta")}
    write_recording(log.select(kept), path)
    return path


@pytest.fixture(scope="module")
def logs():
    arm = hand()
    return recorded(arm, motion(0.3), 1), recorded(carrying(arm, LOAD), motion(0.1), 2)


def test_gains_come_out_within_their_uncertainty(logs):
    found = calibrate_torques(hand(), *logs, LOAD)
    assert found.gain == pytest.approx(TRUE, rel=0.01)
    assert np.all(np.abs(found.gain - TRUE) < 5.0 * found.std)
    # Joint 2 hardly turns back under load: friction that grows with it is possible.
    assert np.all(found.std < [0.01, 0.06])


def test_a_guess_only_shifts_the_search(logs):
    plain = calibrate_torques(hand(), *logs, LOAD)
    other = calibrate_torques(hand(), *logs, LOAD, guess=[1.3, 0.8])
    assert np.all(np.abs(other.gain - plain.gain) < 0.5 * plain.std + 1e-3)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_loop_that_yields_and_a_description_that_is_off(seed):
    """The loaded arm moves otherwise; what that changes is not taken for the load."""
    arm, path = hand(), motion(0.3)
    described = perturbed(arm, 0.5, seed=seed)
    loop = ComputedTorque(described, 150.0, 24.0)
    sensors = [Encoder(1e-5), TorqueSensor(noise_std=0.0005)]
    empty, loaded = (
        run(SimulatedArm(x, sensors=sensors, control_rate_hz=250, seed=k), loop, path)
        for k, x in enumerate((arm, carrying(arm, LOAD)))
    )
    found = calibrate_torques(described, empty, loaded, LOAD)
    # By the description alone gains come out up to 80 % off.
    assert found.gain == pytest.approx(1.0, abs=0.03)
    assert np.all(np.abs(found.gain - 1.0) < 3.0 * found.std)


def test_no_load_determines_nothing(logs):
    nothing = replace(LOAD, inertia=InertialParameters.zero())
    with pytest.raises(NotIdentifiable, match="no joint's torque"):
        calibrate_torques(hand(), logs[0], logs[0], nothing)


def test_the_command_line_calibrates_torques(logs, tmp_path):
    paths = [
        written(log, tmp_path / name)
        for log, name in zip(logs, ("free.csv", "loaded.csv"), strict=True)
    ]
    options = ["--load-mass", "0.2", "--load-center", "0.02,0,0", "--json"]
    arguments = [str(paths[0]), "--loaded", str(paths[1]), "--load-frame", "hand"]
    result = CliRunner().invoke(
        app, ["calibrate-torques", "hand_controller", *arguments, *options]
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["torque_gains"]
    assert rows[0]["gain"] == pytest.approx(TRUE[0], rel=0.02)
    for row, gain in zip(rows, TRUE, strict=True):
        assert abs(row["gain"] - gain) < 3.0 * row["std"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Missing option '--load-mass'"),
        (["--load-mass", "1", "--load-center", "0,1"], "takes x,y,z"),
    ],
)
def test_a_load_must_be_described(logs, tmp_path, options, said):
    path = written(logs[0], tmp_path / "free.csv")
    arguments = ["calibrate-torques", "hand_controller", str(path)]
    arguments += ["--loaded", str(path)]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert result.exit_code != 0
    assert said in " ".join(result.output.split())


def test_the_mass_alone_is_enough_for_the_joint_that_lifts_it(logs, tmp_path):
    paths = [written(x, tmp_path / f"{i}.csv") for i, x in enumerate(logs)]
    gains = tmp_path / "gains.json"
    arguments = [str(paths[0]), "--loaded", str(paths[1]), "--load-mass", "0.2"]
    options = ["--load-frame", "hand", "--json", "-o", str(gains)]
    result = CliRunner().invoke(
        app, ["calibrate-torques", "hand_controller", *arguments, *options]
    )
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)["torque_gains"][0]
    assert abs(row["gain"] - TRUE[0]) < 3.0 * row["std"]
    assert row["std"] < 0.1
    again = read_torque_gains(gains, hand())
    assert again.gain[0] == pytest.approx(row["gain"])


def test_gains_of_another_arm_are_refused(tmp_path):
    path = tmp_path / "gains.json"
    write_torque_gains(TorqueGains.as_recorded(hand()), path)
    with pytest.raises(ArgumentError, match="but ur10 has"):
        read_torque_gains(path, load_arm("ur10"))
    path.write_text('{"format": "armwise torque gains 1"}')
    with pytest.raises(ArgumentError, match="holds no torque gains"):
        read_torque_gains(path, hand())
