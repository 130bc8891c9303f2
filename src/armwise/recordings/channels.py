"""Channels in SI units and the arm's order, from columns as a mapping describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.column_names import (
    TIME_NAMES,
    factor,
    joint_names,
    recognise,
    seconds_and_nanoseconds,
    split_unit,
)
from armwise.recordings.formats.table import RawTable
from armwise.recordings.mapping import LogMapping, SignalMapping
from armwise.recordings.recording import (
    WRENCH_NAMES,
    Channel,
    SignalTable,
    gather_tables,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm


# From motors to joints: gears, couplings, torque constants, phase currents.


def motor_to_joint_motion(
    gears: Float[np.ndarray, "motors joints"], motors: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Turn motor positions (or speeds) into the joints': motor = G q."""
    return _combined(np.linalg.inv(gears), motors)


def motor_to_joint_torque(
    gears: Float[np.ndarray, "motors joints"], motors: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Turn motor torques into the joints': τ = Gᵀ τ_motor."""
    return _combined(gears.T, motors)


def three_phase_torque(
    currents: tuple[np.ndarray, np.ndarray, np.ndarray],
    angle: np.ndarray,
    constant: float,
) -> np.ndarray:
    """Return a brushless motor's torque in [N m] (`aah1986` Eq. 22).

    τ = K_T (I_a sin θ + I_b sin(θ + 120°) + I_c sin(θ + 240°)).

    Args:
        currents: I_a, I_b, I_c in [A].
        angle: Electrical angle θ in [rad].
        constant: K_T in [N m/A].
    """
    third = 2.0 * np.pi / 3.0
    torque = sum(
        current * np.sin(angle + k * third) for k, current in enumerate(currents)
    )
    return constant * np.asarray(torque)


def per_joint(values: Sequence[float], count: int, where: str) -> list[float]:
    """Return one number per joint; a single one serves all."""
    if len(values) == 1:
        return [float(values[0])] * count
    if len(values) != count:
        raise RecordingError(f"{where}: {len(values)} numbers for {count} joints.")
    return [float(value) for value in values]


def _combined(matrix: np.ndarray, signals: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Multiply by a matrix signal by signal, without stacking long logs."""
    results = []
    for row in matrix:
        # Zero weights are left out: 0 × NaN of a motor that is not used would be NaN.
        used = [(w, s) for w, s in zip(row, signals, strict=True) if w != 0.0]
        total = used[0][0] * used[0][1] if used else np.zeros_like(signals[0])
        for weight, signal in used[1:]:
            total = total + weight * signal
        results.append(total)
    return results


# Signals as a mapping describes them: units, gears, offsets, phase currents.


@dataclass(frozen=True, eq=False)
class Sources:
    """The tables of one log: the main one under "", others by file name.

    Attributes:
        main: The log's own table.
        tables: File name → table; "" for the main one.
        mapping: How to understand them.
        arm: The arm, if given.
        columns: Channel → column the user named.
    """

    tables: Mapping[str, RawTable]
    mapping: LogMapping
    arm: Arm | None
    columns: Mapping[str, str]

    @property
    def main(self) -> RawTable:
        """The log's own table, or the first of its parts."""
        return self.tables.get("") or next(iter(self.tables.values()))

    @property
    def joint_count(self) -> int:
        """Number of joints the log should have."""
        if self.arm is not None:
            return self.arm.dof
        return self.mapping.joint_count or 0


def mapped(sources: Sources, quantity: str, where: SignalMapping) -> list[np.ndarray]:
    """Read one quantity of all joints as the mapping says, in the arm's order."""
    if where.file not in sources.tables:
        raise RecordingError(
            f"{sources.mapping.source}: which file holds {quantity}? Say file = NAME."
        )
    table = sources.tables[where.file]
    label = f"{sources.mapping.source}, {quantity}"
    arrays = _raw(sources, quantity, where, table)
    scales = per_joint(where.scale, len(arrays), f"{label}: scale")
    if where.scale_from:
        if where.scale_from not in table.scalars:
            raise RecordingError(
                f"{table.source} has no single number {where.scale_from!r}. "
                f"Found: {', '.join(table.scalars) or 'none'}."
            )
        scales = [scale * table.scalars[where.scale_from] for scale in scales]
    # Without a factor the log's own array is used: long logs are not copied.
    arrays = [a if s == 1.0 else a * s for a, s in zip(arrays, scales, strict=True)]
    if where.at == "motor":
        arrays = _through_gears(sources.mapping, quantity, arrays)
    # Offsets last: they are the joint's, beyond the gears.
    offsets = per_joint(where.offset, len(arrays), f"{label}: offset")
    arrays = [a if o == 0.0 else a + o for a, o in zip(arrays, offsets, strict=True)]
    return arrays if quantity == "wrench" else _ordered(sources, arrays, label)


def _raw(
    sources: Sources, quantity: str, where: SignalMapping, table: RawTable
) -> list[np.ndarray]:
    """Return the columns of one quantity, units applied."""
    if where.layout == "numbers":
        return _interleaved(sources, where, table, quantity)
    columns = [resolve(name, table) for name in _listed(where, table)]
    if not columns:
        first = "fx" if quantity == "wrench" else f"{quantity}_1"
        standard = recognise(list(table.columns), table.source, sources.arm).columns
        names = WRENCH_NAMES if quantity == "wrench" else standard
        columns = [standard[n] for n in names if n in standard and _is_of(n, quantity)]
        if not columns:
            table[first]  # refuses, and lists the columns there are
    expected = 6 if quantity == "wrench" else sources.joint_count or len(columns)
    if len(columns) != expected:
        raise RecordingError(
            f"{sources.mapping.source} names {len(columns)} columns for {quantity}, "
            f"but {expected} are needed."
        )
    # Forces and torques have the same table of units.
    kind = "tau" if quantity == "wrench" else quantity
    return [in_si(table, column, kind, where.unit) for column in columns]


def _is_of(channel: str, quantity: str) -> bool:
    return quantity == "wrench" or channel.rsplit("_", 1)[0] == quantity


def _listed(where: SignalMapping, table: RawTable) -> list[str]:
    """Spell out a matrix that one name stands for."""
    if len(where.columns) == 1 and where.columns[0] not in table.columns:
        return table.group(where.columns[0]) or list(where.columns)
    return list(where.columns)


def _interleaved(
    sources: Sources, where: SignalMapping, table: RawTable, quantity: str
) -> list[np.ndarray]:
    """Deal out a file of single numbers to the joints in turn."""
    count = 6 if quantity == "wrench" else sources.joint_count
    if not count:
        raise RecordingError(
            f"{table.source}: how many joints? Give the arm, or joints in the mapping."
        )
    numbers = next(iter(table.columns.values()))
    if numbers.size % count:
        raise RecordingError(
            f"{table.source} has {numbers.size} numbers, not a multiple of {count} "
            "joints: its last sample is incomplete, or the arm is not this one."
        )
    unit = factor(quantity, where.unit, table.source)
    # One row per joint, made contiguous below: filters run along time.
    dealt = numbers.reshape(-1, count).T * unit
    return [np.ascontiguousarray(row) for row in dealt]


def _through_gears(
    mapping: LogMapping, quantity: str, arrays: list[np.ndarray]
) -> list[np.ndarray]:
    gears = mapping.gears
    if gears is None or len(gears) != len(arrays):
        count = 0 if gears is None else len(gears)
        raise RecordingError(
            f"{mapping.source}: the transmission has {count} motors for {len(arrays)} "
            f"columns of {quantity}."
        )
    if quantity == "tau":
        return motor_to_joint_torque(gears, arrays)
    return motor_to_joint_motion(gears, arrays)


def _ordered(
    sources: Sources, arrays: list[np.ndarray], label: str
) -> list[np.ndarray]:
    """Put columns that follow the mapping's joint names into the arm's order."""
    names, arm = sources.mapping.joints, sources.arm
    if not names or arm is None:
        return arrays
    missing = [name for name in arm.coordinate_names if name not in names]
    if missing or len(names) != len(arrays):
        raise RecordingError(
            f"{label}: {arm.name} has the joints {', '.join(arm.coordinate_names)}, "
            f"the mapping {', '.join(names)}."
        )
    return [arrays[names.index(name)] for name in arm.coordinate_names]


def phase_torques(
    sources: Sources, signals: Mapping[str, tuple[str, list[np.ndarray]]]
) -> list[np.ndarray]:
    """Make torques from three phase currents and the motors' positions."""
    phases, mapping, table = sources.mapping.phases, sources.mapping, sources.main
    assert phases is not None
    if "q" not in signals:
        raise RecordingError(f"{mapping.source}: phases need a [position] as well.")
    joints = signals["q"][1]
    gears = np.eye(len(joints)) if mapping.gears is None else mapping.gears
    offset = per_joint(mapping.signals["q"].offset, len(joints), mapping.source)
    # Commutation goes by the motor's own angle, before the joint's offset.
    turned = [q - o for q, o in zip(joints, offset, strict=True)]
    motors = [sum(g * q for g, q in zip(row, turned, strict=True)) for row in gears]
    count = len(phases.columns)
    if count != len(motors):
        raise RecordingError(
            f"{mapping.source}: phases of {count} motors for {len(motors)} joints."
        )
    constants = per_joint(phases.constants, count, f"{mapping.source}: constants")
    poles = per_joint(phases.pole_pairs, count, f"{mapping.source}: pole_pairs")
    zeros = per_joint(phases.angle_offsets, count, f"{mapping.source}: angle_offsets")
    torques = []
    for j, triple in enumerate(phases.columns):
        a, b, c = (table[resolve(name, table)] for name in triple)
        angle = poles[j] * np.asarray(motors[j]) + zeros[j]
        torques.append(three_phase_torque((a, b, c), angle, constants[j]))
    if phases.at == "motor" and mapping.gears is not None:
        return motor_to_joint_torque(mapping.gears, torques)
    return torques


def resolve(column: str, table: RawTable) -> str:
    """Find a column by its name, with or without unit, or by its number from 1."""
    name, unit = split_unit(column)
    # Tables hold the unit of a heading such as time_ms apart from its name.
    if unit and column not in table.columns and table.units.get(name) == unit:
        return name
    if column not in table.columns and column.isascii() and column.isdigit():
        names = list(table.columns)
        if 1 <= int(column) <= len(names):
            return names[int(column) - 1]
        raise RecordingError(
            f"{table.source} has {len(names)} columns, so none is number {column}."
        )
    table[column]
    return column


def in_si(table: RawTable, column: str, quantity: str, unit: str = "") -> np.ndarray:
    """Return a column in SI; the column itself when it already is."""
    where = f'{table.source}, column "{column}"'
    scale = factor(quantity, unit or table.units.get(column, ""), where)
    values = table[column]
    if quantity == "temperature" and (unit or table.units.get(column, "")) == "K":
        return values - 273.15  # degrees Celsius, as all temperatures
    return values if scale == 1.0 else values * scale


# From columns of numbers to channels with a meaning.

_ELECTRIC = ("A", "mA", "V", "mV")
"""Units of torque columns that a torque constant must still turn into torques."""


@dataclass(frozen=True, eq=False)
class Contents:
    """What the tables of a log hold.

    Attributes:
        tables: Channels, in SI, in the arm's joint order.
        joint_names: The joints' names, where known.
        notes: What was done that the user should know.
    """

    tables: tuple[SignalTable, ...]
    joint_names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def contents_of(sources: Sources) -> Contents:
    """Name every channel, in SI, in the arm's joint order."""
    main = sources.main
    mapped_quantities = set(sources.mapping.signals)
    if sources.mapping.phases is not None:
        mapped_quantities.add("tau")
    recognised = recognise(
        list(main.columns), main.source, sources.arm, mapped_quantities
    )
    standard = {**recognised.columns, **sources.columns}
    has_positions = "q" in mapped_quantities or any(c[:2] == "q_" for c in standard)
    if recognised.ignored and sources.arm is not None and not has_positions:
        listed = ", ".join(sources.arm.coordinate_names)
        raise RecordingError(
            f'{main.source}: column "{recognised.ignored[0]}" names no joint of '
            f"{sources.arm.name}. Its joints: {listed}."
        )
    signals: dict[str, tuple[str, list[np.ndarray]]] = {}
    for quantity, where in sources.mapping.signals.items():
        signals[quantity] = where.file, mapped(sources, quantity, where)
    if sources.mapping.phases is not None:
        signals["tau"] = "", phase_torques(sources, signals)
    stamped = _Stamped(sources)
    used = set(sources.columns.values())
    for channel, column in standard.items():
        if channel == "time" or channel.rsplit("_", 1)[0] in signals:
            continue
        used.add(column)
        stamped.add("", channel, in_si(main, column, channel.rsplit("_", 1)[0]))
    for quantity, (file, arrays) in signals.items():
        names = WRENCH_NAMES if quantity == "wrench" else _numbered(quantity, arrays)
        for name, values in zip(names, arrays, strict=True):
            stamped.add(file, name, values)
    ignored = [name for name in recognised.ignored if name not in used]
    _add_others(sources, stamped, used | set(standard.values()) | set(ignored))
    names = sources.mapping.joints or joint_names(list(main.columns), sources.arm)
    joints = names if sources.arm is None else joint_names((), sources.arm)
    notes = [*main.notes, *_current_notes(sources, standard)]
    if ignored and sources.arm is not None:
        notes.append(
            f"{main.source}: {_listed_briefly(ignored)} name no joint of "
            f"{sources.arm.name} and are left out."
        )
    return Contents(gather_tables(stamped.channels), tuple(joints), tuple(notes))


def _listed_briefly(names: Sequence[str]) -> str:
    # Judgement: six names say what kind of columns they are.
    return ", ".join(names[:6]) + (
        f" and {len(names) - 6} more columns" if len(names) > 6 else ""
    )


def _current_notes(sources: Sources, standard: Mapping[str, str]) -> list[str]:
    """Say so if a torque column is in a unit that is no torque."""
    main = sources.main
    electric = [
        f"{column} [{main.units[column]}]"
        for channel, column in standard.items()
        if channel.startswith("tau_") and main.units.get(column) in _ELECTRIC
    ]
    if not electric:
        return []
    return [
        f"{main.source}: {_listed_briefly(electric)} is no torque; parameters come out "
        "in that unit. Give torque constants as scale under [torque] in a mapping."
    ]


def _add_others(sources: Sources, stamped: _Stamped, used: set[str]) -> None:
    """Keep the other columns under their own names, or those the mapping gives."""
    main = sources.main
    for name, column in sources.mapping.channels.items():
        stamped.add("", name, main[resolve(column, main)])
    # A mapping says what to keep; without one, everything numeric is kept.
    if sources.mapping.signals or not main.columns:
        return
    used = used | set(stamped.channels)
    for column, values in main.columns.items():
        # Columns without a heading are numbered, and a number says nothing.
        if column not in used and not column.isdigit():
            stamped.add("", column, values, main.units.get(column, ""))


def _numbered(quantity: str, arrays: Sequence[np.ndarray]) -> tuple[str, ...]:
    return tuple(f"{quantity}_{j + 1}" for j in range(len(arrays)))


class _Stamped:
    """Channels with the time stamps of their files, each file's read once.

    Attributes:
        channels: Name → the table it belongs to, and the channel.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._times: dict[str, np.ndarray] = {}
        self._groups: dict[str, list[np.ndarray]] = {}
        self.channels: dict[str, tuple[str, Channel]] = {}

    def add(self, file: str, name: str, values: np.ndarray, unit: str = "") -> None:
        """Add a column of a file; of two with one name the last counts."""
        where = self._sources.mapping.time
        table = file if file in self._sources.tables else ""
        if where.file and not where.rate_hz:
            table = where.file  # one file stamps the rows of all
        if table not in self._times:
            self._times[table] = self._read(table, values.size)
        time = self._times[table]
        if time.size != values.size:
            raise RecordingError(
                f"{self._sources.main.source}: {time.size} time stamps for "
                f"{values.size} rows of {file or 'the log'}."
            )
        raw = self._sources.tables.get(table)
        if raw is None or not raw.is_sparse:
            self.channels[name] = table or "log", Channel(time, values, unit)
            return
        # Rows of several topics: each column has the stamps of its own rows.
        rows = np.isfinite(values) & np.isfinite(time)
        groups = self._groups.setdefault(table, [])
        same = (k for k, mask in enumerate(groups) if np.array_equal(mask, rows))
        group = next(same, len(groups))
        if group == len(groups):
            groups.append(rows)
        label = f"{table or 'log'} {group + 1}"
        if rows.any():
            self.channels[name] = label, Channel(time[rows], values[rows], unit)

    def _read(self, file: str, rows: int) -> np.ndarray:
        """Return the stamps in [s] of a file's rows."""
        where, sources = self._sources.mapping.time, self._sources
        # No stamps at all: rows count the time.
        if where.rate_hz:
            return np.arange(rows) / where.rate_hz
        table = sources.tables[where.file or file] if sources.tables else sources.main
        column = sources.columns.get("time") or where.column
        if where.file and not column:
            column = next(iter(table.columns))
        if not column:
            lowered = {name.lower(): name for name in table.columns}
            column = next((lowered[n] for n in TIME_NAMES if n in lowered), "")
        if not column and (pair := seconds_and_nanoseconds(list(table.columns))):
            return np.asarray(table[pair[0]] + 1e-9 * table[pair[1]])
        if not column:
            raise RecordingError(
                f'{table.source} has no column "time". Found: {table.found()}. Map it '
                "with --column time=NAME, or give [time] rate_hz in a mapping."
            )
        column = resolve(column, table)
        time = in_si(table, column, "time", where.unit)
        # LeRobot starts the clock of every episode at zero.
        episodes = table.columns.get("episode_index")
        return time if episodes is None else _in_sequence(time, episodes)


def _in_sequence(time: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    """Put episodes one after the other, with a second between them."""
    starts = np.flatnonzero(np.diff(episodes) != 0) + 1
    # A clock that runs on needs no help.
    if not starts.size or np.all(time[starts] > time[starts - 1]):
        return time
    shift = np.zeros(time.size)
    # A second is a gap at any rate, so that nothing is filtered across it.
    shift[starts] = time[starts - 1] + 1.0 - time[starts]
    return np.asarray(time + np.cumsum(shift))
