"""Bags of ROS 1 and ROS 2 (sqlite3, mcap), without ROS."""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from armwise.errors import ArmwiseError, MissingExtra, RecordingError
from armwise.recordings.mapping import BagMapping, TopicChannel
from armwise.recordings.recording import (
    WRENCH_NAMES,
    Channel,
    SignalTable,
    gather_tables,
)

if TYPE_CHECKING:
    from armwise.arms import Arm

# Messages: types, time stamps, values.

NUMBERS = ("std_msgs/msg/Float64", "std_msgs/msg/Float32")


WRENCHES = ("geometry_msgs/msg/WrenchStamped", "geometry_msgs/msg/Wrench")


@dataclass
class Stream:
    """Values of one topic (and one set of joints) as they come in."""

    stamps: list[int] = field(default_factory=list)
    rows: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def time(self, start: int) -> np.ndarray:
        """Return the stamps in [s] since a start in [ns]."""
        # Subtracted as integers: nanoseconds since 1970 have 19 digits, float64 has 16.
        return (np.array(self.stamps, dtype=np.int64) - start) * 1e-9


def collect(
    path: Path,
    reader: Any,
    topics: dict[str, str],
    mapping: BagMapping,
    progress: Callable[[float], None] | None,
) -> dict[tuple[str, ...], Stream]:
    """Decode the messages: (topic, kind or joint names …) → stream."""
    is_first = path.suffix == ".bag"
    decode = _decoder(reader, topics.values(), is_first)
    connections = [c for c in reader.connections if c.topic in topics]
    total = max(sum(c.msgcount for c in connections), 1)
    streams: dict[tuple[str, ...], Stream] = {}
    paths = {c.topic: [] for c in mapping.channels}  # type: dict[str, list[str]]
    for channel in mapping.channels:
        paths[channel.topic].append(channel.field)
    orders: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
    repeated: dict[str, _RepeatedStates] = {}
    for i, (connection, received, raw) in enumerate(reader.messages(connections)):
        # Judgement: often enough to be seen, too rare to cost time.
        if progress and i % 2000 == 0:
            progress(i / total)
        layout = repeated.get(connection.topic)
        if layout and layout.matches(raw):
            layout.stream.stamps.append(layout.stamp(raw, received, mapping))
            layout.stream.rows.append(layout.row(raw))
            continue
        try:
            message = decode(raw, connection.msgtype)
        except Exception as error:
            raise RecordingError(
                f"{path}, message {i + 1} of {connection.topic} is damaged: {error}."
            ) from None
        stamp = _stamp(message, received, mapping)
        fields = paths.get(connection.topic, [])
        for key, row in _rows(path, connection, message, fields, orders):
            stream = streams.setdefault(key, Stream())
            stream.stamps.append(stamp)
            stream.rows.append(row)
        if not is_first and connection.msgtype == JOINT_STATE and not fields:
            order = (connection.topic, "joints", *message.name)
            if order in streams:
                repeated[connection.topic] = _RepeatedStates(
                    bytes(raw), len(message.name), streams[order]
                )
    return streams


