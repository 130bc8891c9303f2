"""Calibration files of joint sensors: angle = α · reading + β."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from armwise.errors import RecordingError
from armwise.files import write_atomically
from armwise.recordings.recording import Channel, Recording
from armwise.tables import read_toml


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
            # Only a velocity of the same sensor has its units; an offset has no
            # derivative.
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
    table = read_toml(Path(path), error_type=RecordingError)
    rows = list(table.tables("joint"))
    if not rows:
        raise RecordingError(
            f"{path} has no [[joint]] tables. Write one for each joint, with name, "
            "alpha and beta."
        )
    names = tuple(row.text("name", "") for row in rows)
    alpha = tuple(row.angle("alpha") for row in rows)
    beta = tuple(row.angle("beta") for row in rows)
    if 0.0 in alpha:
        raise rows[alpha.index(0.0)].error("has a gain of zero, which moves nothing.")
    return SensorCalibration(names if all(names) else (), alpha, beta, str(path))


def write_calibration(calibration: SensorCalibration, path: str | Path) -> Path:
    """Write a calibration file, whole or not at all.

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
        lines.append(f"\n[[joint]]\n{title}alpha = {alpha!r}\nbeta = {beta!r}\n")
    write_atomically(file, "".join(lines))
    return file


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
