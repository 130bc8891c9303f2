"""A fleet's estimates: the same however the work is cut, and honest about its logs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import armwise as aw
from armwise.errors import ArgumentError, RecordingError
from armwise.fleets import chunks
from armwise.fleets.estimate import fleet_to_dict, read_preparation, write_fleet
from armwise.identification import PhysicallyConsistent, Robust
from tests.fleets.conftest import motion_and_torque, numbers, write_log


@pytest.fixture(scope="module")
def fleet(arm, logs):
    return aw.identify_fleet(arm, logs, cutoff_hz=10.0, workers=1)


def identified(arm, logs, **options):
    return aw.identify_fleet(arm, logs, cutoff_hz=10.0, workers=1, **options)


def test_every_robot_is_what_its_own_logs_say(arm, logs, fleet):
    files = sorted((logs / "R2").glob("*.parquet"))
    recordings = [aw.read_recording(file, arm) for file in files]
    data = [aw.prepare(rec, like=fleet.preparation) for rec in recordings]
    direct = aw.identify(arm, data, aw.WeightedLeastSquares(), friction="linear")
    np.testing.assert_allclose(
        fleet.robots["R2"].base_values, direct.base_values, rtol=1e-9
    )
    assert fleet.work.logs == 12
    assert fleet.work.rows == 36_000


def test_the_pool_lies_among_the_robots(fleet):
    values = np.array([one.base_values for one in fleet.robots.values()])
    assert np.all(fleet.pooled.base_values > values.min(axis=0) - 0.01)
    assert np.all(fleet.pooled.base_values < values.max(axis=0) + 0.01)
    assert fleet.mean.shape == fleet.pooled.base_values.shape
    assert fleet.spread.shape == (fleet.mean.size,) * 2


def test_deviations_are_drawn_towards_the_mean(fleet):
    own = np.array([one.base_values for one in fleet.robots.values()]) - fleet.mean
    shrunk = np.array(list(fleet.deviations.values()))
    assert np.linalg.norm(shrunk) < np.linalg.norm(own)
    arm = fleet.arm_of("R1")
    values = fleet.problem.base.values(arm.parameters)
    np.testing.assert_allclose(values, fleet.mean + fleet.deviations["R1"], atol=1e-9)


def test_chunks_of_another_size_say_the_same(arm, logs, fleet, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", 1000)
    cut = identified(arm, logs)
    assert cut.work.chunks == 36
    edges = 2 * 2 * 12 * 0.2 * 200.0  # two more cuts a log, 0.2 s lost on each side
    lost = (fleet.work.samples - cut.work.samples) * fleet.preparation.decimation
    assert 0 < lost < 1.2 * edges
    np.testing.assert_allclose(
        cut.pooled.base_values, fleet.pooled.base_values, atol=0.05
    )


def test_a_run_goes_on_from_finished_parts(arm, logs, fleet, tmp_path):
    seen = []

    def stop(what: str, share: float) -> None:
        seen.append(share)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        identified(arm, logs, parts=tmp_path / "parts", progress=stop)
    again = identified(arm, logs, parts=tmp_path / "parts")
    assert again.work.reused == 5
    np.testing.assert_array_equal(numbers(again), numbers(fleet))
    assert identified(arm, logs, parts=tmp_path / "parts").work.reused == 12
    other = aw.identify_fleet(
        arm, logs, cutoff_hz=8.0, workers=1, parts=tmp_path / "parts"
    )
    assert other.work.reused == 0


def test_a_log_that_changed_is_read_again(arm, logs, tmp_path):
    shutil.copytree(logs, tmp_path / "logs")
    first = identified(arm, tmp_path / "logs", parts=tmp_path / "parts")
    write_log(tmp_path / "logs" / "R0" / "0.parquet", arm, 99)
    again = identified(
        arm,
        tmp_path / "logs",
        parts=tmp_path / "parts",
        like=first.preparation,
        lags=first.lags,
    )
    assert again.work.reused == 11


def test_one_dataset_with_a_robot_column_is_the_same(arm, logs, fleet, tmp_path):
    tables = [
        pl.read_parquet(file).with_columns(robot=pl.lit(file.parent.name))
        for file in sorted(logs.rglob("0.parquet"))
    ]
    pl.concat(tables).write_parquet(tmp_path / "all.parquet")
    mixed = identified(arm, tmp_path / "all.parquet")
    apart = identified(arm, f"{logs}/*/0.parquet")
    np.testing.assert_array_equal(numbers(mixed), numbers(apart))


@pytest.fixture
def with_bad_logs(arm, logs, tmp_path):
    """A truncated file, one of another arm, and one with a NaN."""
    shutil.copytree(logs, tmp_path / "logs")
    folder = tmp_path / "logs" / "R1"
    sound = (folder / "1.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(sound[: len(sound) // 2])
    write_log(folder / "foreign.parquet", aw.load_arm("ur5"), 1)
    table = motion_and_torque(arm, 3, 500)
    table["q_1"][77] = np.nan
    pl.DataFrame(table).write_parquet(folder / "nan.parquet")
    return tmp_path / "logs"


def test_bad_logs_are_left_out_and_named_when_asked(arm, with_bad_logs, fleet):
    found = identified(arm, with_bad_logs, skip_bad_logs=True)
    names = [bad.path.name for bad in found.bad_logs]
    assert names == ["cut.parquet", "foreign.parquet", "nan.parquet"]
    assert all(bad.path.name in bad.problem for bad in found.bad_logs)
    np.testing.assert_allclose(
        found.robots["R0"].base_values, fleet.robots["R0"].base_values, rtol=1e-12
    )


@pytest.mark.parametrize("name", ["cut", "foreign", "nan"])
def test_a_bad_log_stops_the_run_otherwise(arm, with_bad_logs, name):
    for other in {"cut", "foreign", "nan"} - {name}:
        (with_bad_logs / "R1" / f"{other}.parquet").unlink()
    with pytest.raises(RecordingError, match=rf"{name}\.parquet.*--skip-bad-logs"):
        identified(arm, with_bad_logs)


def test_nothing_but_bad_logs_is_an_error(arm, tmp_path):
    write_log(tmp_path / "R1" / "a.parquet", aw.load_arm("ur5"), 1)
    with pytest.raises(RecordingError, match=r"No log can be used.*a\.parquet"):
        identified(arm, tmp_path, skip_bad_logs=True)


def test_a_log_without_the_velocity_of_the_others_is_named(arm, logs, tmp_path):
    table = pl.read_parquet(logs / "R0" / "0.parquet")
    speeds = [
        pl.Series(f"qd_{j}", np.gradient(table[f"q_{j}"].to_numpy(), 0.005))
        for j in (1, 2)
    ]
    noisy = table.with_columns(*speeds)
    noisy = noisy.with_columns(
        pl.Series(f"q_{j}", np.round(table[f"q_{j}"].to_numpy(), 2)) for j in (1, 2)
    )
    for k in range(3):
        (tmp_path / f"R{k}").mkdir()
        noisy.write_parquet(tmp_path / f"R{k}" / "a.parquet")
    table.write_parquet(tmp_path / "R0" / "b.parquet")
    with pytest.raises(RecordingError, match=r"b\.parquet has no velocity"):
        identified(arm, tmp_path)


def test_methods_that_need_samples_are_refused(arm, logs):
    with pytest.raises(ArgumentError, match="Robust needs the samples"):
        identified(arm, logs, method=Robust())
    with pytest.raises(ArgumentError, match="at least one worker"):
        aw.identify_fleet(arm, logs, workers=0)


def test_the_pool_can_be_made_physical(arm, logs):
    found = identified(arm, logs, method=PhysicallyConsistent())
    assert found.pooled.method == "PhysicallyConsistent"
    assert not found.pooled.arm.defects()


def test_new_logs_are_all_that_is_read_the_next_night(arm, logs, tmp_path):
    shutil.copytree(logs, tmp_path / "logs")
    first = aw.identify_fleet(
        arm, tmp_path / "logs", workers=1, parts=tmp_path / "parts"
    )
    write_log(tmp_path / "logs" / "A0" / "new.parquet", arm, 77)
    again = aw.identify_fleet(
        arm,
        tmp_path / "logs",
        workers=1,
        parts=tmp_path / "parts",
        like=first.preparation,
    )
    assert (again.work.chunks, again.work.reused) == (13, 12)


def test_what_is_no_fleet_says_nothing_of_preparation(tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(aw.errors.ArmwiseError, match=r"x\.json is not a fleet"):
        read_preparation(tmp_path / "x.json")


def test_one_robot_alone_is_no_fleet_but_no_trouble(arm, logs):
    found = identified(arm, logs / "R1")
    assert list(found.robots) == ["R1"]
    assert not found.flagged


def test_the_file_holds_everything_as_plain_json(fleet, tmp_path):
    write_fleet(fleet, tmp_path / "fleet.json")
    data = json.loads(Path(tmp_path / "fleet.json").read_text(encoding="utf-8"))
    assert data == json.loads(json.dumps(fleet_to_dict(fleet)))
    assert list(data["robots"]) == ["R0", "R1", "R2", "R3"]
    assert read_preparation(tmp_path / "fleet.json") == (fleet.preparation, fleet.lags)
    assert not fleet.can_tell
    assert data["can_tell"] is False
    assert data["robots"]["R3"]["values"] == fleet.robots["R3"].base_values.tolist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cutoff_hz", 5e-21),
        ("cutoff_hz", "10"),
        ("sample_rate_hz", 0),
        ("lag", 1e9),
        ("decimation", 0),
        ("decimation", True),
        ("speed_resolution", [float("nan")]),
        ("velocity", ["position"]),
        ("notes", [1]),
        ("gaps", -1),
    ],
)
def test_a_preparation_that_makes_no_sense_is_refused(fleet, tmp_path, name, value):
    data = fleet_to_dict(fleet)
    data["preparation"][name] = value
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps(data))
    with pytest.raises(aw.errors.ArmwiseError, match=r"fleet\.json does not say how"):
        read_preparation(path)


def test_a_late_robot_is_called_late_and_nobody_else_is_shifted(arm, tmp_path):
    rng = np.random.default_rng(4)
    for robot in range(6):
        own = arm.with_parameters(arm.parameters * rng.uniform(0.97, 1.03, 28))
        columns = motion_and_torque(own, robot, 2000)
        if robot == 2:
            for name in ("tau_1", "tau_2"):
                columns[name] = np.roll(columns[name], 6)  # 30 ms
        (tmp_path / f"R{robot}").mkdir()
        pl.DataFrame(columns).write_parquet(tmp_path / f"R{robot}" / "a.parquet")
    fleet = identified(arm, tmp_path)
    assert abs(fleet.preparation.lag) < 2e-3
    assert fleet.lags["R2"] == pytest.approx(0.030, abs=3e-3)
    assert [(x.robot, x.defect.kind) for x in fleet.flagged] == [("R2", "torque lag")]
    assert "ms beside the fleet's" in str(fleet.flagged[0].defect)
