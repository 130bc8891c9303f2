"""Servos in simulators: their gaps, their exports and what those lose."""

from __future__ import annotations

import ast
import json
import sys

import numpy as np
import pytest

import armwise as aw
from armwise.cli import main as cli
from armwise.errors import ArmwiseError
from armwise.servos import write_servo
from armwise.simulators import certificate, measure_gap
from tests.servos import rig

mujoco = pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def servo(tmp_path_factory):
    robot = rig.arm(tmp_path_factory.mktemp("servo"))
    return rig.truth(robot, delay=0.03, slew=2.0)


@pytest.fixture(scope="module")
def log(servo):
    return rig.recording(servo, 1)


def test_true_servos_have_no_gap_and_a_delay_line_has(servo, log):
    gap = measure_gap(servo, [log])
    assert gap.driven_by == "commands"
    assert np.all(gap.position_error < 1e-3)
    assert gap.described.position_error.mean() > 5 * gap.position_error.mean()
    theirs = measure_gap(servo, [log], simulator="mujoco")
    assert np.all(theirs.position_error < 2e-3)
    assert "delay line" in certificate(gap, "servo.json", ["a.csv"])


def test_what_mjcf_loses_of_a_servo_is_what_its_motion_loses(servo, log, tmp_path):
    path = tmp_path / "servo.xml"
    result = aw.export(servo, path, to="mjcf", recordings=[log])
    effects = {loss.effect: loss.cost for loss in result.losses}
    assert {"delay", "slew limit"} <= set(effects)
    assert result.unit == "rad"
    # Measured in the exported file itself, driven by the commands of the log.
    measured = measure_gap(path, [log])
    assert measured.position_error == pytest.approx(result.cost, rel=0.2)
    # mjlab and Isaac Lab have words for delays.
    text = tmp_path / "servo.py"
    other = aw.export(servo, text, to="mjlab", recordings=[log])
    assert "delay" not in {loss.effect for loss in other.losses}
    calls = [
        {word.arg: ast.literal_eval(word.value) for word in node.keywords}
        for node in ast.walk(ast.parse(text.read_text()))
        if isinstance(node, ast.Call)
    ]
    assert [c["delay_max_lag"] for c in calls] == [30] * servo.arm.dof
    assert [c["stiffness"] for c in calls] == servo.values["stiffness"].tolist()
    aw.export(servo, tmp_path / "isaac.py", to="isaaclab")
    assert "DelayedPDActuatorCfg" in (tmp_path / "isaac.py").read_text()


def test_a_template_with_an_actuator_is_refused(servo, tmp_path):
    aw.export(servo, tmp_path / "own.xml", to="mjcf")
    with pytest.raises(ArmwiseError, match="had an actuator, and two would fight"):
        aw.export(servo, tmp_path / "x.xml", to="mjcf", template=tmp_path / "own.xml")
    with pytest.raises(ArmwiseError, match="no common covariance"):
        aw.export(servo, tmp_path / "x.xml", to="mjcf", draws=3)
    assert not (tmp_path / "x.xml").exists()


def test_the_commands_take_a_file_of_servos(servo, log, tmp_path, monkeypatch, capsys):
    def run(line):
        monkeypatch.setattr(sys, "argv", line.split())
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        said = capsys.readouterr()
        return exit_.value.code or 0, said.out, said.err

    monkeypatch.chdir(tmp_path)
    write_servo(servo, "servo.json")
    aw.write_recording(log, "log.csv")
    code, out, err = run("armwise gap servo.json log.csv -o gap.html --json")
    assert code == 0, err
    gap = json.loads(out)["gap"]
    assert set(gap["validation"]["motions"]) == {"log.csv"}
    assert len(gap["validation"]["mrad"]) == servo.arm.dof
    code, out, err = run("armwise gap servo.json log.csv --at-most-mrad 0.000001")
    assert code == 1
    assert "more than the 1e-06 that were allowed" in err
    line = "armwise export servo.json --to mjcf -o a.xml --log log.csv --json"
    code, out, err = run(line)
    assert code == 0, err
    assert json.loads(out)["unit"] == "rad"
