"""Logs are found wherever they lie, and told apart by robot."""

from __future__ import annotations

import polars as pl
import pytest

from armwise.errors import RecordingError
from armwise.fleets import find_logs
from armwise.fleets.chunks import ROWS, _stretches, cut_into_chunks

TABLE = pl.DataFrame({"time": [0.0, 0.1, 0.2], "q_1": [1.0, 2.0, 3.0]})


def write(path, table=TABLE):
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write_parquet(path)


def test_a_folder_names_the_robot(tmp_path):
    write(tmp_path / "R1" / "a.parquet")
    write(tmp_path / "R2" / "deep" / "b.parquet")
    assert [log.robot for log in find_logs(tmp_path)] == ["R1", "deep"]


def test_a_hive_folder_goes_before_the_nearest_one(tmp_path):
    write(tmp_path / "robot=R7" / "day=3" / "a.parquet")
    (log,) = find_logs(tmp_path)
    assert (log.robot, log.rows, log.column) == ("R7", 3, "")


def test_a_column_parts_a_file(tmp_path):
    robots = pl.Series("robot", ["B", "A", "B"])
    write(tmp_path / "all.parquet", TABLE.with_columns(robots))
    found = find_logs(tmp_path / "all.parquet")
    assert [(log.robot, log.rows, log.column) for log in found] == [
        ("A", 1, "robot"),
        ("B", 2, "robot"),
    ]


def test_a_robot_without_a_name_is_a_problem_of_that_log(tmp_path):
    write(tmp_path / "a.parquet", TABLE.with_columns(robot=pl.lit(None, pl.String)))
    (log,) = find_logs(tmp_path)
    assert "robot is empty" in log.problem


def test_globs_reach_down_and_files_count_once(tmp_path):
    write(tmp_path / "R1" / "a.parquet")
    write(tmp_path / "R2" / "b.parquet")
    (tmp_path / "R2" / "notes.md").write_text("not a log")
    found = find_logs([f"{tmp_path}/**/*.parquet", tmp_path / "R1", tmp_path])
    assert [log.path.name for log in found] == ["a.parquet", "b.parquet"]


def test_other_kinds_are_logs_too_and_bags_are_one_each(tmp_path):
    (tmp_path / "R1").mkdir()
    (tmp_path / "R1" / "a.csv").write_text("time,q_1\n0,1\n")
    bag = tmp_path / "R2" / "bag"
    bag.mkdir(parents=True)
    (bag / "metadata.yaml").write_text("")
    (bag / "bag.db3").write_text("")
    assert [log.path.name for log in find_logs(tmp_path)] == ["a.csv", "bag"]


@pytest.mark.parametrize("place", ["nowhere", "nowhere/*.parquet", ""])
def test_a_place_without_logs_is_named(tmp_path, place):
    with pytest.raises(RecordingError, match="holds no logs"):
        find_logs(tmp_path / place)


def test_a_file_that_is_no_parquet_says_so(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"junk")
    (log,) = find_logs(tmp_path)
    assert "not a readable Parquet file" in log.problem


def test_a_long_log_is_cut_evenly_and_a_robot_gets_forty_stretches(tmp_path):
    rows = 2 * ROWS + 1
    write(tmp_path / "R1" / "a.parquet", pl.DataFrame({"time": range(rows)}))
    chunks = cut_into_chunks(find_logs(tmp_path))
    assert len(chunks) == 3
    assert sum(chunk.rows for chunk in chunks) == rows
    assert max(chunk.rows for chunk in chunks) <= ROWS
    assert [chunk.stretches for chunk in chunks] == [16] * 3


@pytest.mark.parametrize(
    ("chunks", "stretches"), [(1, 64), (5, 8), (9, 8), (10, 4), (39, 2), (40, 1)]
)
def test_another_log_seldom_changes_how_the_others_are_summed_up(chunks, stretches):
    assert _stretches(chunks) == stretches
