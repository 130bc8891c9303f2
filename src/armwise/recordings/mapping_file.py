"""Reading the TOML file that describes a foreign log."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.mapping import (
    BagMapping,
    LogMapping,
    PhaseMapping,
    SignalMapping,
    TimeMapping,
    TopicChannel,
)

SIGNALS = {
    "position": "q",
    "velocity": "qd",
    "acceleration": "qdd",
    "torque": "tau",
    "wrench": "wrench",
}
"""Name of a table in the file → the quantity it describes."""

_TOP = ("joints", "time", *SIGNALS, "phases", "transmission", "bag", "motors", "csv")


@dataclass(frozen=True)
class _Part:
    """One table of the file, and where it stands."""

    where: str
    values: dict[str, Any]

    def error(self, problem: str) -> RecordingError:
        return RecordingError(f"{self.where}: {problem}")

    def only(self, *known: str) -> None:
        for key in self.values:
            if key not in known:
                raise self.error(f"unknown key {key!r}. Known: {', '.join(known)}.")

    def part(self, key: str) -> _Part:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f"{key} must be a table [{key}], not {value!r}.")
        return _Part(f"{self.where}, [{key}]", value)

    def parts(self, key: str) -> list[_Part]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(x, dict) for x in value):
            raise self.error(f"{key} must be tables [[{key}]], not {value!r}.")
        return [
            _Part(f"{self.where}, [[{key}]] {i}", x) for i, x in enumerate(value, 1)
        ]

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{key} must be text, not {value!r}.")
        return value

    def choice(self, key: str, *known: str) -> str:
        value = self.text(key, known[0])
        if value not in known:
            raise self.error(f"{key} must be one of {', '.join(known)}, not {value!r}.")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        value = [value] if isinstance(value, str | int) else value
        if not isinstance(value, list) or not all(
            isinstance(x, str | int) for x in value
        ):
            raise self.error(f"{key} must be names or numbers of columns.")
        return tuple(str(x) for x in value)

    def numbers(self, key: str, default: float | None) -> tuple[float, ...]:
        value = self.values.get(key, default)
        if value is None:
            raise self.error(f"{key} is missing.")
        value = value if isinstance(value, list) else [value]
        if not all(_is_number(x) for x in value):
            raise self.error(f"{key} must be finite numbers, not {value!r}.")
        return tuple(float(x) for x in value)


def load_mapping(path: str | Path) -> LogMapping:
    """Read the description of a foreign log.

    Raises:
        RecordingError: If the file cannot be read, or a key or value makes no sense.
    """
    file = Path(path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordingError(f"{file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecordingError(f"{file} is not a TOML file: {error}.") from None
    return _mapping(_Part(str(file), values))


def _mapping(top: _Part) -> LogMapping:
    top.only(*_TOP, "channels")
    csv = top.part("csv")
    csv.only("separator")
    joints = top.values.get("joints")
    count = joints if isinstance(joints, int) else 0
    mapping = LogMapping(
        source=top.where,
        joints=() if count else top.names("joints"),
        count=count,
        time=_time(top.part("time")),
        signals={
            quantity: _signal(top.part(name))
            for name, quantity in SIGNALS.items()
            if name in top.values
        },
        phases=_phases(top.part("phases")) if "phases" in top.values else None,
        gears=_gears(top.part("transmission")),
        bag=_bag(top.part("bag")),
        motors=dict(_motor(part) for part in top.parts("motors")),
        channels={k: top.part("channels").text(k) for k in top.part("channels").values},
        separator=csv.text("separator"),
    )
    motors = any(signal.at == "motor" for signal in mapping.signals.values())
    if motors and mapping.gears is None:
        raise top.error("signals at the motor need a [transmission] with gears.")
    return mapping


def _time(part: _Part) -> TimeMapping:
    part.only("column", "file", "unit", "rate_hz")
    rate = part.numbers("rate_hz", 0.0)[0]
    if "rate_hz" in part.values and rate <= 0.0:
        raise part.error(f"rate_hz must be positive, not {rate:g}.")
    columns = part.names("column")
    return TimeMapping(
        columns[0] if columns else "",
        part.text("file"),
        part.text("unit"),
        rate or None,
    )


def _signal(part: _Part) -> SignalMapping:
    part.only(
        "columns", "file", "unit", "scale", "scale_from", "offset", "at", "layout"
    )
    return SignalMapping(
        columns=part.names("columns"),
        file=part.text("file"),
        unit=part.text("unit"),
        scale=part.numbers("scale", 1.0),
        scale_from=part.text("scale_from"),
        offset=part.numbers("offset", 0.0),
        at=cast('Literal["joint", "motor"]', part.choice("at", "joint", "motor")),
        layout=cast(
            'Literal["columns", "numbers"]', part.choice("layout", "columns", "numbers")
        ),
    )


def _phases(part: _Part) -> PhaseMapping:
    part.only("columns", "constants", "pole_pairs", "angle_offsets", "at")
    columns = part.values.get("columns", [])
    triples = [tuple(map(str, row)) for row in columns if isinstance(row, list)]
    if not triples or any(len(row) != 3 for row in triples):
        raise part.error("columns must be three names per joint: [[a, b, c], …].")
    return PhaseMapping(
        columns=cast("tuple[tuple[str, str, str], ...]", tuple(triples)),
        constants=part.numbers("constants", None),
        pole_pairs=part.numbers("pole_pairs", 1.0),
        angle_offsets=part.numbers("angle_offsets", 0.0),
        at=cast('Literal["joint", "motor"]', part.choice("at", "motor", "joint")),
    )


def _gears(part: _Part) -> np.ndarray | None:
    part.only("gears", "couplings", "matrix")
    if not part.values:
        return None
    if "matrix" in part.values:
        matrix = np.array(part.values["matrix"], dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise part.error("matrix must be square: motor = matrix · joint.")
    else:
        matrix = np.diag(part.numbers("gears", None))
    for extra in part.parts("couplings"):
        extra.only("motor", "joint", "ratio")
        motor, joint = (int(extra.numbers(k, None)[0]) for k in ("motor", "joint"))
        if not (1 <= motor <= len(matrix) and 1 <= joint <= len(matrix)):
            raise extra.error(f"motor and joint are numbers from 1 to {len(matrix)}.")
        matrix[motor - 1, joint - 1] = extra.numbers("ratio", None)[0]
    if abs(np.linalg.det(matrix)) < 1e-12:
        raise part.error("the gears are singular: a joint moves no motor.")
    return matrix


def _bag(part: _Part) -> BagMapping:
    part.only("joint_states", "wrench", "stamps", "channels")
    channels = []
    for extra in part.parts("channels"):
        extra.only("topic", "field", "channel", "unit")
        named = [extra.text(key) for key in ("topic", "field", "channel", "unit")]
        if not all(named[:3]):
            raise extra.error("topic, field and channel are all needed.")
        channels.append(TopicChannel(*named))
    stamps = part.choice("stamps", "header", "received")
    return BagMapping(
        part.text("joint_states"),
        part.text("wrench"),
        cast('Literal["header", "received"]', stamps),
        tuple(channels),
    )


def _motor(part: _Part) -> tuple[str, dict[str, float]]:
    part.only("name", "joints")
    joints = part.part("joints")
    weights = {name: joints.numbers(name, None)[0] for name in joints.values}
    if not part.text("name") or not weights:
        raise part.error("a motor needs a name and joints = { joint = weight, … }.")
    return part.text("name"), weights


def _is_number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(cast(float, value))
