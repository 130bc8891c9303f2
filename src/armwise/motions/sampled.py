"""A motion given by points, and read from a file that `write_motion` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import ArgumentError
from armwise.motions.motion import MotionSample, inside
from armwise.motions.point_to_point import Polynomial
from armwise.tables import read_bounded

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.arms import Arm


_LARGEST = 1e12
"""Beyond it a position, rate or torque is damage: squares of it still are numbers."""


@dataclass(frozen=True, eq=False)
class SampledMotion:
    """A motion through points, smooth between them.

    Between two points q is the polynomial with the values given at both: of third
    order with q̇, of fifth with q̇ and q̈; a cubic spline where only q is given.

    Attributes:
        times: Of the points in [s], increasing, from 0 on.
        q: Positions in [rad] or [m].
        qd, qdd: Velocities and accelerations, where they are known.
        effort: Torques in [N m] or [N] that go with the points, if any.
    """

    times: Float[np.ndarray, " points"]
    q: Float[np.ndarray, "points dof"]
    qd: Float[np.ndarray, "points dof"] | None = None
    qdd: Float[np.ndarray, "points dof"] | None = None
    effort: Float[np.ndarray, "points dof"] | None = None

    def __post_init__(self) -> None:
        times = np.array(self.times, dtype=float)
        if times.ndim != 1 or times.size < 2 or not np.all(np.diff(times) > 0):
            raise ArgumentError("A motion needs two or more points, at rising times.")
        # Shorter than a nanosecond or longer than a year is no motion, and its rates
        # would overflow.
        if np.diff(times).min() < 1e-9 or np.ptp(times) > 3.2e7:
            raise ArgumentError("A motion's times are a nanosecond to a year apart.")
        object.__setattr__(self, "times", times - times[0])
        for name in ("q", "qd", "qdd", "effort"):
            value = getattr(self, name)
            if value is None:
                continue
            array = np.array(value, dtype=float)
            if array.ndim != 2 or len(array) != times.size or array.shape[1] < 1:
                raise ArgumentError(f"{name} needs one row for each of {times.size}.")
            if not np.all(np.abs(array) <= _LARGEST):
                row, joint = np.argwhere(~(np.abs(array) <= _LARGEST))[0] + 1
                raise ArgumentError(
                    f"{name} is not finite at point {row}, joint {joint}."
                )
            object.__setattr__(self, name, array)
        if self.qdd is not None and self.qd is None:
            raise ArgumentError("Accelerations without velocities make no motion.")

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        return float(self.times[-1])

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return int(self.q.shape[1])

    @cached_property
    def _curve(self) -> Polynomial:
        rates = [x for x in (self.qd, self.qdd) if x is not None]
        return Polynomial.meeting(self.times, self.q, *rates)

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        return self._curve.sample(t)

    def effort_at(self, t: ArrayLike) -> Float[np.ndarray, "... dof"]:
        """Return the torques at the times t in [s], straight between points."""
        if self.effort is None:
            raise ArgumentError("This motion has no torques: armwise feedforward adds.")
        times, _ = inside(t, self.duration)
        columns = [np.interp(times, self.times, x) for x in self.effort.T]
        return np.stack(columns, axis=-1)


# Reading.

_COLUMNS = {"q": "q", "qd": "qd", "qdd": "qdd", "effort": "tau"}
"""Part of a motion → how its columns of a CSV file begin."""
_FIELDS = {
    "q": "positions",
    "qd": "velocities",
    "qdd": "accelerations",
    "effort": "effort",
}
"""Part of a motion → its field of a ROS trajectory point."""


def read_motion(path: str | Path, arm: Arm) -> SampledMotion:
    """Read a planned motion of an arm.

    `.csv` has a header `time,q_1,…` with the arm's joint names or numbers, in any
    order, and may have `qd_`, `qdd_` and `tau_` as well; `.json` holds one ROS message
    of the type trajectory_msgs/JointTrajectory.

    Args:
        path: The file.
        arm: Whose motion it is.

    Raises:
        ArgumentError: Naming the file and what is wrong with it.
    """
    file = Path(path)
    readers = {".csv": _read_csv, ".json": _read_json}
    if file.suffix.lower() not in readers:
        raise ArgumentError(
            f"{file.name}: a motion is read from {', '.join(readers)}, "
            f"not {file.suffix or 'a file without ending'}."
        )
    text = read_bounded(file, ArgumentError)
    try:
        return readers[file.suffix.lower()](text.decode("utf-8"), arm)
    except ArgumentError as problem:
        raise ArgumentError(f"{file}: {problem}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        kind = "JointTrajectory" if file.suffix.lower() == ".json" else "planned motion"
        raise ArgumentError(f"{file} is not a {kind}: {problem}.") from problem


def _read_csv(text: str, arm: Arm) -> SampledMotion:
    import csv

    rows = [row for row in csv.reader(text.splitlines()) if row]
    if len(rows) < 3:
        raise ArgumentError("a motion needs a header and two or more rows.")
    header = [name.strip() for name in rows[0]]
    wrong = next((k for k, x in enumerate(rows, 1) if len(x) != len(header)), None)
    if wrong is not None:
        raise ArgumentError(f"line {wrong} has not as many values as the header.")
    values = np.array([[float(x) for x in row] for row in rows[1:]])
    table = dict(zip(header, values.T, strict=True))
    if "time" not in table:
        raise ArgumentError(f"there is no column time. Found: {', '.join(header)}.")
    parts = {
        part: _columns(table, kind, arm, part == "q") for part, kind in _COLUMNS.items()
    }
    return SampledMotion(table["time"], **parts)  # type: ignore[arg-type]


def _columns(
    table: Mapping[str, np.ndarray], kind: str, arm: Arm, is_needed: bool
) -> np.ndarray | None:
    by_name = [f"{kind}_{name}" for name in arm.coordinate_names]
    by_number = [f"{kind}_{j + 1}" for j in range(arm.dof)]
    for names in (by_name, by_number):
        present = [name for name in names if name in table]
        if len(present) == arm.dof:
            return np.stack([table[name] for name in names], axis=1)
        if present:
            missing = next(name for name in names if name not in table)
            raise ArgumentError(f"there is no column {missing}.")
    if is_needed:
        raise ArgumentError(
            f"there are no columns {', '.join(by_name)}, nor {by_number[0]} … "
            f"{by_number[-1]}. Is it a motion of {arm.name}?"
        )
    return None


def _read_json(text: str, arm: Arm) -> SampledMotion:
    message = json.loads(text)
    names, points = list(message["joint_names"]), message["points"]
    if sorted(names) != sorted(arm.coordinate_names):
        raise ArgumentError(
            f"it moves {', '.join(map(str, names))}; {arm.name} has "
            f"{', '.join(arm.coordinate_names)}."
        )
    order = [names.index(name) for name in arm.coordinate_names]
    stamps = [point["time_from_start"] for point in points]
    times = np.array([stamp["sec"] + 1e-9 * stamp["nanosec"] for stamp in stamps])
    parts = {part: _field(points, field, order) for part, field in _FIELDS.items()}
    if parts["q"] is None:
        raise ArgumentError("its points have no positions.")
    return SampledMotion(times, **parts)  # type: ignore[arg-type]


def _field(
    points: Sequence[Mapping[str, Any]], name: str, order: list[int]
) -> np.ndarray | None:
    rows = [point.get(name) or [] for point in points]
    if not any(rows):
        return None
    return np.array(rows, dtype=float)[:, order]
