"""ROS 2 bags in SQLite, and the messages that nearly every bag holds, decoded."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

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
