"""Units a log may be in, and the factors to SI."""

from __future__ import annotations

import re
from math import pi

from armwise.errors import RecordingError

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
