from __future__ import annotations

import os
import sqlite3
import struct
import sys
from contextlib import closing, suppress

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.errors import ArgumentError, RecordingError
from armwise.recordings import Channel, Recording, read_recording, write_recording
from armwise.recordings.formats import bags

rosbags = pytest.importorskip("rosbags", reason="the extra ros is not installed")

JOINTS = ("shoulder", "elbow")


def made(rows=50, wrench=True):
    rng = np.random.default_rng(0)
    time = np.arange(rows) * 0.01
    rec = Recording.from_arrays(
        time,
        q=rng.normal(size=(rows, 2)),
        qd=rng.normal(size=(rows, 2)),
        tau=rng.normal(size=(rows, 2)),
        wrench=rng.normal(size=(rows, 6)) if wrench else None,
        joint_names=JOINTS,
    )
    return rec.with_channels({"volts": Channel(time, np.sqrt(time), "V")})


def assert_same(rec, other, names):
    for name in names:
        np.testing.assert_allclose(rec[name].values, other[name].values, rtol=1e-15)
        np.testing.assert_allclose(rec[name].time, other[name].time, atol=1e-9)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".mcap"])
def test_what_is_written_is_read_back(tmp_path, ending):
    rec = made()
    write_recording(rec, tmp_path / f"run{ending}")
    assert_same(read_recording(tmp_path / f"run{ending}"), rec, rec.channels)
    assert os.listdir(tmp_path) == [f"run{ending}"]  # nothing half-written beside it


