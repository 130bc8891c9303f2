"""Logs as other programs write them: all give the same channels."""

from __future__ import annotations

import os
import time

import numpy as np
import polars as pl
import pytest

from armwise.arms import load_arm
from armwise.errors import RecordingError
from armwise.recordings import joint_names_in_log, load_mapping, read_recording

ARM = "ur5"
NAMES = load_arm(ARM).coordinate_names
ROWS = 60


def motion():
    t = np.arange(ROWS) * 0.01
    q = 0.3 * np.sin(t[:, None] + np.arange(6))
    return t, q, np.cos(t[:, None] + np.arange(6)), 2.0 * q


def write(path, headings, columns):
    text = [",".join(headings)]
    text += [",".join(f"{x!r}" for x in row) for row in np.asarray(columns).tolist()]
    path.write_text("\n".join(text) + "\n")
    return path


DIALECTS = {
    "standard, by name": [f"q_{n}" for n in NAMES] + [f"tau_{n}" for n in NAMES],
    "standard, from zero": [f"q_{k}" for k in range(6)]
    + [f"tau_{k}" for k in range(6)],
    "PlotJuggler": [f"/joint_states/{n}/position" for n in NAMES]
    + [f"/joint_states/{n}/effort" for n in NAMES],
    "PlotJuggler, by field": [f"/joint_states/position/{n}" for n in NAMES]
    + [f"/joint_states/effort/{n}" for n in NAMES],
    "arrays from zero": [f"/joint_states/position[{k}]" for k in range(6)]
    + [f"/joint_states/effort[{k}]" for k in range(6)],
    "rostopic echo -p": [f"field.position{k}" for k in range(6)]
    + [f"field.effort{k}" for k in range(6)],
    "joint first": [f"{n}_position" for n in NAMES] + [f"{n}_torque" for n in NAMES],
    "LeRobot": [f"{n}.pos" for n in NAMES] + [f"{n}.effort" for n in NAMES],
    "in words": [f"actual_pos_J{k}" for k in range(1, 7)]
    + [f"MotorTorque{k}" for k in range(6)],
    "RTDE": [f"actual_q_{k}" for k in range(6)] + [f"tau_{k + 1}" for k in range(6)],
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_headings_of_other_programs(tmp_path, dialect):
    t, q, _, tau = motion()
    path = write(
        tmp_path / "log.csv", ["time", *DIALECTS[dialect]], np.column_stack([t, q, tau])
    )
    rec = read_recording(path, load_arm(ARM))
    for j in range(6):
        np.testing.assert_array_equal(rec[f"q_{j + 1}"].values, q[:, j])
        np.testing.assert_array_equal(rec[f"tau_{j + 1}"].values, tau[:, j])
    named = "[0]" not in dialect and dialect not in (
        "in words",
        "standard, from zero",
        "arrays from zero",
        "rostopic echo -p",
        "RTDE",
    )
    expected = NAMES if named else tuple("123456")
    assert joint_names_in_log(path) == expected


@pytest.mark.parametrize(
    ("headings", "scale"),
    [
        (["__time"], [1.0]),
        (["time_ms"], [1e3]),
        (["timestamp_us"], [1e6]),
        (["t [ms]"], [1e3]),
        (["%time"], [1e9]),
        (["header.stamp.sec", "header.stamp.nanosec"], None),
        (["secs", "nsecs"], None),
    ],
)
def test_stamps_of_other_programs(tmp_path, headings, scale):
    t, q, _, tau = motion()
    if scale is None:
        stamps = np.stack([np.full(ROWS, 1.7e9), np.round(t * 1e9)], axis=1)
    else:
        stamps = t[:, None] * scale
    labels = [f"q_{k + 1}" for k in range(6)] + [f"tau_{k + 1}" for k in range(6)]
    path = write(tmp_path / "l.csv", headings + labels, np.hstack([stamps, q, tau]))
    rec = read_recording(path, load_arm(ARM))
    np.testing.assert_allclose(rec["q_1"].time - rec["q_1"].time[0], t, atol=3e-7)


def test_ros2_topic_echo_without_a_header(tmp_path):
    t, q, qd, tau = motion()
    order = sorted(NAMES)  # as the driver publishes them
    index = [NAMES.index(name) for name in order]
    lines = [
        ",".join(
            [
                "17",
                str(round(1e9 * t[i])),
                "base",
                *order,
                *(f"{x!r}" for block in (q, qd, tau) for x in block[i, index].tolist()),
            ]
        )
        for i in range(ROWS)
    ]
    (tmp_path / "echo.csv").write_text("\n".join(lines) + "\n")
    rec = read_recording(tmp_path / "echo.csv", load_arm(ARM))
    for name, block in (("q", q), ("qd", qd), ("tau", tau)):
        for j in range(6):
            np.testing.assert_array_equal(rec[f"{name}_{j + 1}"].values, block[:, j])
    cut = ["17,0,base," + ",".join([*order, *["0.5"] * 12])] * 3
    (tmp_path / "cut.csv").write_text("\n".join(cut) + "\n")
    with pytest.raises(RecordingError, match="velocities or efforts are missing"):
        read_recording(tmp_path / "cut.csv", load_arm(ARM))


def test_topics_that_leave_each_others_cells_empty(tmp_path):
    t, q, _, tau = motion()
    head = ["__time", *(f"/s/{n}/position" for n in NAMES)]
    head += [f"/s/{n}/effort" for n in NAMES]
    lines = [",".join(head)]
    for i in range(ROWS):
        lines.append(",".join([str(t[i]), *map(repr, q[i].tolist()), *[""] * 6]))
        late = str(t[i] + 0.004)
        lines.append(",".join([late, *[""] * 6, *map(repr, tau[i].tolist())]))
    (tmp_path / "pj.csv").write_text("\n".join(lines) + "\n")
    rec = read_recording(tmp_path / "pj.csv", load_arm(ARM))
    np.testing.assert_allclose(rec["q_3"].time, t)
    np.testing.assert_allclose(rec["tau_3"].time, t + 0.004)
    np.testing.assert_array_equal(rec["tau_3"].values, tau[:, 2])


def test_lists_and_episodes_of_lerobot(tmp_path):
    t, q, _, _ = motion()
    frame = pl.DataFrame(
        {
            "observation.state": pl.Series(np.vstack([q, q]).tolist()),
            "action": pl.Series((np.vstack([q, q]) + 0.1).tolist()),
            "timestamp": np.concatenate([t, t]),
            "episode_index": [0] * ROWS + [1] * ROWS,
        }
    )
    frame.write_parquet(tmp_path / "episodes.parquet")
    rec = read_recording(tmp_path / "episodes.parquet", load_arm(ARM))
    np.testing.assert_allclose(rec["command_2"].values[:ROWS], q[:, 1] + 0.1)
    np.testing.assert_allclose(rec["q_6"].values[ROWS:], q[:, 5])
    steps = np.diff(rec["q_1"].time)
    assert steps[ROWS - 1] == pytest.approx(1.0)
    assert steps.min() > 0


def test_commands_by_the_joints_names(tmp_path):
    file = tmp_path / "log.csv"
    rows = [f"{0.01 * k},{k},{10 * k},{2 * k},{20 * k}" for k in range(5)]
    head = "time,command_elbow,command_base,q_base,q_elbow"
    file.write_text("\n".join([head, *rows]))
    log = read_recording(file)
    assert log["command_1"].values[1] == 10.0
    assert log["command_2"].values[1] == 1.0


def test_columns_of_other_joints_are_left_out_and_noted(tmp_path):
    t, q, _, tau = motion()
    head = ["time", *(f"q_{n}" for n in NAMES), *(f"tau_{n}" for n in NAMES)]
    head += ["q_gripper", "tau_gripper", "gripper_position", "position_x", "mode"]
    extra = np.full((ROWS, 5), np.nan)
    path = write(tmp_path / "log.csv", head, np.column_stack([t, q, tau, extra]))
    rec = read_recording(path, load_arm(ARM))
    assert "q_gripper" not in rec
    assert "mode" in rec
    assert any("q_gripper, tau_gripper" in note for note in rec.notes)
    # A mapping that says where the torque is does not make the others fatal either.
    (tmp_path / "map.toml").write_text(
        "[torque]\ncolumns = [" + ", ".join(f'"tau_{n}"' for n in NAMES) + "]\n"
    )
    again = read_recording(path, load_arm(ARM), tmp_path / "map.toml")
    np.testing.assert_array_equal(again["tau_2"].values, tau[:, 1])
    assert any("q_gripper" in note for note in again.notes)


def test_torque_columns_in_amperes_are_noted(tmp_path):
    t, q, _, tau = motion()
    head = ["time", *(f"q_{k + 1}" for k in range(6))]
    head += [f"tau_{k + 1} [mA]" for k in range(6)]
    path = write(tmp_path / "log.csv", head, np.column_stack([t, q, 1e3 * tau]))
    rec = read_recording(path, load_arm(ARM))
    np.testing.assert_allclose(rec["tau_1"].values, tau[:, 0])
    assert any("is no torque" in note for note in rec.notes)


def test_ros_1_bags(tmp_path):
    pytest.importorskip("rosbags", reason="the extra ros is not installed")
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    t, q, qd, tau = motion()
    store = get_typestore(Stores.ROS1_NOETIC)
    kind = "sensor_msgs/msg/JointState"
    header, stamp = (
        store.types["std_msgs/msg/Header"],
        store.types["builtin_interfaces/msg/Time"],
    )
    with Writer(tmp_path / "run.bag") as bag:
        where = bag.add_connection("/joint_states", kind, typestore=store)
        for i in range(ROWS):
            nanoseconds = round(1e9 * t[i])
            head = header(i, stamp(5, nanoseconds), "")
            message = store.types[kind](head, list(NAMES), q[i], qd[i], tau[i])
            raw = store.serialize_ros1(message, kind)
            bag.write(where, 5_000_000_000 + nanoseconds, raw)
    rec = read_recording(tmp_path / "run.bag", load_arm(ARM))
    np.testing.assert_array_equal(rec["tau_4"].values, tau[:, 3])
    np.testing.assert_allclose(rec["tau_4"].time, t, atol=1e-9)
    assert joint_names_in_log(tmp_path / "run.bag") == NAMES


# Hostile files: one sentence, soon, in little memory.


def npz_of_zeros(path):
    np.savez_compressed(path, time=np.zeros(4_000_000), q=np.zeros((4_000_000, 6)))


def parquet_of_zeros(path):
    pl.DataFrame({f"q_{k}": np.zeros(4_000_000) for k in range(6)}).write_parquet(
        path, compression="zstd"
    )


@pytest.mark.parametrize("make", [npz_of_zeros, parquet_of_zeros])
def test_bombs_are_refused_before_they_unpack(tmp_path, make):
    path = tmp_path / ("b.npz" if make is npz_of_zeros else "b.parquet")
    make(path)
    with pytest.raises(RecordingError, match="times its size"):
        read_recording(path)


def test_a_hundred_thousand_columns(tmp_path):
    (tmp_path / "w.csv").write_text(
        ",".join(f"q_{k}" for k in range(100_000)) + "\n" + ",".join(["1"] * 100_000)
    )
    start = time.process_time()
    with pytest.raises(RecordingError, match="100000 columns"):
        read_recording(tmp_path / "w.csv")
    assert time.process_time() - start < 2.0


def test_pipes_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "log.csv")
    with pytest.raises(RecordingError, match="neither a file nor a folder"):
        read_recording(tmp_path / "log.csv")


