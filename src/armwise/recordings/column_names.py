"""Names of columns: which joint and quantity a heading stands for, and its unit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

from armwise.errors import RecordingError
from armwise.recordings.recording import WRENCH_NAMES

if TYPE_CHECKING:
    from armwise.arms import Arm


TIME_NAMES = (
    "time", "t", "timestamp", "stamp", "seconds", "__time", "%time", "header.stamp",
    "field.header.stamp", "rosbagtimestamp",
)  # fmt: skip
"""Headings understood as time, in order of preference."""

_SECONDS = re.compile(r"^(.*?)(secs?|seconds)$")
_NANOSECONDS = ("nanosec", "nsec", "nsecs", "nanosecs", "nanoseconds")

_WORDS = {
    "q": ("q", "pos", "position", "positions", "joint_position", "actual_q"),
    "qd": ("qd", "dq", "vel", "velocity", "velocities", "joint_velocity", "actual_qd"),
    "qdd": ("qdd", "ddq", "acc", "acceleration", "accelerations"),
    "tau": ("tau", "torque", "torques", "effort", "efforts", "joint_torque"),
    "temperature": (
        "temperature", "temperatures", "temp", "joint_temperature", "joint_temp",
        "joint_temperatures", "motor_temperature", "motor_temp", "motor_temperatures",
        "motor_temps",
    ),
}  # fmt: skip
_QUANTITIES = {word: quantity for quantity, words in _WORDS.items() for word in words}
_PREFIXES = ("q", "qd", "dq", "qdd", "ddq", "tau", "position", "velocity", "effort",
             "acceleration", "torque")  # fmt: skip

# Longest first: q would otherwise match the beginning of qdd_1.
_ANY = "|".join(sorted(_QUANTITIES, key=len, reverse=True))
_STANDARD = re.compile(
    rf"^({'|'.join(sorted(_PREFIXES, key=len, reverse=True))})(?:_(.+)|([0-9]+))$"
)
_PREFIXED = re.compile(rf"^({_ANY})(?:_(.+)|([0-9]+)|\[([0-9]+)\])$")
_SUFFIXED = re.compile(rf"^(.+?)[_ ]({_ANY})$")
_INDEXED = re.compile(rf"^({_ANY})(?:\[([0-9]+)\]|_?([0-9]+))?$")

_COMMANDED = re.compile(r"^command_(.+)$")
"""Heading of a joint's command, by name: those that are numbered are the standard's."""

_NOT_MEASURED = re.compile(
    r"(^|[/._])(desired|reference|error|target|commanded|command|setpoint|goal)([/._]|$)"
)
"""Parts of a heading that say it is no measurement."""


@dataclass(frozen=True)
class _Meaning:
    """What a heading seems to say: a quantity of a joint, by name or number.

    Attributes:
        form: How it is written; the lower, the closer to the standard log.
        quantity: `q`, `qd`, `qdd`, `tau` or `temperature`.
        joint: Name, or number as text.
    """

    form: int
    quantity: str
    joint: str


@dataclass(frozen=True)
class Recognised:
    """Columns of a log that are understood.

    Attributes:
        columns: Channel → heading.
        ignored: Headings that name a joint which the arm does not have.
    """

    columns: dict[str, str]
    ignored: tuple[str, ...] = ()


def recognise(
    headings: Sequence[str],
    source: str,
    arm: Arm | None,
    mapped: Collection[str] = (),
) -> Recognised:
    """Recognise the columns of a log: channel → heading.

    `q_1` counts joints from one in the arm's order; `q_elbow` names one, and so do
    `elbow_position`, `elbow.pos` and `/joint_states/elbow/position`; `position[0]` and
    `actual_q_0` count from zero. Without an arm, names are numbered as they appear.
    `command_elbow` is the elbow's command.

    Args:
        headings: The columns' names.
        source: The file, for messages.
        arm: The arm, whose joints give names and order.
        mapped: Quantities that a mapping describes: their columns are not looked for.

    Raises:
        RecordingError: If a number fits no joint, or two columns fit the same.
    """
    order = list(arm.coordinate_names) if arm is not None else _order(headings)
    numbers = {name.lower(): j for j, name in reversed(list(enumerate(order, 1)))}
    numbers.update({name: j for j, name in enumerate(order, 1)})
    counts = {m.joint for x in headings for m in _meanings(x) if _is_count(m.joint)}
    # Joints called 0, 1, 2 are named only if every number is a name; q_1 … q_12 of
    # joints 0 … 11 are counted.
    if not counts <= numbers.keys():
        numbers = {name: j for name, j in numbers.items() if not _is_count(name)}
    zero_based = _counted_from_zero(headings)
    columns: dict[str, str] = {}
    forms: dict[str, int] = {}
    ignored: list[str] = []
    for heading in headings:
        lowered = heading.lower()
        if lowered in TIME_NAMES or lowered in WRENCH_NAMES:
            channel, form = ("time" if lowered in TIME_NAMES else lowered), 0
            # Two clocks are common in exported logs: the first name listed counts.
            if channel == "time" and channel in columns:
                now = columns[channel].lower()
                if TIME_NAMES.index(lowered) > TIME_NAMES.index(now):
                    continue
                del columns[channel]
        else:
            meanings = list(_meanings(heading))
            joints = [m for m in meanings if m.joint in numbers or _is_count(m.joint)]
            if not joints:
                # Only what is written as the standard log's columns surely meant one.
                if any(m.form == 0 and m.quantity not in mapped for m in meanings):
                    ignored.append(heading)
                continue
            meaning = joints[0]
            if meaning.quantity in mapped:
                continue
            number = _number(meaning, numbers, zero_based, heading, source, arm)
            channel, form = f"{meaning.quantity}_{number}", meaning.form
        # A joint may have several thermometers: the first serves.
        is_warmer = channel.startswith("temperature_") and channel in columns
        if channel in columns and form == forms[channel] and not is_warmer:
            raise RecordingError(
                f"{source}: columns {columns[channel]!r} and {heading!r} "
                f"both give {channel}. Remove one, or choose with "
                f"--column {channel}=NAME."
            )
        # Of two dialects the one nearer to the standard counts.
        if channel not in columns or form < forms[channel]:
            columns[channel], forms[channel] = heading, form
    for heading in headings:
        match = _COMMANDED.match(heading)
        if match and match[1] in numbers and not _is_count(match[1]):
            columns.setdefault(f"command_{numbers[match[1]]}", heading)
    for quantity in ("q", "qd", "tau"):
        # In plain words only where nothing else was understood.
        if quantity not in mapped and f"{quantity}_1" not in columns:
            count = None if arm is None else arm.dof
            columns.update(_worded(headings, quantity, count))
    return Recognised(columns, () if arm is None else tuple(ignored))


_PLAIN_WORDS = {
    "q": {"pos", "position", "positions", "angle", "angles"},
    "qd": {"vel", "velocity", "velocities", "speed", "speeds"},
    "tau": {"tau", "torque", "torques", "effort", "efforts", "moment"},
    "current": {"current", "currents", "amp", "amps", "ampere", "amperes"},
}
_OTHER_WORDS = {
    "desired", "des", "ref", "reference", "target", "cmd", "command", "commanded",
    "setpoint", "goal", "error", "err", "limit", "max", "min", "gripper", "tool",
    "tcp", "cartesian", "cart", "external", "ext",
}  # fmt: skip
"""Words after which a column is not what a joint measured."""


def _worded(
    headings: Sequence[str], quantity: str, count: int | None
) -> dict[str, str]:
    """Columns whose words and number say it: `actual_pos_J1`, `Axis 1 Torque`.

    Only if one family of columns does, and has a member for every joint.
    """
    families: dict[str, dict[int, str]] = {}
    for heading in headings:
        numbers = re.findall(r"[0-9]+", heading)
        if len(numbers) != 1 or not _is_count(numbers[0]):
            continue
        stem = heading.replace(numbers[0], "#")
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", stem)
        lowered = {word.lower() for word in words}
        if lowered & _PLAIN_WORDS[quantity] and not lowered & _OTHER_WORDS:
            families.setdefault(stem, {})[int(numbers[0])] = heading
    whole = []
    for family in families.values():
        first = min(family)
        size = len(family) if count is None else count
        if first in (0, 1) and sorted(family) == list(range(first, first + size)):
            whole.append([family[first + k] for k in range(size)])
    if len(whole) != 1:
        return {}
    return {f"{quantity}_{k}": heading for k, heading in enumerate(whole[0], 1)}


def current_columns(headings: Sequence[str], count: int) -> list[str]:
    """Columns that are the joints' currents, by their words and numbers."""
    return list(_worded(headings, "current", count or None).values())


