"""Logs of one JSON object a line, sound and damaged."""

from __future__ import annotations

import json
from time import process_time

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.errors import RecordingError
from armwise.recordings import joint_names_in_log, read_recording

ROWS = 50
TIME = np.arange(ROWS) * 0.01
Q = np.sin(np.outer(TIME, [1.0, 2.0]))
TAU = np.cos(np.outer(TIME, [3.0, 4.0]))


def written(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def plain(k):
    return {"time": TIME[k], "q_1": Q[k, 0], "q_2": Q[k, 1], "mode": "run"}


def assert_read(path, **options):
    log = read_recording(path, **options)
    np.testing.assert_array_equal(log["q_1"].values, Q[:, 0])
    np.testing.assert_array_equal(log["q_2"].values, Q[:, 1])
    np.testing.assert_allclose(log["q_2"].time, TIME, atol=1e-12)
    return log


def test_names_as_in_csv_and_lists(tmp_path):
    log = assert_read(written(tmp_path / "a.jsonl", map(plain, range(ROWS))))
    assert "mode" not in log.channels
    lists = ({"time_ms": 1e3 * t, "q": list(q)} for t, q in zip(TIME, Q, strict=True))
    path = written(tmp_path / "b.ndjson", lists)
    assert_read(path, arm=load_arm("two_link_uno"))
    assert joint_names_in_log(path) == ("1", "2")


def test_messages_of_joint_states(tmp_path):
    def message(k):
        stamp = {"sec": 0, "nanosec": round(1e9 * TIME[k])}
        # The order of the joints may change from message to message.
        order = [0, 1] if k % 2 else [1, 0]
        return {
            "header": {"stamp": stamp, "frame_id": ""},
            "name": [("shoulder", "elbow")[j] for j in order],
            "position": Q[k, order].tolist(),
            "effort": TAU[k, order].tolist(),
        }

    path = written(tmp_path / "states.jsonl", map(message, range(ROWS)))
    assert set(joint_names_in_log(path)) == {"shoulder", "elbow"}
    log = read_recording(path)
    first = log.joint_names.index("shoulder") + 1
    np.testing.assert_array_equal(log[f"q_{first}"].values, Q[:, 0])
    np.testing.assert_array_equal(log[f"tau_{first}"].values, TAU[:, 0])


def test_lerobot_and_topics_that_take_turns(tmp_path):
    def row(k):
        stamp = {"timestamp": TIME[k]}
        return stamp | (
            {"observation.state": Q[k].tolist()}
            if k % 2
            else {"observation.effort": TAU[k].tolist()}
        )

    log = read_recording(written(tmp_path / "r.jsonl", map(row, range(ROWS))))
    np.testing.assert_array_equal(log["q_2"].values, Q[1::2, 1])
    np.testing.assert_array_equal(log["tau_1"].values, TAU[::2, 0])
    np.testing.assert_array_equal(log["tau_1"].time, TIME[::2])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ('{"time": 0.1, "q_1": 0.2', "line 11: not a whole JSON object"),
        ("[0.1, 0.2]", "line 11: a list or number"),
        ('{"time": 0.1, "q_1": NaN, "q_2": 1}', 'line 11: "q_1" is not a finite'),
        ('{"time": 0.1, "q_1": 1e999, "q_2": 1}', 'line 11: "q_1" is not a finite'),
        ('{"time": 0.1, "q_1": "x", "q_2": 1}', 'line 11: "q_1" is not a finite'),
        ('{"time": 0.1, "q_1": null, "q_2": 1}', 'line 11: "q_1" is missing'),
        ('{"time": 0.1, "q_1": 1}', 'line 11: "q_2" is missing'),
        ('{"time": 0.1, "q": [1, 1], "q_2": 1}', 'line 11: "q_2" is there twice'),
        ("[" * 30_000, "line 11: not a whole JSON object"),
        ('{"time": 0.1, "q_1": 1' + "0" * 9000 + "}", "line 11: not a whole"),
    ],
)
def test_bad_lines_are_named_or_skipped(tmp_path, broken, message):
    path = tmp_path / "bad.jsonl"
    rows = [json.dumps(plain(k)) for k in range(ROWS)]
    path.write_text("\n".join([*rows[:10], broken, *rows[10:]]))
    with pytest.raises(RecordingError, match=message) as caught:
        read_recording(path)
    assert "--skip-bad-rows" in str(caught.value)
    assert assert_read(path, skip_bad_rows=True).skipped_rows == 1


def test_files_that_are_no_log(tmp_path):
    path = tmp_path / "bad.jsonl"
    for text, message in (
        ("", "no usable row"),
        ('{"a": "text"}\n', "no usable row"),
        ('{"a": "' + "x" * (1 << 20) + '"}', "longer than 1 MiB"),
        ("".join(f'{{"a{k}": 1}}\n' for k in range(10_001)), "over 10000 names"),
        # Few bytes a row, and a table of many columns: more than any log unpacks to.
        (
            json.dumps({f"a{k}": 1 for k in range(9_000)}) + '\n{"a1": 1}' * 20_000,
            "unpacks to",
        ),
    ):
        path.write_text(text)
        with pytest.raises(RecordingError, match=message):
            read_recording(path)


def test_names_of_thousands_of_brackets_are_read_at_once(tmp_path):
    """A regular expression tried every one of them: seconds for ten kilobytes."""
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"time": 0.0, "{"[" * 30_000}": 0.0, "tau_1": 0.0}}\n')
    began = process_time()
    read_recording(path)
    assert process_time() - began < 5.0