@pytest.mark.parametrize(
    "text",
    [
        "joints = -3",
        "joints = true",
        "joints = 1000000000",
        "[transmission]\nmatrix = [[1.0, 2.0], [3.0]]",
        "[transmission]\nmatrix = 'x'",
        "[transmission]\nmatrix = [[1e300, 0.0], [0.0, 1e300]]",
        "[transmission]\ngears = []",
        "[phases]\ncolumns = 1.0\nconstants = 1.0",
        "[csv]\nseparator = ';;'",
        "[position]\nscale = " + "1" + "0" * 400,
    ],
)
def test_mappings_that_make_no_sense(tmp_path, text):
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(RecordingError) as error:
        load_mapping(tmp_path / "map.toml")
    assert len(str(error.value)) < 300


def test_digits_that_are_no_numbers(tmp_path):
    (tmp_path / "log.csv").write_text("time,q_²,q_1\n0,1,2\n1,2,3\n2,3,4\n")
    with pytest.raises(RecordingError, match="both give q_1"):
        read_recording(tmp_path / "log.csv")
    (tmp_path / "map.toml").write_text("[position]\ncolumns = ['²']\n")
    with pytest.raises(RecordingError, match='no column "²"'):
        read_recording(tmp_path / "log.csv", mapping=tmp_path / "map.toml")