@dataclass(frozen=True)
class _RepeatedStates:
    """Joint states that differ from one already decoded in stamp and values alone.

    Nearly all of a bag's do; their numbers then lie at the same bytes, and reading them
    there takes a tenth of decoding the message.
    """

    example: bytes
    joints: int
    stream: Stream

    @cached_property
    def starts(self) -> tuple[int, int, int]:
        """Where positions, velocities and efforts begin, three arrays at the end."""
        # CDR: a count of four bytes and four more that put numbers at multiples of 8.
        array = 8 * self.joints
        end = len(self.example)
        return end - 3 * array - 16, end - 2 * array - 8, end - array

    @cached_property
    def fixed(self) -> tuple[tuple[slice, bytes], ...]:
        """Bytes that have to be the same: endianness, names, the three counts."""
        first, second, third = self.starts
        array = 8 * self.joints
        slices = (
            slice(0, 4),
            slice(12, first),
            slice(first + array, second),
            slice(second + array, third),
        )
        return tuple((part, self.example[part]) for part in slices)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the example is laid out as assumed: three arrays of one length."""
        first, second, third = self.starts
        count = struct.pack("<I", self.joints)
        return (
            self.joints > 0
            and first >= 20
            and self.example[1] == 1  # little-endian CDR
            and (first - 4) % 8 == 0
            # The names may end anywhere: the first count needs no four bytes more.
            and count
            in (self.example[first - 8 : first - 4], self.example[first - 4 : first])
            and all(self.example[at - 8 : at - 4] == count for at in (second, third))
        )

    def matches(self, raw: Any) -> bool:
        """Whether a message differs from the example in stamp and values alone."""
        return (
            self.is_plain
            and len(raw) == len(self.example)
            and all(raw[part] == same for part, same in self.fixed)
        )

    def stamp(self, raw: Any, received: int, mapping: BagMapping) -> int:
        """Return the time of a message in [ns]."""
        seconds, nanoseconds = struct.unpack_from("<iI", raw, 4)
        own = seconds * 1_000_000_000 + nanoseconds
        return int(received) if mapping.stamps == "received" else own or int(received)

    def row(self, raw: Any) -> tuple[np.ndarray, ...]:
        """Return positions, velocities and efforts."""
        return tuple(np.frombuffer(raw, "<f8", self.joints, at) for at in self.starts)


def _decoder(
    reader: Any, kinds: Collection[str], is_first: bool
) -> Callable[[Any, str], Any]:
    """Return what decodes messages of these types."""
    # Importing all types of a ROS release takes longer than reading most bags.
    if not is_first and set(kinds) <= set(COMMON):
        return decode_common
    from rosbags.interfaces import MessageDefinitionFormat
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    if is_first:
        first: Callable[[Any, str], Any] = get_typestore(
            Stores.ROS1_NOETIC
        ).deserialize_ros1
        return first
    store = get_typestore(Stores.LATEST)
    for connection in reader.connections:
        unknown = connection.msgtype not in store.types
        if unknown and connection.msgdef.format == MessageDefinitionFormat.MSG:
            store.register(
                get_types_from_msg(connection.msgdef.data, connection.msgtype)
            )
    decode: Callable[[Any, str], Any] = store.deserialize_cdr
    return decode


def _stamp(message: Any, received: int, mapping: BagMapping) -> int:
    """Return the time of a message in [ns]."""
    header = getattr(message, "header", None)
    if mapping.stamps == "received" or header is None:
        return int(received)
    stamp = int(header.stamp.sec) * 1_000_000_000 + int(header.stamp.nanosec)
    # A stamp of zero is ROS's default, of publishers that do not set it.
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
        # Publishers may name the same joints in another order from message to message.
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


# Topics, and tables of channels.


def read_bag(
    path: Path,
    mapping: BagMapping,
    arm: Arm | None,
    progress: Callable[[float], None] | None = None,
) -> tuple[tuple[SignalTable, ...], tuple[str, ...]]:
    """Read joint states, wrenches and other numbers of a bag.

    Returns the tables, and the names of the joints they are numbered by. Time starts
    with the first message.

    Args:
        path: Bag folder, or a .db3 or .mcap file alone.
        mapping: Which topics to read.
        arm: Its joint names pick and order the joints; without it, the messages' order.
        progress: Called with the fraction of messages read.
    """
    try:
        streams, mapping = _streams(path, mapping, progress)
    # Our own errors say it better than the general one below.
    except ArmwiseError:
        raise
    except Exception as error:  # rosbags, apsw and ruamel raise trees of their own
        raise RecordingError(f"{path} is not a readable ROS bag: {error}") from None
    return _tables(path, streams, mapping, arm)


def _streams(
    path: Path, mapping: BagMapping, progress: Callable[[float], None] | None
) -> tuple[dict[tuple[str, ...], Stream], BagMapping]:
    """Read the topics that are asked for; also the mapping with what was found."""
    needs_states = not mapping.channels
    plain = _plain_file(path)
    for file in (plain, None) if plain else (None,):
        with _reader(path, file) as reader:
            if reader is None:
                continue
            complete = _with_numbers(reader, mapping)
            topics = _topics(path, reader, complete, needs_states)
            if file is None or set(topics.values()) <= set(COMMON):
                streams = collect(path, reader, topics, complete, progress)
                break
    return streams, complete


def _plain_file(path: Path) -> Path | None:
    """The one SQLite file of a bag that is not compressed, if it is such a bag."""
    if path.suffix == ".db3":
        return path
    files = [*path.glob("*.db3*")] if path.is_dir() else []
    about = path / "metadata.yaml"
    if len(files) != 1 or files[0].suffix != ".db3":
        return None
    if about.is_file():
        with about.open(errors="replace") as text:
            # A megabyte: what compresses is said at the top.
            if re.search(r"compression_mode:\s*['\"]?\w", text.read(1_000_000)):
                return None
    return files[0]


@contextmanager
def _reader(path: Path, file: Path | None) -> Iterator[Any]:
    """Open a bag: its plain file, or whatever `rosbags` reads; None for no such."""
    reader: Any
    if file is not None:
        reader = SqliteBag(file)
        if not reader.is_plain:
            reader.close()
            yield None
            return
    else:
        generation = "rosbag1" if path.suffix == ".bag" else "rosbag2"
        try:
            bags = import_module(f"rosbags.{generation}")
        except ImportError:
            raise MissingExtra("rosbags", "ros", "Reading ROS bags") from None
        reader = bags.Reader(path)
        reader.open()
    try:
        yield reader
    finally:
        reader.close()


def _topics(
    path: Path, reader: Any, mapping: BagMapping, needs_states: bool
) -> dict[str, str]:
    """Choose the topics to read: topic → message type."""
    present = {c.topic: c.msgtype for c in reader.connections}
    if not present or reader.message_count == 0:
        raise RecordingError(f"{path} is an empty bag: it holds no messages.")
    listed = ", ".join(f"{topic} ({kind})" for topic, kind in sorted(present.items()))
    selection = {}
    states = [t for t, kind in present.items() if kind == JOINT_STATE]
    topic = mapping.joint_states or _only(states, "/joint_states")
    if not topic and needs_states:
        many = "several topics" if states else "no topic"
        raise RecordingError(
            f"{path} has {many} of joint states. Found: {listed}. "
            "Name it in the mapping: [bag] joint_states = TOPIC."
        )
    wrench = mapping.wrench or _only(
        [t for t, kind in present.items() if kind in WRENCHES], ""
    )
    extras = [channel.topic for channel in mapping.channels]
    for name in filter(None, [topic, wrench, *extras]):
        if name not in present:
            raise RecordingError(f"{path} has no topic {name}. Found: {listed}.")
        selection[name] = present[name]
    if topic and present[topic] != JOINT_STATE:
        raise RecordingError(
            f"{path}: {topic} holds {present[topic]}, not joint states. "
            f"Found: {listed}."
        )
    return selection


def _with_numbers(reader: Any, mapping: BagMapping) -> BagMapping:
    """Unless the mapping says what to keep, keep topics of plain numbers."""
    if mapping.channels:
        return mapping
    plain = {c.topic for c in reader.connections if c.msgtype in NUMBERS}
    channels = [TopicChannel(t, "data", t.strip("/")) for t in sorted(plain)]
    return replace(mapping, channels=tuple(channels))


def _only(topics: Sequence[str], preferred: str) -> str:
    if preferred in topics:
        return preferred
    return topics[0] if len(topics) == 1 else ""


def _tables(
    path: Path,
    streams: dict[tuple[str, ...], Stream],
    mapping: BagMapping,
    arm: Arm | None,
) -> tuple[tuple[SignalTable, ...], tuple[str, ...]]:
    """Turn streams into tables of named channels, with time from zero."""
    # From the first message of all: topics stay aligned with each other.
    start = min((s.stamps[0] for s in streams.values()), default=0)
    times = {key: stream.time(start) for key, stream in streams.items()}
    channels: dict[str, tuple[str, Channel]] = {}

    def add(
        key: tuple[str, ...], name: str, values: np.ndarray, unit: str = ""
    ) -> None:
        channels[name] = " ".join(key), Channel(times[key], values, unit)

    joints = [key for key in streams if key[1] == "joints"]

    def messages(key: tuple[str, ...]) -> int:
        return len(streams[key].stamps)

    largest = max(joints, key=messages, default=())
    names = arm.coordinate_names if arm is not None else largest[2:]
    for j, name in enumerate(names if joints else ()):
        holders = [key for key in joints if name in key[2:]]
        if not holders:
            published = ", ".join(sorted({x for key in joints for x in key[2:]}))
            raise RecordingError(f"{path} has no joint {name!r}. Found: {published}.")
        # Several nodes may publish a joint; the one with most messages is taken.
        key = max(holders, key=messages)
        index, count = key[2:].index(name), len(key) - 2
        for k, quantity in enumerate(("q", "qd", "tau")):
            values = _column(path, streams[key], k, index, count)
            if values is not None:
                add(key, f"{quantity}_{j + 1}", values)
    for key, stream in streams.items():
        if key[1] == "wrench":
            block = np.array([row[0] for row in stream.rows])
            for component, values in zip(WRENCH_NAMES, block.T, strict=True):
                add(key, component, np.ascontiguousarray(values))
    for extra in mapping.channels:
        key = (extra.topic, "field", extra.field)
        values = np.array([row[0][0] for row in streams[key].rows])
        add(key, extra.channel, values, extra.unit)
    return gather_tables(channels), tuple(names)


def _column(
    path: Path, stream: Stream, k: int, index: int, count: int
) -> np.ndarray | None:
    """Return one joint's positions, velocities or efforts; None if not published."""
    sizes = {row[k].size for row in stream.rows}
    # Empty in every message: JointState leaves out what is not measured.
    if sizes == {0}:
        return None
    if sizes != {count}:
        odd = next(i for i, row in enumerate(stream.rows) if row[k].size != count)
        raise RecordingError(
            f"{path}, joint state {odd + 1}: {stream.rows[odd][k].size} values for "
            f"{count} joints."
        )
    return np.array([row[k][index] for row in stream.rows])


