"""Measured motion as it came: tables of channels, each table with its own stamps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError, RecordingError

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm

WRENCH_NAMES = ("fx", "fy", "fz", "tx", "ty", "tz")
"""Force and torque channels of a wrist sensor, in the order of a wrench."""

JOINT_QUANTITIES = ("q", "qd", "qdd", "tau")
"""Quantities a recording has once per joint: `q_1`, `qd_1`, `qdd_1`, `tau_1`."""


@dataclass(frozen=True, eq=False)
class Channel:
    """One measured signal.

    Attributes:
        time: When each value was taken, in [s].
        values: What was measured, in `unit`.
        unit: Unit of the values; empty when the log does not say.
    """

    time: Float[np.ndarray, " samples"]
    values: Float[np.ndarray, " samples"]
    unit: str = ""

    def __post_init__(self) -> None:
        if self.time.shape != self.values.shape or self.time.ndim != 1:
            raise RecordingError(
                f"A channel needs one value per time stamp, not {self.values.shape} "
                f"values for {self.time.shape} stamps."
            )


@dataclass(frozen=True, eq=False)
class SignalTable:
    """Signals that were measured together: one row per time stamp.

    Attributes:
        name: Topic, file or signal it came from.
        time: When each row was taken, in [s].
        columns: Channel → values; read-only.
        units: Channel → unit, where the log says.
    """

    name: str
    time: Float[np.ndarray, " rows"]
    columns: Mapping[str, Float[np.ndarray, " rows"]]
    units: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for values in self.columns.values():
            Channel(self.time, values)  # refuses another number of values
        for name in ("columns", "units"):
            copied = MappingProxyType(dict(getattr(self, name)))
            object.__setattr__(self, name, copied)

    def __getitem__(self, name: str) -> Channel:
        return Channel(self.time, self.columns[name], self.units.get(name, ""))

    def take(self, rows: np.ndarray) -> SignalTable:
        """Return some of the rows, by a mask or indices."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return replace(self, time=self.time[rows], columns=columns)