def test_writing_replaces_whole_or_not_at_all(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("old")
    slow = Channel(np.arange(5.0), np.arange(5.0))
    mixed = made().with_channels({"slow": slow})
    with pytest.raises(RecordingError, match=r"slow has other time stamps.*\.mcap"):
        write_recording(mixed, path)
    assert path.read_text() == "old"
    with pytest.raises(ArgumentError, match=r"not '.xlsx'"):
        write_recording(made(), tmp_path / "run.xlsx")


def test_mcap_keeps_several_time_bases(tmp_path):
    slow = Channel(np.arange(5.0) * 0.1, np.arange(5.0))
    rec = made().with_channels({"slow": slow})
    write_recording(rec, tmp_path / "run.mcap")
    back = read_recording(tmp_path / "run.mcap")
    assert_same(back, rec, rec.channels)
    assert back.joint_names == JOINTS


def test_npz_and_mat_take_matrices_either_way_round(tmp_path):
    from scipy.io import savemat

    rec = made()
    q = np.stack([rec["q_1"].values, rec["q_2"].values], axis=1)
    time = rec["q_1"].time
    np.savez(tmp_path / "run.npz", time=time, q=q, tau=q.T, gain=3.0)
    back = read_recording(tmp_path / "run.npz")
    assert_same(back, rec, ["q_1", "q_2"])
    np.testing.assert_array_equal(back["tau_2"].values, q[:, 1])
    savemat(tmp_path / "run.mat", {"t": time[:, None], "q": q, "name": "x"})
    assert_same(read_recording(tmp_path / "run.mat"), rec, ["q_1", "q_2"])


def test_pickles_are_never_loaded(tmp_path):
    objects = np.array([{"a": 1}, None], dtype=object)
    np.savez(tmp_path / "run.npz", time=np.arange(3.0), q=objects)
    with pytest.raises(RecordingError, match=r"run.npz holds pickled objects"):
        read_recording(tmp_path / "run.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(RecordingError, match=r"bad.npz is not a readable NPZ"):
        read_recording(tmp_path / "bad.npz")


def test_mat_files_with_objects(tmp_path):
    from scipy.io import savemat

    cell = np.empty(2, dtype=object)
    cell[:] = [np.arange(3.0), "text"]
    savemat(tmp_path / "cells.mat", {"data": cell, "s": {"q": np.arange(5.0)}})
    with pytest.raises(
        RecordingError, match=r"only cells, structs or objects \(data, s"
    ):
        read_recording(tmp_path / "cells.mat")
    savemat(tmp_path / "mixed.mat", {"t": np.arange(5.0), "q_1": cell})
    with pytest.raises(RecordingError, match=r'"q_1" is a cell, struct or object'):
        read_recording(tmp_path / "mixed.mat", columns={"q_1": "q_1"})
    (tmp_path / "v73.mat").write_bytes(b"MATLAB 7.3 MAT-file" + b" " * 105 + b"\0\2IM")
    with pytest.raises(RecordingError, match=r"-v7"):
        read_recording(tmp_path / "v73.mat")
    (tmp_path / "junk.mat").write_bytes(b"junk")
    with pytest.raises(RecordingError, match=r"not a readable MAT"):
        read_recording(tmp_path / "junk.mat")


def test_broken_parquet_and_text_columns(tmp_path):
    (tmp_path / "run.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(RecordingError, match="not a readable Parquet"):
        read_recording(tmp_path / "run.parquet")


def test_nan_in_a_table_is_named_by_row(tmp_path):
    q = np.zeros(9)
    q[4] = np.nan
    np.savez(tmp_path / "run.npz", time=np.arange(9.0), q_1=q)
    with pytest.raises(RecordingError, match=r'run.npz, row 5: column "q_1" is nan'):
        read_recording(tmp_path / "run.npz")
    assert read_recording(tmp_path / "run.npz", skip_bad_rows=True).skipped_rows == 1


def bag(path, messages, storage="sqlite3", topic="/joint_states"):
    """Write a bag of joint states: (seconds, names, positions, velocities, efforts)."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kind = "sensor_msgs/msg/JointState"
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        connection = writer.add_connection(topic, kind, typestore=store)
        for seconds, names, *values in messages:
            stamp = 1_700_000_000 * 10**9 + round(seconds * 1e9)
            time = store.types["builtin_interfaces/msg/Time"](
                stamp // 10**9, stamp % 10**9
            )
            header = store.types["std_msgs/msg/Header"](time, "")
            arrays = [np.array(v, dtype=float) for v in values]
            message = store.types[kind](header, list(names), *arrays)
            raw = store.serialize_cdr(message, kind)
            writer.write(connection, stamp + 1000, raw)
    return path


def states(count=10):
    """Joint states whose order of names changes half way."""
    for i in range(count):
        names = ["b", "a", "gripper"] if i < count // 2 else ["a", "gripper", "b"]
        values = {"a": 1.0 + i, "b": 2.0 + i, "gripper": 9.0}
        row = [values[n] for n in names]
        yield 0.01 * i, names, row, [], [10 * v for v in row]


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
@pytest.mark.parametrize("alone", [False, True])
def test_bags_with_and_without_metadata(tmp_path, storage, alone):
    path = bag(tmp_path / "bag", states(), storage)
    if alone:
        (path / "metadata.yaml").unlink()
        path = next(p for p in path.iterdir() if p.suffix in (".db3", ".mcap"))
    rec = read_recording(path)
    assert rec.joint_names == ("b", "a", "gripper")
    assert set(rec.channels) == {f"{s}_{j}" for s in ("q", "tau") for j in (1, 2, 3)}
    np.testing.assert_allclose(rec["q_2"].values, 1.0 + np.arange(10))
    np.testing.assert_allclose(rec["q_2"].time, 0.01 * np.arange(10), atol=1e-12)


@pytest.mark.parametrize("names", [["b", "a"], ["shoulder", "elbow_", "w"]])
def test_repeated_joint_states_are_read_where_the_first_had_them(
    tmp_path, names, monkeypatch
):
    """The quick way gives what decoding gives, whatever changes on the way."""
    quick = []
    row = bags._RepeatedStates.row
    monkeypatch.setattr(
        bags._RepeatedStates, "row", lambda s, raw: quick.append(1) or row(s, raw)
    )
    rng = np.random.default_rng(0)
    rows, expected = [], []
    for i in range(60):
        values = rng.normal(size=(3, len(names)))
        expected.append(values)
        turned = 20 <= i < 30  # another order for a while
        order = names[::-1] if turned else names
        shown = values[:, ::-1] if turned else values
        rows.append((0.01 * i, order, *shown))
    rec = read_recording(bag(tmp_path / "bag", rows))
    for k, signal in enumerate(("q", "qd", "tau")):
        for j in range(len(names)):
            channel = rec[f"{signal}_{j + 1}"]
            np.testing.assert_array_equal(channel.values, np.array(expected)[:, k, j])
            np.testing.assert_allclose(channel.time, 0.01 * np.arange(60), atol=1e-12)
    assert len(quick) == 49  # all but the first and the ten in another order


def test_a_bags_joints_follow_the_arm_not_the_message(tmp_path):
    arm = load_arm("ur10")
    names = [*arm.coordinate_names[::-1], "gripper"]
    rows = [(0.01 * i, names, 0.1 * np.arange(7), [], []) for i in range(5)]
    rec = read_recording(bag(tmp_path / "bag", rows), arm)
    assert [rec[f"q_{j + 1}"].values[0] for j in range(6)] == pytest.approx(
        [0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    )
    assert rec.count("tau") == 0
    with pytest.raises(
        RecordingError, match=r"has no joint 'joint_7'. Found: gripper, j"
    ):
        read_recording(tmp_path / "bag", load_arm("panda"))


def test_bags_that_hold_nothing_of_use(tmp_path):
    with pytest.raises(RecordingError, match="is an empty bag"):
        read_recording(bag(tmp_path / "empty", []))
    two = bag(tmp_path / "short", [(0.0, ["a", "b"], [1.0], [], [])])
    with pytest.raises(RecordingError, match="joint state 1: 1 values for 2 joints"):
        read_recording(two)
    (tmp_path / "junk.db3").write_bytes(b"junk" * 100)
    with pytest.raises(RecordingError, match=r"junk.db3 is not a readable ROS bag"):
        read_recording(tmp_path / "junk.db3")
    (tmp_path / "junk.mcap").write_bytes(b"junk" * 100)
    with pytest.raises(RecordingError, match=r"junk.mcap is not a readable ROS bag"):
        read_recording(tmp_path / "junk.mcap")


def test_common_messages_are_decoded_as_rosbags_does():
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    of, rng = store.types, np.random.default_rng(0)
    header = of["std_msgs/msg/Header"](
        stamp=of["builtin_interfaces/msg/Time"](sec=-3, nanosec=7), frame_id="wrist"
    )
    vector = of["geometry_msgs/msg/Vector3"]
    wrench = of["geometry_msgs/msg/Wrench"](
        force=vector(*rng.normal(size=3)), torque=vector(*rng.normal(size=3))
    )
    messages = {
        "geometry_msgs/msg/Wrench": wrench,
        "geometry_msgs/msg/WrenchStamped": of["geometry_msgs/msg/WrenchStamped"](
            header=header, wrench=wrench
        ),
        "std_msgs/msg/Float64": of["std_msgs/msg/Float64"](data=0.1),
        "std_msgs/msg/Float32": of["std_msgs/msg/Float32"](data=0.5),
    }
    for count in (0, 1, 3):
        names = [f"joint{'x' * k}" for k in range(count)]
        messages[f"sensor_msgs/msg/JointState {count}"] = of[bags.JOINT_STATE](
            header=header,
            name=names,
            position=rng.normal(size=count),
            velocity=np.empty(0),
            effort=rng.normal(size=count),
        )
    for key, message in messages.items():
        kind = key.split()[0]
        for little in (True, False):
            raw = bytes(store.serialize_cdr(message, kind, little_endian=little))
            ours = bags.decode_common(raw, kind)
            theirs = store.deserialize_cdr(raw, kind)
            assert _plain(ours) == _plain(theirs), key
        for cut in range(len(raw) - 1):
            with suppress(ValueError, struct.error):
                bags.decode_common(raw[:cut], kind)


def _plain(message):
    """A message as nested dictionaries of plain values."""
    if isinstance(message, np.ndarray | list):
        return [_plain(x) for x in message]
    fields = getattr(message, "__dict__", None)
    if fields is None:
        return message
    return {k: _plain(v) for k, v in fields.items() if not k.startswith("__")}


def test_a_bag_whose_messages_are_computed_is_refused(tmp_path):
    path = tmp_path / "endless.db3"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE topics (id, name, type, serialization_format)")
        file.execute(
            "CREATE VIEW messages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
            "i + 1 FROM n) SELECT i AS topic_id, i AS timestamp, i AS data FROM n"
        )
        file.commit()
    with pytest.raises(RecordingError, match="not a readable ROS bag: it has no table"):
        read_recording(path)


def test_a_bag_is_read_without_the_extra(tmp_path, monkeypatch):
    path = bag(tmp_path / "bag", states())
    monkeypatch.setitem(sys.modules, "rosbags", None)
    monkeypatch.setitem(sys.modules, "rosbags.rosbag2", None)
    assert read_recording(path).dof == 3


def test_a_bag_without_joint_states_lists_what_it_has(tmp_path):
    slow = Recording.from_channels({"volts": Channel(np.arange(5.0), np.arange(5.0))})
    write_recording(slow, tmp_path / "run.mcap")
    with pytest.raises(
        RecordingError, match=r"no topic of joint states. Found: /volts"
    ):
        read_recording(tmp_path / "run.mcap")


def test_a_damaged_message_is_named(tmp_path):
    path = bag(tmp_path / "bag", [*states()][:5])
    file = next(path.glob("*.db3"))
    with sqlite3.connect(file) as db:
        db.execute("update messages set data = x'00010000ffffffff' where id = 3")
    db.close()
    with pytest.raises(RecordingError, match=r"message 3 of /joint_states is damaged"):
        read_recording(path)


def test_topics_can_be_mapped_to_channels(tmp_path):
    from armwise.recordings.mapping import BagMapping, LogMapping, TopicChannel

    path = bag(tmp_path / "bag", [*states()][:5])
    chosen = TopicChannel("/joint_states", "position[1]", "second", "rad")
    rec = read_recording(path, mapping=LogMapping(bag=BagMapping(channels=(chosen,))))
    np.testing.assert_allclose(rec["second"].values, rec["q_2"].values)
    wrong = TopicChannel("/joint_states", "position[7]", "x")
    with pytest.raises(RecordingError, match=r"have no 'position\[7\]'"):
        read_recording(path, mapping=LogMapping(bag=BagMapping(channels=(wrong,))))
    other = BagMapping(joint_states="/arm/states")
    with pytest.raises(RecordingError, match=r"no topic /arm/states. Found: /joint_st"):
        read_recording(path, mapping=LogMapping(bag=other))


@pytest.mark.parametrize("ending", [".csv", ".npz", ".mat", ".db3", ".mcap"])
def test_damaged_files_give_an_error_or_a_recording_and_nothing_else(tmp_path, ending):
    from scipy.io import savemat

    rng = np.random.default_rng(3)
    path = tmp_path / f"run{ending}"
    if ending == ".npz":
        np.savez(path, time=np.arange(20.0), q=np.ones((20, 2)))
    elif ending == ".mat":
        savemat(path, {"t": np.arange(20.0), "q": np.ones((20, 2))})
    elif ending == ".db3":
        path = next(bag(tmp_path / "bag", states()).glob("*.db3"))
    else:
        write_recording(made(20, wrench=False), path)
    whole = path.read_bytes()
    assert len(read_recording(path).channels) >= 2
    for _ in range(40):
        broken = bytearray(whole)
        for place in rng.integers(0, len(whole), 12):
            broken[place] = rng.integers(256)
        path.write_bytes(broken[: rng.integers(1, 2 * len(whole))])
        with suppress(RecordingError):
            read_recording(path, skip_bad_rows=True)


def test_mat_reader_agrees_with_scipy(tmp_path):
    from scipy.io import loadmat, savemat

    from armwise.recordings.formats.arrays import read_mat_file

    rng = np.random.default_rng(0)
    arrays = {
        "doubles": rng.normal(size=(7, 3)),
        "singles": rng.normal(size=(2, 4)).astype(np.float32),
        "bytes": np.arange(5, dtype=np.uint8),
        "longs": np.arange(-3, 3, dtype=np.int64),
        "flags": np.array([True, False]),
        "one": 2.5,
        "empty": np.zeros((0, 3)),
        "cube": rng.normal(size=(2, 3, 4)),
    }
    for compressed in (False, True):
        path = tmp_path / "all.mat"
        savemat(path, arrays | {"s": {"a": 1}}, do_compression=compressed)
        ours, theirs = read_mat_file(path), loadmat(path)
        assert ours.objects == ("s",)
        assert set(ours.arrays) == set(arrays)
        for name in arrays:
            np.testing.assert_array_equal(ours.arrays[name], theirs[name])