def _meanings(heading: str) -> Iterator[_Meaning]:
    """Ways to read a heading, the likeliest first."""
    if match := _STANDARD.match(heading):
        yield _Meaning(0, _QUANTITIES[match[1]], match[2] or match[3])
    if _NOT_MEASURED.search(heading.lower()):
        return
    if match := _PREFIXED.match(heading):
        joint = match[2] or match[3] or match[4]
        yield _Meaning(1, _QUANTITIES[match[1]], joint)
    if match := _SUFFIXED.match(heading):
        yield _Meaning(2, _QUANTITIES[match[2]], match[1])
    # Paths of topics and fields: /joint_states/elbow/position, field.position0.
    parts = [part for part in re.split(r"[/.]", heading) if part]
    for i in range(len(parts) - 1, -1, -1):
        match = _INDEXED.match(parts[i].lower()) if len(parts) > 1 else None
        if match is None:
            continue
        quantity, index = _QUANTITIES[match[1]], match[2] or match[3]
        if index is not None:
            yield _Meaning(3, quantity, index)
            return
        for k in (i + 1, i - 1):
            if 0 <= k < len(parts):
                yield _Meaning(3, quantity, parts[k])
        return


def _is_count(joint: str) -> bool:
    # ASCII only: "²".isdigit() is true, and int("²") fails.
    return joint.isascii() and joint.isdigit() and len(joint) < 6


