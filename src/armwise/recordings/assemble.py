"""From columns of numbers to channels with a meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.mapped import Sources, in_si, mapped, phase_torques, resolve
from armwise.recordings.naming import TIME_NAMES, joint_names, standard_names
from armwise.recordings.recording import WRENCH_NAMES, Channel

if TYPE_CHECKING:
    pass


def channels_of(sources: Sources) -> tuple[dict[str, Channel], tuple[str, ...]]:
    """Name every channel, in SI, in the arm's joint order; also the joint names."""
    main = sources.main
    found = standard_names(list(main.columns), main.source, sources.arm)
    found.update(sources.columns)
    signals: dict[str, tuple[str, list[np.ndarray]]] = {}
    for quantity, where in sources.mapping.signals.items():
        signals[quantity] = where.file, mapped(sources, quantity, where)
    if sources.mapping.phases is not None:
        signals["tau"] = "", phase_torques(sources, signals)
    channels: dict[str, Channel] = {}
    clock = _Clock(sources)
    used = set(sources.columns.values())
    for channel, column in found.items():
        if channel == "time" or channel.rsplit("_", 1)[0] in signals:
            continue
        used.add(column)
        values = in_si(main, column, channel.rsplit("_", 1)[0])
        channels[channel] = Channel(clock.stamps("", values.size), values)
    for quantity, (file, arrays) in signals.items():
        names = WRENCH_NAMES if quantity == "wrench" else _numbered(quantity, arrays)
        for name, values in zip(names, arrays, strict=True):
            channels[name] = Channel(clock.stamps(file, values.size), values)
    _add_others(sources, channels, found, used, clock)
    names = sources.mapping.joints or joint_names(list(main.columns), sources.arm)
    return channels, tuple(
        names if sources.arm is None else joint_names((), sources.arm)
    )


def _add_others(
    sources: Sources,
    channels: dict[str, Channel],
    found: Mapping[str, str],
    used: set[str],
    clock: _Clock,
) -> None:
    """Keep the other columns under their own names, or those the mapping gives."""
    main = sources.main
    for name, column in sources.mapping.channels.items():
        values = main[resolve(column, main)]
        channels[name] = Channel(clock.stamps("", values.size), values)
    if sources.mapping.signals or not main.columns:
        return
    taken = used | set(found.values()) | set(channels)
    for column, values in main.columns.items():
        if column not in taken and not column.isdigit():
            stamps = clock.stamps("", values.size)
            channels[column] = Channel(stamps, values, main.units.get(column, ""))


def _numbered(quantity: str, arrays: Sequence[np.ndarray]) -> tuple[str, ...]:
    return tuple(f"{quantity}_{j + 1}" for j in range(len(arrays)))


class _Clock:
    """Gives every file its time stamps, made once."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._made: dict[str, np.ndarray] = {}

    def stamps(self, file: str, rows: int) -> np.ndarray:
        """Return the stamps in [s] of a file's rows."""
        key = file if file in self._sources.tables else ""
        if key not in self._made:
            self._made[key] = self._read(key, rows)
        time = self._made[key]
        if time.size != rows:
            raise RecordingError(
                f"{self._sources.main.source}: {time.size} time stamps for {rows} rows "
                f"of {file or 'the log'}."
            )
        return time

    def _read(self, file: str, rows: int) -> np.ndarray:
        where, sources = self._sources.mapping.time, self._sources
        if where.rate_hz:
            return np.arange(rows) / where.rate_hz
        table = sources.tables[where.file or file] if sources.tables else sources.main
        column = sources.columns.get("time") or where.column
        if where.file and not column:
            column = next(iter(table.columns))
        if not column:
            lowered = {name.lower(): name for name in table.columns}
            column = next((lowered[n] for n in TIME_NAMES if n in lowered), "")
        if not column:
            raise RecordingError(
                f'{table.source} has no column "time". Found: {table.found()}. Map it '
                "with --column time=NAME, or give [time] rate_hz in a mapping."
            )
        column = resolve(column, table)
        return in_si(table, column, "time", where.unit)
