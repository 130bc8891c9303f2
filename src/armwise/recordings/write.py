"""Writing of recordings: CSV, Parquet, or a ROS 2 bag in MCAP."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import ArgumentError, MissingExtra, RecordingError
from armwise.files import replacing
from armwise.recordings.recording import WRENCH_NAMES, Channel, Recording

if TYPE_CHECKING:
    import polars as pl


def write_recording(recording: Recording, path: str | Path) -> None:
    """Write a recording to a .csv, .parquet or .mcap file.

    CSV and Parquet are the standard log, `time, q_1 …`, and need all channels on one
    time base. MCAP holds joint states, the wrench, and every other channel as a topic
    of its own, each with its own stamps from zero. The file appears complete or not at
    all.

    Raises:
        RecordingError: If channels of different time bases are to go into one table.
    """
    file = Path(path)
    writers: dict[str, Callable[[Recording, Path], None]] = {
        ".csv": _write_csv,
        ".parquet": _write_parquet,
        ".mcap": _write_mcap,
    }
    if file.suffix not in writers:
        raise ArgumentError(
            f"{file}: recordings are written as {', '.join(writers)}, not "
            f"{file.suffix!r}."
        )
    if not recording.channels:
        raise RecordingError(f"{recording.source} has no channels to write.")
    writers[file.suffix](recording, file)


def _write_csv(recording: Recording, path: Path) -> None:
    table = _table(recording)
    with replacing(path) as temporary:
        table.write_csv(temporary)


def _write_parquet(recording: Recording, path: Path) -> None:
    table = _table(recording)
    with replacing(path) as temporary:
        table.write_parquet(temporary)


def _table(recording: Recording) -> pl.DataFrame:
    import polars as pl

    first, *others = recording.tables
    for table in others:
        if not np.array_equal(table.time, first.time):
            name = next(iter(table.columns))
            raise RecordingError(
                f"{recording.source}: {name} has other time stamps than the others; a "
                "table needs one time base. Write .mcap instead."
            )
    columns = {"time": first.time}
    for name, channel in recording.channels.items():
        columns[_heading(name, channel)] = channel.values
    return pl.DataFrame(columns)


def _heading(name: str, channel: Channel) -> str:
    standard = name in WRENCH_NAMES or name.split("_")[0] in ("q", "qd", "qdd", "tau")
    return name if standard or not channel.unit else f"{name} [{channel.unit}]"


def _write_mcap(recording: Recording, path: Path) -> None:
    try:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingExtra("rosbags", "ros", "Writing MCAP files") from None
    store = get_typestore(Stores.ROS2_HUMBLE)
    start = recording.start
    with replacing(path) as temporary:
        folder = temporary.parent / "bag"
        options: dict[str, Any] = {"version": 9, "storage_plugin": StoragePlugin.MCAP}
        with Writer(folder, **options) as bag:
            _write_joint_states(recording, bag, store, start)
            _write_wrench(recording, bag, store, start)
            _write_others(recording, bag, store, start)
        # The MCAP file alone says everything; the folder's metadata only repeat it.
        os.replace(next(folder.glob("*.mcap")), temporary)


def _nanoseconds(time: np.ndarray, start: float) -> list[int]:
    # From zero before scaling: stamps since 1970 have no digits left for nanoseconds.
    stamps: list[int] = np.rint((time - start) * 1e9).astype(np.int64).tolist()
    return stamps


def _header(store: Any, stamp: int, frame: str = "") -> Any:
    time = store.types["builtin_interfaces/msg/Time"]
    seconds, nanoseconds = divmod(stamp, 1_000_000_000)
    return store.types["std_msgs/msg/Header"](time(seconds, nanoseconds), frame)


def _write_joint_states(
    recording: Recording, bag: Any, store: Any, start: float
) -> None:
    """Write positions, velocities and torques as joint states."""
    n = recording.dof
    if not n:
        return
    kind = "sensor_msgs/msg/JointState"
    time = recording["q_1"].time
    blocks = []
    for quantity in ("q", "qd", "tau"):
        names = [f"{quantity}_{j + 1}" for j in range(n)]
        complete = all(
            name in recording and np.array_equal(recording[name].time, time)
            for name in names
        )
        if complete:
            blocks.append(np.stack([recording[name].values for name in names], axis=1))
        elif any(name in recording for name in names):
            raise RecordingError(
                f"{recording.source}: {quantity} is not on the stamps of the "
                "positions, so it fits no joint state."
            )
        else:
            # JointState leaves arrays empty for what was not measured.
            blocks.append(np.zeros((time.size, 0)))
    joints = list(recording.joint_names) or [str(j + 1) for j in range(n)]
    connection = bag.add_connection("/joint_states", kind, typestore=store)
    message = store.types[kind]
    for stamp, *row in zip(_nanoseconds(time, start), *blocks, strict=True):
        state = message(_header(store, stamp), joints, *row)
        bag.write(connection, stamp, store.serialize_cdr(state, kind))


def _write_wrench(recording: Recording, bag: Any, store: Any, start: float) -> None:
    if not recording.has_wrench:
        return
    kind = "geometry_msgs/msg/WrenchStamped"
    vector = store.types["geometry_msgs/msg/Vector3"]
    wrench = store.types["geometry_msgs/msg/Wrench"]
    connection = bag.add_connection("/wrench", kind, typestore=store)
    channels = recording.group(WRENCH_NAMES)
    values = np.stack([channel.values for channel in channels], axis=1).tolist()
    for stamp, row in zip(_nanoseconds(channels[0].time, start), values, strict=True):
        body = wrench(vector(*row[:3]), vector(*row[3:]))
        message = store.types[kind](_header(store, stamp), body)
        bag.write(connection, stamp, store.serialize_cdr(message, kind))


def _write_others(recording: Recording, bag: Any, store: Any, start: float) -> None:
    """Write every other channel as numbers on a topic of its name."""
    kind = "std_msgs/msg/Float64"
    for name, channel in recording.channels.items():
        if name in WRENCH_NAMES or name.split("_")[0] in ("q", "qd", "tau"):
            continue
        connection = bag.add_connection(f"/{name}", kind, typestore=store)
        stamps = _nanoseconds(channel.time, start)
        for stamp, value in zip(stamps, channel.values.tolist(), strict=True):
            message = store.types[kind](value)
            bag.write(connection, stamp, store.serialize_cdr(message, kind))
