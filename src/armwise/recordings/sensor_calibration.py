"""Calibration files: what joint sensors say, in joint angles (θ = α s + β)."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.recording import Channel, Recording

_UNITS = {"": 1.0, "_deg": float(np.pi / 180.0)}


@dataclass(frozen=True)
class SensorCalibration:
    """Gains and offsets of an arm's joint sensors.

    Attributes:
        joint_names: The joints, in order.
        alpha: α in [rad] or [m] per unit of the sensor.
        beta: β in [rad] or [m].
        source: The file it came from, for messages.
    """

    joint_names: tuple[str, ...]
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    source: str = "calibration"

    def applied(self, recording: Recording) -> Recording:
        """Return the recording with positions (and velocities) in joint angles.

        Positions come from `volts_1 …` where they are, else from `q_1 …`; velocities
        measured in the sensor's own units go along with the latter.
        """
        sensor = "volts" if recording.count("volts") else "q"
        if recording.count(sensor) != len(self.alpha):
            raise RecordingError(
                f"{self.source} is for {len(self.alpha)} joints, but "
                f"{recording.source} has readings of {recording.count(sensor)}."
            )
        names = recording.joint_names
        if names and self.joint_names and names != self.joint_names:
            raise RecordingError(
                f"{self.source} is for {', '.join(self.joint_names)}, but "
                f"{recording.source} has {', '.join(names)}."
            )
        channels: dict[str, Channel] = {}
        for j, (alpha, beta) in enumerate(zip(self.alpha, self.beta, strict=True)):
            raw = recording[f"{sensor}_{j + 1}"]
            channels[f"q_{j + 1}"] = Channel(raw.time, alpha * raw.values + beta, "rad")
            if sensor == "q" and f"qd_{j + 1}" in recording:
                speed = recording[f"qd_{j + 1}"]
                channels[f"qd_{j + 1}"] = replace(speed, values=alpha * speed.values)
        note = f"Positions calibrated by {self.source}."
        calibrated = recording.with_channels(channels)
        return replace(calibrated, notes=(*recording.notes, note))


def read_calibration(path: str | Path) -> SensorCalibration:
    """Read a calibration file: `[[joint]]` tables with name, alpha, beta.

    Raises:
        RecordingError: Naming the file, the joint and the remedy.
    """
    place = Path(path)
    try:
        tables = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as problem:
        raise RecordingError(f"{place}: {problem.strerror or problem}.") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise RecordingError(f"{place} is not TOML: {problem}.") from problem
    rows = tables.get("joint")
    if not isinstance(rows, list) or not rows:
        raise RecordingError(
            f"{place} has no [[joint]] tables. Write one for each joint, with name, "
            "alpha and beta."
        )
    names = tuple(str(row.get("name", "")) for row in rows)
    alpha = tuple(_number(place, i, row, "alpha") for i, row in enumerate(rows, 1))
    beta = tuple(_number(place, i, row, "beta") for i, row in enumerate(rows, 1))
    if 0.0 in alpha:
        raise RecordingError(
            f"{place}, joint {alpha.index(0.0) + 1}: a gain of zero moves nothing."
        )
    return SensorCalibration(names if all(names) else (), alpha, beta, str(place))


def write_calibration(calibration: SensorCalibration, path: str | Path) -> Path:
    """Write a calibration file, whole or not at all.

    Raises:
        RecordingError: If it cannot be written.
    """
    place = Path(path)
    lines = ["# Joint sensors: angle = alpha * reading + beta, in radians.\n"]
    names = calibration.joint_names or ("",) * len(calibration.alpha)
    for name, alpha, beta in zip(
        names, calibration.alpha, calibration.beta, strict=True
    ):
        title = f"name = {_quoted(name)}\n" if name else ""
        lines.append(f"\n[[joint]]\n{title}alpha = {alpha!r}\nbeta = {beta!r}\n")
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        temporary.write_text("".join(lines), encoding="utf-8")
        os.replace(temporary, place)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        reason = problem.strerror or problem
        raise RecordingError(f"{place} cannot be written: {reason}.") from problem
    return place


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(place: Path, i: int, row: dict[str, Any], key: str) -> float:
    for suffix, unit in _UNITS.items():
        value = row.get(key + suffix)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RecordingError(
                f"{place}, joint {i}: {key}{suffix} must be a number, not {value!r}."
            )
        if not np.isfinite(value):
            raise RecordingError(f"{place}, joint {i}: {key}{suffix} is not finite.")
        return float(value) * unit
    raise RecordingError(
        f"{place}, joint {i} has no {key} (in radians) nor {key}_deg (in degrees)."
    )