def _counted_from_zero(headings: Sequence[str]) -> set[tuple[int, str]]:
    """Forms and quantities whose numbers start at zero."""
    return {
        (meaning.form, meaning.quantity)
        for heading in headings
        for meaning in _meanings(heading)
        if _is_count(meaning.joint) and int(meaning.joint) == 0
    }


def _number(
    meaning: _Meaning,
    places: Mapping[str, int],
    zero_based: Collection[tuple[int, str]],
    heading: str,
    source: str,
    arm: Arm | None,
) -> int:
    """Number of a joint from one, in the arm's order."""
    # A name before a number: joints may be called 1, 2, 3 in another order.
    if meaning.joint in places:
        return places[meaning.joint]
    number = int(meaning.joint)
    number += (meaning.form, meaning.quantity) in zero_based
    if number < 1 or (arm is not None and number > arm.dof):
        whose = "" if arm is None else f", but {arm.name} has {arm.dof} joints: "
        whose += "" if arm is None else ", ".join(arm.coordinate_names)
        raise RecordingError(
            f'{source}: column "{heading}" is for joint {meaning.joint}{whose}.'
        )
    return number


def joint_names(headings: Sequence[str], arm: Arm | None) -> tuple[str, ...]:
    """Return the joints' names, from the arm or else from the headings."""
    return arm.coordinate_names if arm is not None else tuple(_order(headings))


def joints_of(headings: Sequence[str]) -> tuple[str, ...]:
    """Names of the joints whose positions are there, or their numbers from one."""
    named = _order(headings)
    if named:
        return tuple(named)
    columns = recognise(headings, "the log", None).columns
    count = 0
    while f"q_{count + 1}" in columns:
        count += 1
    return tuple(str(j + 1) for j in range(count))


def with_columns(
    columns_by_channel: dict[str, str],
    columns: Mapping[str, str],
    headings: Sequence[str],
    source: str,
) -> dict[str, str]:
    """Add columns the user named (`tau_3=NAME`) to those recognised."""
    for channel, heading in columns.items():
        if heading not in headings:
            shown = ", ".join(headings[:30]) + (", …" if len(headings) > 30 else "")
            raise RecordingError(
                f'{source} has no column "{heading}" for {channel}. Found: {shown}.'
            )
    return {**columns_by_channel, **columns}