# ROS 2 bags in SQLite, and the messages that nearly every bag holds, decoded.

JOINT_STATE = "sensor_msgs/msg/JointState"


class Topic(NamedTuple):
    """A topic, named as `rosbags` names what its readers return."""

    id: int
    topic: str
    msgtype: str
    msgcount: int


class SqliteBag:
    """One .db3 file, read with Python's own SQLite.

    A bag of a hundred thousand messages takes less time than importing what reads every
    kind of bag.
    """

    def __init__(self, path: Path) -> None:
        # Read-only, and no function that a file's own schema names may run.
        self._file = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
        self._file.execute("PRAGMA trusted_schema = OFF")
        stored = dict(self._file.execute("SELECT name, type FROM sqlite_master"))
        for name in ("topics", "messages"):
            # A view might compute for ever.
            if stored.get(name) != "table":
                raise ValueError(f"it has no table {name!r}")
        counts = dict(
            self._file.execute("SELECT topic_id, count(*) FROM messages GROUP BY 1")
        )
        columns = "id, name, type, serialization_format"
        rows = list(self._file.execute(f"SELECT {columns} FROM topics ORDER BY id"))
        self.is_plain = all(row[3] == "cdr" for row in rows)
        self.connections = [
            Topic(number, name, kind, counts.get(number, 0))
            for number, name, kind, _ in rows
        ]
        self.message_count = sum(counts.values())

    def messages(self, topics: Collection[Topic]) -> Iterator[tuple[Topic, int, bytes]]:
        """Yield topic, time of reception in [ns] and content, in the order of time."""
        by_id = {topic.id: topic for topic in topics}
        marks = ", ".join("?" * len(by_id))
        query = (
            "SELECT topic_id, timestamp, data FROM messages "
            f"WHERE topic_id IN ({marks}) ORDER BY timestamp"
        )
        for number, received, data in self._file.execute(query, tuple(by_id)):
            yield by_id[number], received, data

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


