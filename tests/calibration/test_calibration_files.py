"""Calibration files, applied while reading; the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from armwise.cli.main import app
from armwise.errors import RecordingError
from armwise.recordings import (
    Recording,
    SensorCalibration,
    read_calibration,
    read_recording,
    write_calibration,
    write_recording,
)
from tests.calibration.hands import ALPHA, BETA, recorded


def test_a_calibration_survives_its_file(tmp_path):
    made = SensorCalibration(('a "b"', "c"), (1.5, -0.1), (0.25, -3.0))
    path = write_calibration(made, tmp_path / "sensors.toml")
    again = read_calibration(path)
    assert (again.joint_names, again.alpha, again.beta) == (
        made.joint_names, made.alpha, made.beta,
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_unknown_is_written_so_and_not_applied(tmp_path):
    open_ended = SensorCalibration(("a", "b"), (1.5, 2.0), (np.nan, -3.0))
    path = tmp_path / "sensors.toml"
    write_calibration(open_ended, path, {"a.offset": "its axis is vertical"})
    assert 'beta = "unknown"  # its axis is vertical' in path.read_text()
    read = read_calibration(path)
    assert read.alpha == (1.5, 2.0)
    assert np.isnan(read.beta[0])
    q = np.zeros((20, 2))
    log = Recording.from_arrays(np.arange(20) * 0.01, q=q, tau=q)
    with pytest.raises(RecordingError, match="beta of a is unknown"):
        read.applied(log)


def test_reading_applies_it(tmp_path):
    time = np.arange(50) * 0.01
    q, qd = np.sin(time)[:, None] * [1.0, 2.0], np.cos(time)[:, None] * [1.0, 2.0]
    log = tmp_path / "log.csv"
    write_recording(Recording.from_arrays(time, q=q, qd=qd, tau=0 * q), log)
    write_calibration(
        SensorCalibration((), (2.0, -1.0), (0.5, 0.0)), tmp_path / "c.toml"
    )
    read = read_recording(log, calibration=tmp_path / "c.toml")
    assert np.allclose(read["q_1"].values, 2.0 * q[:, 0] + 0.5)
    assert np.allclose(read["qd_2"].values, -qd[:, 1])
    assert "calibrated" in read.notes[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("joint = 3", "needs tables \\[\\[joint\\]\\]"),
        ("[[joint]]\nalpha = 1.0", 'joint 1 has no "beta"'),
        ("[[joint]]\nalpha = 0.0\nbeta = 1", "gain of zero"),
        ('[[joint]]\nalpha = "x"\nbeta = 1', "needs a finite number"),
        ("[[joint]]\nalpha = nan\nbeta = 1", "needs a finite number .* not nan"),
        ("[[", "not TOML"),
    ],
)
def test_bad_files_are_named(tmp_path, text, said):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(RecordingError, match=said):
        read_calibration(path)


def test_a_file_for_another_arm_is_refused(tmp_path):
    three = SensorCalibration((), (1.0,) * 3, (0.0,) * 3)
    time = np.arange(5.0)
    rec = Recording.from_arrays(time, q=np.zeros((5, 2)))
    with pytest.raises(RecordingError, match="3 joints"):
        three.applied(rec)


def test_the_command_line_calibrates(tmp_path):
    log, out = tmp_path / "hand.csv", tmp_path / "sensors.toml"
    write_recording(recorded(), log)
    result = CliRunner().invoke(
        app,
        ["calibrate", "hand_controller", str(log), "--volts", "--known", "*.my",
         "--known", "*.offset", "--positive", "*.mx", "-o", str(out), "--json"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    joints = json.loads(result.stdout)["joints"]
    assert [j["alpha"] for j in joints] == pytest.approx(list(ALPHA), rel=0.01)
    assert read_calibration(out).beta == pytest.approx(tuple(BETA), abs=0.006)
    assert "Gravity, measured" in (tmp_path / "sensors.html").read_text()


def test_without_a_log_it_says_what_can_be_found_and_how(tmp_path):
    motion = tmp_path / "motion.csv"
    arguments = ["calibrate", "hand_controller", "-o", str(motion), "--json"]
    result = CliRunner().invoke(app, arguments)
    prospects = json.loads(result.stdout)["prospects"]
    assert motion.read_text().startswith("time,q_1,q_2")
    assert {p["name"]: p["is_calibratable"] for p in prospects}[
        "joint_2.offset"
    ] is False
