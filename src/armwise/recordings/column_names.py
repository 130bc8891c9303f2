"""Names of columns: which joint and quantity a heading stands for, and its unit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import pi
from typing import TYPE_CHECKING

from armwise.errors import RecordingError
from armwise.recordings.recording import WRENCH_NAMES

if TYPE_CHECKING:
    from armwise.arms import Arm


TIME_NAMES = ("time", "t", "timestamp", "stamp", "time_s", "seconds")
"""Headings understood as time."""

_PREFIXES = {
    "q": "q",
    "qd": "qd",
    "dq": "qd",
    "qdd": "qdd",
    "ddq": "qdd",
    "tau": "tau",
    "position": "q",
    "velocity": "qd",
    "acceleration": "qdd",
    "torque": "tau",
    "effort": "tau",
}

# Longest first: q would otherwise match the beginning of qdd_1.
_JOINT_COLUMN = re.compile(
    rf"^({'|'.join(sorted(_PREFIXES, key=len, reverse=True))})(?:_(.+)|(\d+))$"
)


def standard_names(
    headings: Sequence[str], source: str, arm: Arm | None
) -> dict[str, str]:
    """Recognise the columns of the standard log: channel → heading.

    `q_1` counts joints from one in the arm's order; `q_elbow` names one. Without an
    arm, names are numbered as they appear.

    Raises:
        RecordingError: If a name or number fits no joint, or two fit the same.
    """
    columns_by_channel: dict[str, str] = {}
    order = list(arm.coordinate_names) if arm is not None else _order(headings)
    for heading in headings:
        channel = _channel(heading, order, source, arm)
        if channel is None:
            continue
        if channel in columns_by_channel:
            raise RecordingError(
                f"{source}: columns {columns_by_channel[channel]!r} and {heading!r} "
                f"both give {channel}. Remove one, or choose with "
                f"--column {channel}=NAME."
            )
        columns_by_channel[channel] = heading
    return columns_by_channel


def joint_names(headings: Sequence[str], arm: Arm | None) -> tuple[str, ...]:
    """Return the joints' names, from the arm or else from the headings."""
    return arm.coordinate_names if arm is not None else tuple(_order(headings))


def with_columns(
    columns_by_channel: dict[str, str],
    columns: Mapping[str, str],
    headings: Sequence[str],
    source: str,
) -> dict[str, str]:
    """Add columns the user named (`tau_3=NAME`) to those recognised."""
    for channel, heading in columns.items():
        if heading not in headings:
            raise RecordingError(
                f'{source} has no column "{heading}" for {channel}. '
                f"Found: {', '.join(headings)}."
            )
    return {**columns_by_channel, **columns}


def _channel(
    heading: str, order: Sequence[str], source: str, arm: Arm | None
) -> str | None:
    lowered = heading.lower()
    if lowered in TIME_NAMES:
        return "time"
    if lowered in WRENCH_NAMES:
        return lowered
    match = _JOINT_COLUMN.match(heading)
    if match is None:
        return None
    quantity, joint = _PREFIXES[match[1]], match[2] or match[3]
    # A name before a number: joints may be called 1, 2, 3 in another order.
    if joint in order:
        return f"{quantity}_{order.index(joint) + 1}"
    if joint.isdigit() and int(joint) >= 1:
        if arm is not None and int(joint) > arm.dof:
            raise RecordingError(
                f'{source}: column "{heading}" is for joint {joint}, but {arm.name} '
                f"has {arm.dof} joints: {', '.join(arm.coordinate_names)}."
            )
        return f"{quantity}_{int(joint)}"
    if arm is not None:
        raise RecordingError(
            f'{source}: column "{heading}" names no joint of {arm.name}. '
            f"Its joints: {', '.join(arm.coordinate_names)}."
        )
    return None


def _order(headings: Sequence[str]) -> list[str]:
    """Number joints by their names as the position columns first show them."""
    names: list[str] = []
    for heading in headings:
        match = _JOINT_COLUMN.match(heading)
        if match is None or _PREFIXES[match[1]] != "q" or match[2] is None:
            continue
        if not match[2].isdigit() and match[2] not in names:
            names.append(match[2])
    return names


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
        "V": 1.0,
    },
}
"""Quantity → unit as written, without spaces and dots → factor to SI."""

_BRACKETS = re.compile(r"^\s*(.*?)\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$")


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


def split_unit(header: str) -> tuple[str, str]:
    """Split a heading such as `q_1 [deg]` into name and unit."""
    match = _BRACKETS.match(header)
    return (match[1], match[2]) if match else (header.strip(), "")


def is_unit(text: str) -> bool:
    """Tell whether a cell under a heading could be a unit."""
    plain = re.sub(r"[\s.·*\[\]()]", "", text)
    plain = re.sub(r"/s(\^?2|²)?$", "", plain)
    return plain in ("", "-", "1") or any(plain in table for table in FACTORS.values())