# Common Data Representation: numbers at multiples of their size, counts before lists.


@dataclass
class _Cdr:
    """A message, and where in it the next value begins."""

    raw: bytes
    at: int = 4

    def __post_init__(self) -> None:
        # 0 and 1 are the plain encodings, big- and little-endian.
        if len(self.raw) < 4 or self.raw[0] or self.raw[1] > 1:
            raise ValueError("it is not plain CDR")
        self.order = "<" if self.raw[1] else ">"

    def number(self, kind: str) -> Any:
        size = struct.calcsize(kind)
        # Aligned from the end of the four bytes that name the encoding.
        self.at += -(self.at - 4) % size
        (value,) = struct.unpack_from(self.order + kind, self.raw, self.at)
        self.at += size
        return value

    def string(self) -> str:
        size = self.number("I")
        text = bytes(self.raw[self.at : self.at + size])
        if len(text) != size:
            raise ValueError("a text ends behind the message")
        self.at += size
        return text.rstrip(b"\0").decode()

    def strings(self) -> list[str]:
        # Four bytes each at least, so that no count outgrows the message.
        count = self.number("I")
        if 4 * count > len(self.raw):
            raise ValueError("a list ends behind the message")
        return [self.string() for _ in range(count)]

    def doubles(self) -> np.ndarray:
        count = self.number("I")
        if not count:
            return np.empty(0)
        self.at += -(self.at - 4) % 8
        values = np.frombuffer(self.raw, self.order + "f8", count, self.at)
        self.at += 8 * count
        return values

    def header(self) -> SimpleNamespace:
        stamp = SimpleNamespace(sec=self.number("i"), nanosec=self.number("I"))
        return SimpleNamespace(stamp=stamp, frame_id=self.string())

    def vector(self) -> SimpleNamespace:
        x, y, z = (self.number("d") for _ in range(3))
        return SimpleNamespace(x=x, y=y, z=z)

    def wrench(self) -> SimpleNamespace:
        return SimpleNamespace(force=self.vector(), torque=self.vector())


def _joint_state(cdr: _Cdr) -> SimpleNamespace:
    return SimpleNamespace(
        header=cdr.header(),
        name=cdr.strings(),
        position=cdr.doubles(),
        velocity=cdr.doubles(),
        effort=cdr.doubles(),
    )


COMMON: dict[str, Callable[[_Cdr], SimpleNamespace]] = {
    JOINT_STATE: _joint_state,
    "geometry_msgs/msg/Wrench": _Cdr.wrench,
    "geometry_msgs/msg/WrenchStamped": lambda cdr: SimpleNamespace(
        header=cdr.header(), wrench=cdr.wrench()
    ),
    "std_msgs/msg/Float64": lambda cdr: SimpleNamespace(data=cdr.number("d")),
    "std_msgs/msg/Float32": lambda cdr: SimpleNamespace(data=cdr.number("f")),
}
"""Message types that nearly every bag needs, as ROS 2 has always defined them."""


def decode_common(raw: Any, kind: str) -> SimpleNamespace:
    """Decode a message of a type in `COMMON`.

    Raises:
        ValueError, struct.error: If it is damaged.
    """
    return COMMON[kind](_Cdr(bytes(raw)))