def seconds_and_nanoseconds(headings: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns of stamps that are split in two, as ROS writes them."""
    lowered = {heading.lower(): heading for heading in headings}
    for name, heading in lowered.items():
        match = _SECONDS.match(name)
        if match is None or match[1].endswith("nano"):
            continue
        for ending in _NANOSECONDS:
            if match[1] + ending in lowered:
                return heading, lowered[match[1] + ending]
    return None


def _order(headings: Sequence[str]) -> list[str]:
    """Number joints by their names as the position columns first show them."""
    names: dict[int, dict[str, None]] = {}
    for heading in headings:
        meaning = next((m for m in _meanings(heading)), None)
        if meaning is None or meaning.quantity != "q":
            continue
        form = names.setdefault(meaning.form, {})
        if not _is_count(meaning.joint):
            form[meaning.joint] = None
    # Joints are written in one form; another one is likely something else.
    return list(names[min(names)]) if names else []


# Units a log may be in, and the factors to SI.

TURN = 2.0 * pi

FACTORS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0},
    "q": {
        "rad": 1.0,
        "deg": pi / 180.0,
        "°": pi / 180.0,
        "mrad": 1e-3,
        "rev": TURN,
        "m": 1.0,
        "mm": 1e-3,
        "cm": 1e-2,
    },
    "tau": {
        "Nm": 1.0,
        "N": 1.0,
        "mNm": 1e-3,
        "kN": 1e3,
        "kNm": 1e3,
        # Currents and voltages pass as they are; a mapping's scale is their constant.
        "A": 1.0,
        "mA": 1e-3,
        "V": 1.0,
        "mV": 1e-3,
    },
    "temperature": {"degC": 1.0, "°C": 1.0, "C": 1.0, "celsius": 1.0, "K": 1.0},
}
"""Quantity → unit as written, without spaces and dots → factor to SI."""


def factor(quantity: str, unit: str, where: str) -> float:
    """Return what a value in this unit is multiplied by to be in SI.

    Args:
        quantity: `time`, `q`, `qd`, `qdd`, `tau`, or a wrench component.
        unit: The unit as the log writes it; empty means SI.
        where: File and column, for the message.
    """
    kind = {"qd": "q", "qdd": "q"}.get(quantity, quantity)
    # Components of a wrench have the units of torques and forces.
    kind = kind if kind in FACTORS else "tau"
    plain = re.sub(r"[\s.·*]", "", unit).replace("N-m", "Nm")
    if quantity in ("qd", "qdd"):
        plain, divisor = _per_second(plain, quantity)
    else:
        divisor = 1.0
    if not plain:
        return 1.0
    if plain not in FACTORS[kind]:
        raise RecordingError(
            f"{where}: the unit {unit!r} is not known. Known: "
            f"{', '.join(FACTORS[kind])}. Correct it, or name another in the mapping."
        )
    return FACTORS[kind][plain] / divisor


def _per_second(unit: str, quantity: str) -> tuple[str, float]:
    """Take the time out of a rate's unit; rev/min is the one that is not per second."""
    if unit in ("rpm", "rev/min"):
        return "rev", 60.0
    # What is left is a position's unit, so that rates need no table of their own.
    ending = r"/s$" if quantity == "qd" else r"/\(?s(\^?2|²)\)?$"
    return re.sub(ending, "", unit), 1.0


_ENDINGS = {
    "s": "s", "ms": "ms", "us": "us", "ns": "ns", "deg": "deg", "rad": "rad",
    "nm": "Nm", "mnm": "mNm", "ma": "mA",
}  # fmt: skip
"""Units as they are appended to names: time_ms, q_1_deg."""


def split_unit(header: str) -> tuple[str, str]:
    """Split a heading such as `q_1 [deg]` or `time_ms` into name and unit."""
    name = header.strip()
    if name.endswith(("]", ")")):
        # By hand: a regular expression tries every bracket of a heading of thousands.
        closed = max(name.rfind("]", 0, -1), name.rfind(")", 0, -1)) + 1
        opened = name[:-1].replace("(", "[").find("[", closed)
        unit = name[opened + 1 : -1].strip()
        # The brackets of position[0] hold a number, not a unit.
        if opened >= 0 and not unit.isdigit():
            return name[:opened].rstrip(), unit
    stem, _, ending = name.rpartition("_")
    if ending.lower() in _ENDINGS:
        is_time = stem.lower() in TIME_NAMES and ending.lower()[-1] == "s"
        # A name is only cut if what is left is surely a column of a log.
        if is_time or (ending.lower()[-1] != "s" and _STANDARD.match(stem)):
            return stem, _ENDINGS[ending.lower()]
    return name, ""


def is_unit(text: str) -> bool:
    """Tell whether a cell under a heading could be a unit."""
    plain = re.sub(r"[\s.·*\[\]()]", "", text)
    plain = re.sub(r"/s(\^?2|²)?$", "", plain)
    return plain in ("", "-", "1") or any(plain in table for table in FACTORS.values())
