"""LeRobot's logs: Parquet files of actions and states, in degrees or normalised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError, RecordingError
from armwise.recordings import Channel, Recording
from armwise.tables import read_json

_COLUMNS = ("action", "observation.state")
_TICKS = 4096
"""Ticks of a turn of the servos LeRobot's calibrations speak of."""


def is_lerobot(path: str | Path) -> bool:
    """Tell whether a file is a Parquet table with LeRobot's columns."""
    file = Path(path)
    if file.suffix.lower() not in (".parquet", ".pq") or not file.is_file():
        return False
    import polars as pl

    try:
        names = pl.scan_parquet(file).collect_schema().names()
    # A damaged file is for the reader of logs to refuse.
    except (pl.exceptions.PolarsError, OSError):
        return False
    return all(name in names for name in _COLUMNS)


def read_lerobot(
    path: str | Path, arm: Arm, calibration: str | Path | None = None
) -> list[Recording]:
    """Read the episodes of a LeRobot file as recordings in radians.

    Args:
        path: Parquet with `action`, `observation.state`, and `timestamp`.
        arm: Whose joints the values are, in order.
        calibration: LeRobot's JSON of the servos' ranges: values are then −100 … 100,
            the gripper's 0 … 100. Without it values are degrees, or radians if none
            exceeds a turn in radians.

    Raises:
        RecordingError: If the file or its columns cannot be used.
    """
    import polars as pl

    file = Path(path)
    try:
        frame = pl.read_parquet(file)
        blocks = {
            name: np.asarray(frame[name].to_list(), dtype=float) for name in _COLUMNS
        }
    except (pl.exceptions.PolarsError, OSError, ValueError, TypeError) as problem:
        raise RecordingError(
            f"{file} cannot be read as a LeRobot file: {problem}."
        ) from None
    shapes = {block.shape for block in blocks.values()}
    if shapes != {(len(frame), arm.dof)}:
        raise RecordingError(
            f"{file} has values of shape {sorted(shapes)} for the {arm.dof} joints of "
            f"{arm.name}. Lock the joints it does not log, or choose its arm."
        )
    if "timestamp" not in frame.columns:
        raise RecordingError(f"{file} has no column 'timestamp' in seconds.")
    time = frame["timestamp"].to_numpy().astype(float)
    unit = "normalised to the ranges of the calibration"
    if calibration is not None:
        ranges = _ranges(Path(calibration), arm)
        farthest = float(np.nanmax(np.abs(blocks["observation.state"])))
        # LeRobot clips what it normalises; a hundredth more is rounding.
        if farthest > 101.0:
            raise RecordingError(
                f"{file} holds {farthest:.0f}, beyond −100 … 100: its values are not "
                "normalised but degrees. Leave --calibration out."
            )
        blocks = {name: _radians(block, ranges) for name, block in blocks.items()}
    elif float(np.nanmax(np.abs(blocks["observation.state"]))) > 2.0 * np.pi:
        blocks = {name: np.radians(block) for name, block in blocks.items()}
        unit = "degrees; LeRobot's −100 … 100 ask for --calibration"
    else:
        unit = "radians, for none exceeds a turn"
    episodes = np.zeros(len(frame))
    if "episode_index" in frame.columns:
        episodes = frame["episode_index"].to_numpy()
    return [
        _episode(file, time, blocks, episodes == number, number, unit)
        for number in np.unique(episodes)
    ]


def _episode(
    file: Path,
    time: np.ndarray,
    blocks: dict[str, np.ndarray],
    rows: np.ndarray,
    number: float,
    unit: str,
) -> Recording:
    stamps = time[rows]
    extra = {
        f"command_{j + 1}": Channel(stamps, column)
        for j, column in enumerate(blocks["action"][rows].T)
    }
    recording = Recording.from_arrays(
        stamps,
        q=blocks["observation.state"][rows],
        extra=extra,
        source=f"{file.name}#{int(number)}" if not rows.all() else str(file),
    )
    return replace(recording, notes=(f"Values are taken as {unit}.",))


def _ranges(path: Path, arm: Arm) -> list[tuple[float, float, bool]]:
    """Return lowest and highest tick of every joint, and whether it is a gripper."""
    table = read_json(path, "LeRobot's calibration", error_type=ArgumentError)
    ranges = []
    for joint in arm.joints:
        entry: Any = table.get(joint.name)
        try:
            low, high = float(entry["range_min"]), float(entry["range_max"])
        except (TypeError, KeyError, ValueError):
            raise ArgumentError(
                f"{path} has no range_min and range_max of {joint.name!r}. It has: "
                f"{', '.join(table)}."
            ) from None
        if not 0.0 <= low < high <= _TICKS:
            raise ArgumentError(
                f"{path}: the range of {joint.name!r}, {low:g} … {high:g}, is not one "
                f"of ticks from 0 to {_TICKS}."
            )
        ranges.append((low, high, "gripper" in joint.name.lower()))
    return ranges


def _radians(values: np.ndarray, ranges: list[tuple[float, float, bool]]) -> np.ndarray:
    columns = []
    for column, (low, high, is_gripper) in zip(values.T, ranges, strict=True):
        fraction = column / 100.0 if is_gripper else (column / 100.0 + 1.0) / 2.0
        ticks = low + fraction * (high - low) - 0.5 * (low + high)
        columns.append(ticks * 2.0 * np.pi / _TICKS)
    return np.column_stack(columns)
