"""Measured motion as it came: named channels, each with its own time stamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
        time: When each value was taken, in [s]. Channels of one table share the array.
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
class Recording:
    """What was measured on an arm, before any cleaning.

    Joint quantities are named `q_1`, `qd_1`, `qdd_1`, `tau_1` … in the order of the
    arm's joints, a wrench `fx, fy, fz, tx, ty, tz`; seconds, radians or metres, N m
    or N. Other channels keep the names the log gave them.

    Attributes:
        channels: Name → channel; read-only.
        joint_names: The arm's joint names, where known.
        source: The file it came from, for messages.
        skipped_rows: Rows the reader left out because they were asked to be skipped.
        notes: What the reader did that the user should know.
        arm: The arm it was measured on, where known.
    """

    channels: Mapping[str, Channel]
    joint_names: tuple[str, ...] = ()
    source: str = "recording"
    skipped_rows: int = 0
    notes: tuple[str, ...] = field(default=())
    arm: Arm | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", MappingProxyType(dict(self.channels)))

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
                channels[name] = Channel(
                    stamps, column, "N" if name[0] == "f" else "N m"
                )
        channels.update(extra or {})
        return cls(channels, tuple(joint_names), source)

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
        return min(float(c.time.min()) for c in self.channels.values() if c.time.size)

    @property
    def stop(self) -> float:
        """Last time stamp of all in [s]."""
        return max(float(c.time.max()) for c in self.channels.values() if c.time.size)

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
        rows: dict[int, np.ndarray] = {}
        stamps: dict[int, np.ndarray] = {}
        cut = {}
        for name, channel in self.channels.items():
            key = id(channel.time)
            if key not in rows:
                rows[key] = (channel.time >= start) & (channel.time < stop)
                stamps[key] = channel.time[rows[key]]
            cut[name] = replace(
                channel, time=stamps[key], values=channel.values[rows[key]]
            )
        return replace(self, channels=cut)

    def split(self, fraction: float) -> tuple[Recording, Recording]:
        """Cut in two by time: the first part, to fit, and the rest, to validate."""
        middle = self.start + fraction * self.duration
        return self.between(self.start, middle), self.between(middle, np.inf)
