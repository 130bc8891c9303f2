from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import armwise as aw
from armwise.arms import load_arm
from armwise.errors import RecordingError
from armwise.recordings import (
    Channel,
    Recording,
    read_recording,
    suspicions,
    write_recording,
)
from tests.recordings.motions import arm_with_friction, recording


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


def test_a_position_that_is_missing_between_others_is_named(tmp_path):
    arm = load_arm("panda")
    path = write(tmp_path, inside(arm))
    header, *rows = path.read_text().splitlines()
    assert header.startswith("time,q_1,q_2,q_3")
    cells = [line.split(",") for line in (header, *rows)]
    path.write_text("\n".join(",".join(row[:3] + row[4:]) for row in cells))
    with pytest.raises(RecordingError, match=r'no column "q_3".*joint_3.*has "q_4"'):
        read_recording(path, arm)


def test_currents_are_pointed_to_and_used_with_their_constants(tmp_path):
    arm = arm_with_friction("ur10")
    log = recording(arm)
    table = {"timestamp": log["q_1"].time}
    for j in range(6):
        table[f"actual_q_{j}"] = log[f"q_{j + 1}"].values
        table[f"target_q_{j}"] = log[f"q_{j + 1}"].values + 0.01
        table[f"actual_current_{j}"] = log[f"tau_{j + 1}"].values / (10.0 + j)
        table[f"target_current_{j}"] = log[f"tau_{j + 1}"].values / (10.0 + j)
    path, mapping = tmp_path / "rtde.csv", tmp_path / "rtde.toml"
    pl.DataFrame(table).write_csv(path)
    read = read_recording(path, arm)
    np.testing.assert_allclose(read["q_3"].values, table["actual_q_2"])
    with pytest.raises(RecordingError, match=r"currents \(actual_current_0 … actual_"):
        aw.identify(arm, read)
    names = [f"actual_current_{j}" for j in range(6)]
    scale = [10.0 + j for j in range(6)]
    mapping.write_text(f"[torque]\ncolumns = {names}\nscale = {scale}\n")
    read = read_recording(path, arm, mapping)
    np.testing.assert_allclose(read["tau_4"].values, log["tau_4"].values, rtol=1e-12)


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


@pytest.mark.parametrize(
    "names",
    [
        ("temperature_1", "temperature_2", "temperature_3"),
        ("motor_temp_1", "motor_temp_2", "motor_temp_3"),
        ("joint_temperatures[0]", "joint_temperatures[1]", "joint_temperatures[2]"),
        ("joint_1_temp [K]", "joint_2_temp [K]", "joint_3_temp [K]"),
    ],
)
def test_temperatures_are_read_as_drivers_write_them(tmp_path, names):
    arm = arm_with_friction(coulomb=1.0)
    path, time = tmp_path / "log.csv", np.arange(600) / 100.0
    q = 0.4 * np.sin(time[:, None] * [1.0, 1.7, 2.3])
    warm = 30.0 + np.round(time)[:, None] + [0.0, 1.0, 2.0]
    shown = warm + 273.15 if names[0].endswith("[K]") else warm
    header = ["time", *(f"{x}_{j}" for x in ("q", "tau") for j in (1, 2, 3)), *names]
    rows = np.hstack([time[:, None], q, np.cos(q), shown])
    np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="")
    samples = aw.prepare(aw.read_recording(path, arm=arm), 10.0, arm=arm)
    expected = np.interp(samples.time, time, warm[:, 1])
    np.testing.assert_allclose(samples.temperature[:, 1], expected, atol=1.0)


def test_a_temperature_that_ends_half_way_is_one_sentence(tmp_path):
    arm = arm_with_friction(coulomb=1.0)
    log = recording(arm, torque_noise=0.1)
    time = log["q_1"].time
    warm = {f"temperature_{j}": Channel(time, 30.0 + 0 * time) for j in (1, 2, 3)}
    half = np.where(time < 0.5 * time[-1], 30.0, np.nan)
    broken = log.with_channels(warm | {"temperature_2": Channel(time, half)})
    estimate = aw.identify(arm, broken, friction="linear")
    (said,) = [w for w in estimate.warnings if w.code == "temperature-missing"]
    assert "temperature_2 is missing from" in said.text
    assert len(said.text) < 300
    assert estimate.samples[0].temperature is None
    # Empty cells of a text log say the same.
    write_recording(broken, tmp_path / "half.csv")
    text = read_recording(tmp_path / "half.csv", arm)
    assert [w.code for w in suspicions(text, arm)] == ["temperature-missing"]
    some = log.with_channels({"temperature_1": warm["temperature_1"]})
    assert "no temperature_2" in suspicions(some, arm)[-1].text
    assert not [w for w in suspicions(log, arm) if w.code == "temperature-missing"]


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
