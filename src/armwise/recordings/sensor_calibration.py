"""Calibration files of joint sensors: angle = α · reading + β."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path

from armwise.errors import RecordingError
from armwise.files import write_atomically
from armwise.recordings.recording import Channel, Recording
from armwise.tables import TomlTable, read_toml


@dataclass(frozen=True)
class SensorCalibration:
    """Gains and offsets of an arm's joint sensors.

    Attributes:
        joint_names: The joints, in order.
        alpha: α in [rad] or [m] per unit of the sensor; NaN where unknown.
        beta: β in [rad] or [m]; NaN where unknown.
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
        self._check_known(recording.source)
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
            # Only a velocity of the same sensor has its units; an offset has no
            # derivative.
            if sensor == "q" and f"qd_{j + 1}" in recording:
                speed = recording[f"qd_{j + 1}"]
                channels[f"qd_{j + 1}"] = replace(speed, values=alpha * speed.values)
        note = f"Positions calibrated by {self.source}."
        calibrated = recording.with_channels(channels)
        return replace(calibrated, notes=(*recording.notes, note))

    def _check_known(self, target: str) -> None:
        """Refuse to guess what a calibration left open."""
        for k, numbers in (("alpha", self.alpha), ("beta", self.beta)):
            for j, value in enumerate(numbers):
                if isnan(value):
                    name = self.joint_names[j] if self.joint_names else f"joint {j + 1}"
                    raise RecordingError(
                        f"{self.source}: {k} of {name} is unknown, so that {target} "
                        "cannot be turned into angles. Measure it and write it there; "
                        "an offset about a vertical axis may be any number as far as "
                        "torques go."
                    )


def read_calibration(path: str | Path) -> SensorCalibration:
    """Read a calibration file: `[[joint]]` tables with name, alpha, beta.

    A number that nobody knows is written `alpha = "unknown"`.

    Raises:
        RecordingError: Naming the file, the joint and the remedy.
    """
    table = read_toml(Path(path), error_type=RecordingError)
    rows = list(table.tables("joint"))
    if not rows:
        raise RecordingError(
            f"{path} has no [[joint]] tables. Write one for each joint, with name, "
            "alpha and beta."
        )
    names = tuple(row.text("name", "") for row in rows)
    alpha = tuple(_number(row, "alpha") for row in rows)
    beta = tuple(_number(row, "beta") for row in rows)
    if 0.0 in alpha:
        raise rows[alpha.index(0.0)].error("has a gain of zero, which moves nothing.")
    return SensorCalibration(names if all(names) else (), alpha, beta, str(path))


def _number(row: TomlTable, key: str) -> float:
    return nan if row.values.get(key) == _UNKNOWN else row.angle(key)


_UNKNOWN = "unknown"
"""What stands in a file for a number that nobody knows."""


def write_calibration(
    calibration: SensorCalibration,
    path: str | Path,
    reasons: Mapping[str, str] | None = None,
) -> Path:
    """Write a calibration file, whole or not at all.

    Args:
        calibration: What to write.
        path: The file.
        reasons: Why numbers are unknown, by names such as `joint_1.offset`; they
            become comments.

    Raises:
        FileError: If it cannot be written.
    """
    file = Path(path)
    lines = ["# Joint sensors: angle = alpha * reading + beta, in radians.\n"]
    names = calibration.joint_names or ("",) * len(calibration.alpha)
    for name, alpha, beta in zip(
        names, calibration.alpha, calibration.beta, strict=True
    ):
        title = f"name = {_quoted(name)}\n" if name else ""
        lines.append(f"\n[[joint]]\n{title}")
        for key, quantity, value in (
            ("alpha", "gain", alpha),
            ("beta", "offset", beta),
        ):
            reason = (reasons or {}).get(f"{name}.{quantity}", "")
            comment = f"  # {reason}" if reason and isnan(value) else ""
            text = _quoted(_UNKNOWN) if isnan(value) else repr(value)
            lines.append(f"{key} = {text}{comment}\n")
    write_atomically(file, "".join(lines))
    return file


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
