"""Output error: the motion in its control loop, whatever torques say."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import armwise as aw
from armwise.arms import save_arm
from armwise.cli.arguments import METHODS
from armwise.cli.main import app
from armwise.control import PD
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification import OutputError, method_named
from armwise.motions import random_motion
from armwise.plants import SimulatedArm, perturbed, run
from armwise.plants.sensors import Encoder, Tachometer, TorqueSensor

STIFFNESS, DAMPING = (900.0, 600.0, 150.0), (60.0, 40.0, 9.0)


@pytest.fixture(scope="module")
def truth():
    arm = aw.load_arm("ddarm")
    parameters = arm.parameters.copy()
    parameters[arm.layout.drive("coulomb")] = 0.8
    parameters[arm.layout.drive("viscous")] = 0.6
    return arm.with_parameters(parameters)


@pytest.fixture(scope="module")
def described(truth):
    arm = perturbed(truth, 0.2, 1)
    parameters = arm.parameters.copy()
    for kind in ("coulomb", "viscous"):
        parameters[arm.layout.drive(kind)] = 0.0
    return arm.with_parameters(parameters)


@pytest.fixture(scope="module")
def recording(truth):
    return recorded(truth, seed=2)


def recorded(truth, seed):
    sensors = (Encoder.from_counts(2**17), Tachometer(), TorqueSensor(noise_std=0.5))
    plant = SimulatedArm(truth, sensors=sensors, seed=seed)
    motion = random_motion(truth, seed + 1, duration=8.0)
    return run(plant, PD(STIFFNESS, DAMPING), motion)


def errors(estimate, truth):
    """Errors in standard deviations, and as they are."""
    extra = np.zeros(len(estimate.columns.friction))
    true = estimate.base.values(np.concatenate([truth.parameters, extra]))
    away = estimate.base_values - true
    return away / estimate.base_std, np.abs(away)


def identified(described, recording, method):
    return aw.identify(described, recording, method, friction="linear")


def test_noise_of_torques_does_not_matter(truth, described, recording):
    by_motion = identified(described, recording, OutputError(STIFFNESS, DAMPING))
    by_torque = identified(described, recording, None)
    z, away = errors(by_motion, truth)
    assert np.mean(np.abs(z) < 2.1) >= 0.9
    other = errors(by_torque, truth)[1]
    some = other > 0.0  # inertias of rotors that have none are bounded by it
    assert np.median(away[some] / other[some]) < 0.3
    assert by_motion.method == "OutputError"
    assert not by_motion.arm.defects()


def test_gains_are_read_off_the_torques(truth, described, recording):
    estimate = identified(described, recording, "output-error")
    assert np.mean(np.abs(errors(estimate, truth)[0]) < 2.1) >= 0.9
    assert any("read off the log's torques" in note for note in estimate.notes)


def test_torques_of_a_wrong_gain_are_seen(described, recording):
    tables = tuple(
        replace(
            table,
            columns={
                name: values * (1.1 if name == "tau_2" else 1.0)
                for name, values in table.columns.items()
            },
        )
        for table in recording.tables
    )
    off = replace(recording, tables=tables)
    estimate = identified(described, off, OutputError(STIFFNESS, DAMPING))
    ratios = next(n for n in estimate.notes if n.startswith("Measured torques over"))
    found = dict(re.findall(r"(joint_\d) ([0-9.]+[0-9])", ratios))
    assert [float(x) for x in found.values()] == pytest.approx([1, 1.1, 1], abs=0.01)


def test_another_controller_widens_the_intervals(truth, described, recording):
    stiff = tuple(1.15 * x for x in STIFFNESS)
    is_inside = []
    # Of the 25 of one log three are outside now and then: 4 % of those of eight logs.
    for log in (recording, recorded(truth, 5), recorded(truth, 8)):
        estimate = identified(described, log, OutputError(stiff, DAMPING))
        assert any("contradicts" in note for note in estimate.notes)
        is_inside.append(np.abs(errors(estimate, truth)[0]) < 2.1)
    assert np.mean(is_inside) >= 0.9


def test_what_it_cannot_do_is_refused(described, recording):
    bare = tuple(
        replace(
            table,
            columns={k: v for k, v in table.columns.items() if "reference" not in k},
        )
        for table in recording.tables
    )
    with pytest.raises(NotIdentifiable, match="reference_q_1"):
        identified(described, replace(recording, tables=bare), "output-error")
    problem = aw.build_problem(described, recording, friction="linear")
    with pytest.raises(NotIdentifiable, match="one by one"):
        OutputError(STIFFNESS, DAMPING).solve(replace(problem, data=()))
    with pytest.raises(ArgumentError, match="one for each of 3 joints"):
        identified(described, recording, OutputError((1.0, 2.0), 1.0))
    with pytest.raises(ArgumentError, match="stiffness and damping, or neither"):
        OutputError(stiffness=100.0)
    with pytest.raises(ArgumentError, match="No method 'best'"):
        identified(described, recording, "best")


def test_a_log_without_a_pd_controller_has_no_gains(truth, described):
    sensors = (Encoder.from_counts(2**17), TorqueSensor(noise_std=0.5))
    plant = SimulatedArm(truth, sensors=sensors, seed=2)
    # Velocities of differences, low-passed, are late.
    late = run(plant, PD(STIFFNESS, DAMPING, cutoff_hz=20.0), random_motion(truth, 3))
    with pytest.raises(NotIdentifiable, match="no PD controller's"):
        identified(described, late, "output-error")


def test_a_command_with_columns_of_its_own_names(described, recording, tmp_path):
    time = recording["q_1"].time
    log = {"time": time}
    for j in (1, 2, 3):
        for name, shown in (("q", "q"), ("tau", "tau"), ("reference_q", "target")):
            channel = recording[f"{name}_{j}"]
            log[f"{shown}_{j}"] = np.interp(time, channel.time, channel.values)
    path, arm = tmp_path / "run.csv", tmp_path / "arm.urdf"
    table = np.column_stack(list(log.values()))
    np.savetxt(path, table, delimiter=",", header=",".join(log), comments="")
    save_arm(described, arm)
    gains = [",".join(map(str, x)) for x in (STIFFNESS, DAMPING)]
    words = ["identify", str(arm), str(path), "--method", "output-error"]
    words += ["--stiffness", gains[0], "--damping", gains[1], "-o", str(tmp_path / "o")]
    columns = [f"--column=reference_q_{j}=target_{j}" for j in (1, 2, 3)]
    done = CliRunner().invoke(app, [*words, *columns])
    assert done.exit_code == 0, done.output
    assert "Simulated in its control loop" in done.output
    assert (tmp_path / "o/identified.urdf").exists()


def test_the_command_line_knows_every_name():
    assert all(method_named(name) for name in METHODS)
