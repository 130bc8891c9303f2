"""Limits, and motions as files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ruamel.yaml import YAML

from armwise.arms import Arm, Joint, Limits, Link
from armwise.errors import ArgumentError
from armwise.motions import Quintic, check_limits, write_motion

MOTION = Quintic([0.0, 0.5], [1.0, -0.5], 0.995)


def _arm(limits: Limits) -> Arm:
    z, free = np.array([0.0, 0.0, 1.0]), Limits()
    joints = (
        Joint("shoulder", "revolute", -1, np.eye(4), z, free),
        Joint("rail", "prismatic", 0, np.eye(4), z, limits),
    )
    return Arm("toy", joints, (Link("upper"), Link("lower")))


def test_a_motion_within_the_limits_passes():
    check_limits(MOTION, _arm(Limits(-0.5, 0.5, 1.9, 6.0)))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(lower=-0.4), r"'rail' has the position -0.5 m at t = 0.9950 s"),
        (Limits(upper=0.4), r"'rail' has the position 0.5 m at t = 0.0000 s"),
        (Limits(velocity=1.8), r"velocity -1.88442 m/s at t = 0.497. s.*limit -1.8"),
        (Limits(acceleration=5.0), r"acceleration (-?)5.83\d+ m/s²"),
    ],
)
def test_a_motion_beyond_a_limit_is_named(limits, message):
    with pytest.raises(ArgumentError, match=message):
        check_limits(MOTION, _arm(limits))


def test_a_motion_of_the_wrong_width_is_named():
    with pytest.raises(ArgumentError, match="moves 1 joints; toy has 2"):
        check_limits(Quintic([0.0], [1.0], 1.0), _arm(Limits()))


def test_csv_round_trip(tmp_path):
    path = write_motion(MOTION, tmp_path / "plan.csv", 50.0)
    header = path.read_text().splitlines()[0]
    assert header == "time,q_1,q_2,qd_1,qd_2,qdd_1,qdd_2"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    assert table[-1, 0] == 0.995
    np.testing.assert_allclose(np.diff(table[:-1, 0]), 0.02)
    expected = np.column_stack(MOTION.sample(table[:, 0]))
    np.testing.assert_array_equal(table[:, 1:], expected)


@pytest.mark.parametrize("name", ["plan.json", "plan.yaml"])
def test_ros_joint_trajectory(tmp_path, name):
    path = write_motion(MOTION, tmp_path / name, 10.0, ["shoulder", "rail: 1"])
    text = path.read_text()
    message = json.loads(text) if name.endswith("json") else YAML(typ="safe").load(text)
    assert message["joint_names"] == ["shoulder", "rail: 1"]
    assert set(message["header"]) == {"stamp", "frame_id"}
    last = message["points"][-1]
    assert last["time_from_start"] == {"sec": 0, "nanosec": 995_000_000}
    assert last["positions"] == [1.0, -0.5]
    third = message["points"][3]
    np.testing.assert_allclose(third["velocities"], MOTION.sample(0.3).qd, rtol=1e-12)
    assert len(third["accelerations"]) == 2
    assert third["effort"] == []


def test_ros_stamps_carry_whole_seconds(tmp_path):
    long = Quintic([0.0], [1.0], 2.25)
    path = write_motion(long, tmp_path / "long.json", 2.0)
    stamps = [p["time_from_start"] for p in json.loads(path.read_text())["points"]]
    assert stamps[-1] == {"sec": 2, "nanosec": 250_000_000}
    assert stamps[3] == {"sec": 1, "nanosec": 500_000_000}


def test_nothing_half_written_and_wrong_endings_named(tmp_path):
    with pytest.raises(ArgumentError, match=r"written as .csv, .json"):
        write_motion(MOTION, tmp_path / "plan.xml")
    with pytest.raises(ArgumentError, match="1 joint names"):
        write_motion(MOTION, tmp_path / "plan.csv", joint_names=["a"])
    assert list(tmp_path.iterdir()) == []