@dataclass(frozen=True, eq=False)
class Recording:
    """What was measured on an arm, before any cleaning.

    Joint quantities are named `q_1`, `qd_1`, `qdd_1`, `tau_1` … in the order of the
    arm's joints, a wrench `fx, fy, fz, tx, ty, tz`; seconds, radians or metres, N m
    or N. Other channels keep the names the log gave them.

    Attributes:
        tables: Channels by time base: what was stamped together stands together.
        joint_names: The arm's joint names, where known.
        source: The file it came from, for messages.
        skipped_rows: Rows the reader left out because they were asked to be skipped.
        notes: What the reader did that the user should know.
        arm: The arm it was measured on, where known.
    """

    tables: tuple[SignalTable, ...]
    joint_names: tuple[str, ...] = ()
    source: str = "recording"
    skipped_rows: int = 0
    notes: tuple[str, ...] = field(default=())
    arm: Arm | None = None

    def __repr__(self) -> str:
        """One line: what was recorded, for how long."""
        names = [name for table in self.tables for name in table.columns]
        spans = [t.time[-1] - t.time[0] for t in self.tables if len(t.time)]
        listed = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        return (
            f"<Recording {self.source}: {max(spans, default=0.0):.4g} s of "
            f"{len(names)} channels ({listed})>"
        )

    def __post_init__(self) -> None:
        names = [name for table in self.tables for name in table.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise RecordingError(f"{self.source} has two channels {twice!r}.")

    @classmethod
    def from_arrays(
        cls,
        time: Float[np.ndarray, " samples"],
        *,
        q: Float[np.ndarray, "samples dof"] | None = None,
        qd: Float[np.ndarray, "samples dof"] | None = None,
        qdd: Float[np.ndarray, "samples dof"] | None = None,
        tau: Float[np.ndarray, "samples dof"] | None = None,
        wrench: Float[np.ndarray, "samples 6"] | None = None,
        extra: Mapping[str, Channel] | None = None,
        joint_names: Sequence[str] = (),
        source: str = "recording",
    ) -> Recording:
        """Build from arrays on one time base, one column per joint, in SI units."""
        stamps = np.ascontiguousarray(time, dtype=float)
        channels: dict[str, Channel] = {}
        for quantity, block in (("q", q), ("qd", qd), ("qdd", qdd), ("tau", tau)):
            if block is not None:
                columns = np.asarray(block, dtype=float).reshape(len(stamps), -1).T
                for j, column in enumerate(columns):
                    channels[f"{quantity}_{j + 1}"] = Channel(stamps, column)
        if wrench is not None:
            for name, column in zip(WRENCH_NAMES, np.asarray(wrench).T, strict=True):
                unit = "N" if name[0] == "f" else "N m"
                channels[name] = Channel(stamps, column, unit)
        channels.update(extra or {})
        return cls.from_channels(channels, joint_names=joint_names, source=source)

    @classmethod
    def from_channels(
        cls,
        channels: Mapping[str, Channel],
        *,
        joint_names: Sequence[str] = (),
        source: str = "recording",
    ) -> Recording:
        """Build from named channels; those with equal stamps share a table."""
        return cls(_by_stamps(channels), tuple(joint_names), source)

    def with_channels(self, channels: Mapping[str, Channel]) -> Recording:
        """Return it with channels added, or in place of those of the same names."""
        return replace(self, tables=_by_stamps({**self.channels, **channels}))

    def select(self, names: Iterable[str]) -> Recording:
        """Return it with some of its channels only."""
        groups: dict[int, dict[str, np.ndarray]] = {}
        for name in names:
            i = self.index_of(name)
            groups.setdefault(i, {})[name] = self.tables[i].columns[name]
        tables = [replace(self.tables[i], columns=c) for i, c in groups.items()]
        return replace(self, tables=tuple(tables))

    @cached_property
    def _index(self) -> dict[str, int]:
        tables = enumerate(self.tables)
        return {name: i for i, table in tables for name in table.columns}

    @cached_property
    def channels(self) -> Mapping[str, Channel]:
        """Name → channel; read-only."""
        views = {name: self.tables[i][name] for name, i in self._index.items()}
        return MappingProxyType(views)

    def index_of(self, name: str) -> int:
        """Return which of the tables a channel is in."""
        self[name]  # refuses a name it does not have
        return self._index[name]

    def __getitem__(self, name: str) -> Channel:
        if name not in self.channels:
            raise RecordingError(
                f"{self.source} has no channel {name!r}. "
                f"Found: {', '.join(self.channels)}."
            )
        return self.channels[name]

    def __contains__(self, name: object) -> bool:
        return name in self.channels

    @property
    def dof(self) -> int:
        """Number of joints whose position was measured."""
        return self.count("q")

    @property
    def has_wrench(self) -> bool:
        """Whether all six components of a wrench were measured."""
        return all(name in self.channels for name in WRENCH_NAMES)

    @property
    def start(self) -> float:
        """First time stamp of all in [s]."""
        return min(float(t.time.min()) for t in self.tables if t.time.size)

    @property
    def stop(self) -> float:
        """Last time stamp of all in [s]."""
        return max(float(t.time.max()) for t in self.tables if t.time.size)

    @property
    def duration(self) -> float:
        """From the first time stamp to the last in [s]."""
        return self.stop - self.start

    def count(self, quantity: str) -> int:
        """Return for how many joints in a row, from the first, it was measured."""
        n = 0
        while f"{quantity}_{n + 1}" in self.channels:
            n += 1
        return n

    def group(self, names: Sequence[str]) -> tuple[Channel, ...]:
        """Return several channels at once."""
        return tuple(self[name] for name in names)

    def between(self, start: float, stop: float) -> Recording:
        """Return what was measured from start (included) to stop (excluded) in [s]."""
        if not start < stop:
            raise ArgumentError(f"start {start:g} s must come before stop {stop:g} s.")
        # Half open, so that parts cut at the same time share no sample.
        tables = [t.take((t.time >= start) & (t.time < stop)) for t in self.tables]
        return replace(self, tables=tuple(tables))

    def split(self, fraction: float) -> tuple[Recording, Recording]:
        """Cut in two by time: the first part, to fit, and the second, to validate."""
        middle = self.start + fraction * self.duration
        # To infinity: the last sample is not lost to the half-open end.
        return self.between(self.start, middle), self.between(middle, np.inf)


def gather_tables(
    channels: Mapping[str, tuple[str, Channel]],
) -> tuple[SignalTable, ...]:
    """Gather channels, each with the name of its table, into the tables."""
    groups: dict[str, dict[str, Channel]] = {}
    for name, (table, channel) in channels.items():
        groups.setdefault(table, {})[name] = channel
    return tuple(
        SignalTable(
            table,
            next(iter(members.values())).time,
            {name: channel.values for name, channel in members.items()},
            {name: channel.unit for name, channel in members.items() if channel.unit},
        )
        for table, members in groups.items()
    )


def _by_stamps(channels: Mapping[str, Channel]) -> tuple[SignalTable, ...]:
    """Put channels with equal time stamps into one table, named by its first."""
    times: dict[str, np.ndarray] = {}
    placed: dict[str, tuple[str, Channel]] = {}
    for name, channel in channels.items():
        same = (n for n, time in times.items() if np.array_equal(time, channel.time))
        table = next(same, name)
        times.setdefault(table, channel.time)
        placed[name] = table, channel
    return gather_tables(placed)
