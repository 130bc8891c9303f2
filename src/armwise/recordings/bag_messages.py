"""What the messages of a bag say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.mapping import BagMapping

JOINT_STATE = "sensor_msgs/msg/JointState"


NUMBERS = ("std_msgs/msg/Float64", "std_msgs/msg/Float32")


WRENCHES = ("geometry_msgs/msg/WrenchStamped", "geometry_msgs/msg/Wrench")


@dataclass
class Stream:
    """Values of one topic (and one set of joints) as they come in."""

    stamps: list[int] = field(default_factory=list)
    rows: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def time(self, start: int) -> np.ndarray:
        """Return the stamps in [s] since a start in [ns]."""
        return (np.array(self.stamps, dtype=np.int64) - start) * 1e-9


def collect(
    path: Path,
    reader: Any,
    topics: dict[str, str],
    mapping: BagMapping,
    progress: Callable[[float], None] | None,
) -> dict[tuple[str, ...], Stream]:
    """Decode the messages: (topic, kind or joint names …) → stream."""
    store = _type_store(reader)
    connections = [c for c in reader.connections if c.topic in topics]
    total = max(sum(c.msgcount for c in connections), 1)
    streams: dict[tuple[str, ...], Stream] = {}
    paths = {c.topic: [] for c in mapping.channels}  # type: dict[str, list[str]]
    for channel in mapping.channels:
        paths[channel.topic].append(channel.field)
    orders: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
    for i, (connection, received, raw) in enumerate(reader.messages(connections)):
        try:
            message = store.deserialize_cdr(raw, connection.msgtype)
        except Exception as error:
            raise RecordingError(
                f"{path}, message {i + 1} of {connection.topic} is damaged: {error}."
            ) from None
        stamp = _stamp(message, received, mapping)
        wanted = paths.get(connection.topic, [])
        for key, row in _rows(path, connection, message, wanted, orders):
            stream = streams.setdefault(key, Stream())
            stream.stamps.append(stamp)
            stream.rows.append(row)
        if progress and i % 2000 == 0:
            progress(i / total)
    return streams


def _type_store(reader: Any) -> Any:
    """Return the known message types, and those the bag itself explains."""
    from rosbags.interfaces import MessageDefinitionFormat
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.LATEST)
    for connection in reader.connections:
        unknown = connection.msgtype not in store.types
        if unknown and connection.msgdef.format == MessageDefinitionFormat.MSG:
            store.register(
                get_types_from_msg(connection.msgdef.data, connection.msgtype)
            )
    return store


def _stamp(message: Any, received: int, mapping: BagMapping) -> int:
    """Return the time of a message in [ns]."""
    header = getattr(message, "header", None)
    if mapping.stamps == "received" or header is None:
        return int(received)
    stamp = int(header.stamp.sec) * 1_000_000_000 + int(header.stamp.nanosec)
    return stamp or int(received)


def _reordered(
    values: np.ndarray, names: tuple[str, ...], order: tuple[str, ...]
) -> np.ndarray:
    """Put a message's values into the order in which its joints were first named."""
    if names == order or values.size != len(names):
        return values
    return values[[names.index(name) for name in order]]


def _rows(
    path: Path,
    connection: Any,
    message: Any,
    paths: Sequence[str],
    orders: dict[tuple[str, frozenset[str]], tuple[str, ...]],
) -> Iterator[tuple[tuple[str, ...], tuple[np.ndarray, ...]]]:
    """Yield what one message says: stream key and values."""
    kind = connection.msgtype
    if kind == JOINT_STATE:
        values = (message.position, message.velocity, message.effort)
        names = tuple(message.name)
        order = orders.setdefault((connection.topic, frozenset(names)), names)
        yield (
            (connection.topic, "joints", *order),
            tuple(_reordered(np.array(v, dtype=float), names, order) for v in values),
        )
    elif kind in WRENCHES:
        wrench = getattr(message, "wrench", message)
        f, t = wrench.force, wrench.torque
        yield (
            (connection.topic, "wrench"),
            (np.array([f.x, f.y, f.z, t.x, t.y, t.z], dtype=float),),
        )
    for name in paths:
        where = f"{path}, {connection.topic}"
        yield (
            (connection.topic, "field", name),
            (np.array([_number(message, name, where)]),),
        )


def _number(message: Any, name: str, where: str) -> float:
    """Read a number such as `twist.linear.x` or `data[3]` out of a message."""
    value = message
    for part in re.findall(r"[A-Za-z_]\w*|\[\d+\]", name):
        try:
            value = value[int(part[1:-1])] if part[0] == "[" else getattr(value, part)
        except (AttributeError, IndexError, TypeError):
            raise RecordingError(f"{where}: its messages have no {name!r}.") from None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise RecordingError(f"{where}: {name!r} is not a number.") from None