@pytest.mark.parametrize(
    ("headings", "order"), [(["q_1", "q_2"], [0, 1]), (["q_1", "q_0"], [1, 0])]
)
def test_joints_called_by_numbers(tmp_path, headings, order):
    link = (
        '<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" '
        'iyy="1" iyz="0" izz="1"/></inertial></link>'
    )
    joint = (
        '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/>'
        '<axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="1" velocity="1"/>'
        "</joint>"
    )
    parts = [link.format(name) for name in "abc"]
    parts += [joint.format("0", "a", "b"), joint.format("1", "b", "c")]
    (tmp_path / "a.urdf").write_text(f'<robot name="r">{"".join(parts)}</robot>')
    t = np.arange(ROWS) * 0.01
    columns = np.column_stack([t, 0.1 * np.sin(t), 0.2 * np.sin(t)])
    path = write(tmp_path / "log.csv", ["time", *headings], columns)
    log = read_recording(path, load_arm(tmp_path / "a.urdf"))
    for j, k in enumerate(order, 1):
        np.testing.assert_array_equal(log[f"q_{j}"].values, columns[:, 1 + k])


def test_words_of_two_families_or_of_something_else_are_not_taken(tmp_path):
    t, q, qd, tau = motion()
    families = ("motor_pos_J{}", "link_pos_J{}", "target_torque_J{}")
    headings = [family.format(k) for family in families for k in range(1, 7)]
    path = write(
        tmp_path / "log.csv", ["time", *headings], np.column_stack([t, q, qd, tau])
    )
    with pytest.raises(RecordingError, match=r"of 0 joints.*--column q_1=NAME"):
        read_recording(path, load_arm(ARM))


def test_spreadsheets_of_windows_are_read(tmp_path):
    t, q, _, tau = motion()
    headings = ["time", *(f"q_{k} [°]" for k in range(1, 7))]
    headings += [f"tau_{k}" for k in range(1, 7)]
    path = write(
        tmp_path / "log.csv", headings, np.column_stack([t, np.rad2deg(q), tau])
    )
    path.write_bytes(path.read_text().encode("cp1252"))
    log = read_recording(path, arm=load_arm(ARM))
    np.testing.assert_allclose(log["q_2"].values, q[:, 1], atol=1e-12)


def test_arrays_in_quotes_are_refused_with_what_to_do(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('time,position\n0.0,"[0.1, 0.2]"\n0.1,"[0.1, 0.2]"\n')
    with pytest.raises(RecordingError, match="arrays, in quotes"):
        read_recording(path, arm=load_arm(ARM))
