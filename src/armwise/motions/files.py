"""Planned motions as files, CSV and ROS JointTrajectory, written and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Listed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import ArgumentError
from armwise.files import write_atomically
from armwise.motions.motion import MotionSample, Sequence, inside, require_positive
from armwise.motions.point_to_point import Polynomial, Quintic
from armwise.tables import read_bounded

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.arms import Arm
    from armwise.motions.motion import Motion


def write_motion(
    motion: Motion,
    path: str | Path,
    rate_hz: float = 100.0,
    joint_names: Listed[str] | None = None,
    effort: Mapping[str, Callable[[np.ndarray], np.ndarray]] | None = None,
) -> Path:
    """Write a motion, sampled, for another program to follow.

    `.csv` has the columns time, q_1 …, qd_1 …, qdd_1 …; `.json`, `.yaml` and `.yml`
    hold one ROS message of the type trajectory_msgs/JointTrajectory.

    Args:
        motion: What is planned.
        path: Where to; the ending chooses the format.
        rate_hz: Points per second; the end of the motion is always written.
        joint_names: One per joint; 1, 2, … (CSV) or joint_1, … (ROS) when not given.
        effort: Further columns as functions of the times in [s], which return one row
            each: "tau" in [N m] or [N] fills `effort` of a ROS message; CSV takes any
            name, such as "tau_std".

    Returns:
        The path written.
    """
    path = Path(path)
    writers = {".csv": _csv, ".json": _json, ".yaml": _yaml, ".yml": _yaml}
    if path.suffix.lower() not in writers:
        raise ArgumentError(
            f"{path.name}: a motion is written as {', '.join(writers)}, "
            f"not {path.suffix or 'a file without ending'}."
        )
    if joint_names is not None and len(joint_names) != motion.dof:
        raise ArgumentError(
            f"{len(joint_names)} joint names for a motion of {motion.dof} joints."
        )
    step = 1.0 / require_positive(rate_hz, "rate_hz")
    times = np.arange(0.0, motion.duration - 0.5 * step, step)
    times = np.append(times, motion.duration)
    columns = dict(motion.sample(times)._asdict())
    columns |= {name: values(times) for name, values in (effort or {}).items()}
    text = writers[path.suffix.lower()](times, columns, joint_names)
    write_atomically(path, text)
    return path


Table = Mapping[str, np.ndarray]


def _csv(times: np.ndarray, columns: Table, names: Listed[str] | None) -> str:
    ends = names or [str(j + 1) for j in range(columns["q"].shape[1])]
    header = ["time"] + [f"{kind}_{end}" for kind in columns for end in ends]
    table = np.column_stack([times, *columns.values()]).tolist()
    rows = (",".join(map(repr, row)) for row in table)
    return "\n".join([",".join(header), *rows]) + "\n"


_FIELDS = {
    "q": "positions",
    "qd": "velocities",
    "qdd": "accelerations",
    "tau": "effort",
}
"""Quantity → its field of a ROS trajectory point."""


def _message(
    times: np.ndarray, columns: Table, names: Listed[str] | None
) -> dict[str, Any]:
    points = [
        {
            **{
                name: columns[kind][k].tolist() if kind in columns else []
                for kind, name in _FIELDS.items()
            },
            "time_from_start": _stamp(float(t)),
        }
        for k, t in enumerate(times)
    ]
    default = [f"joint_{j + 1}" for j in range(columns["q"].shape[1])]
    return {
        "header": {"stamp": _stamp(0.0), "frame_id": ""},
        "joint_names": list(names or default),
        "points": points,
    }


def _stamp(seconds: float) -> dict[str, int]:
    total = round(seconds * 1e9)
    return {"sec": total // 10**9, "nanosec": total % 10**9}


def _json(times: np.ndarray, columns: Table, names: Listed[str] | None) -> str:
    return json.dumps(_message(times, columns, names), indent=1) + "\n"


def _yaml(times: np.ndarray, columns: Table, names: Listed[str] | None) -> str:
    message = _message(times, columns, names)
    # Strings and number lists in JSON's spelling are YAML's flow style as well.
    lines = ["header:", "  stamp: {sec: 0, nanosec: 0}", '  frame_id: ""']
    lines += [f"joint_names: {json.dumps(message['joint_names'])}", "points:"]
    for point in message["points"]:
        stamp = point.pop("time_from_start")
        keys = [f"{key}: {json.dumps(value)}" for key, value in point.items()]
        keys.append(
            f"time_from_start: {{sec: {stamp['sec']}, nanosec: {stamp['nanosec']}}}"
        )
        lines += [("- " if i == 0 else "  ") + key for i, key in enumerate(keys)]
    return "\n".join(lines) + "\n"


# A slow way to the start of a motion.


def with_approach(motion: Motion, arm: Arm) -> Motion:
    """Return a motion that begins at rest where the arm is described.

    A slow approach to its start comes first; none where the arm is there already.
    """
    start, home = motion.sample(0.0).q, arm.rest
    way = np.abs(start - home)
    # Below a tenth of a milliradian it is there.
    if way.max(initial=0.0) < 1e-4:
        return motion
    # Judgement: a third of the limits, and 0.5 rad/s, as one drives a new arm.
    speed = np.minimum(arm.limits("velocity") / 3, 0.5)
    acceleration = np.minimum(arm.limits("acceleration") / 3, 2.0)
    # A quintic's largest speed is 1.875 way / T, its acceleration 5.77 way / T².
    duration = max(
        float(np.max(1.875 * way / speed)),
        float(np.sqrt(np.max(5.774 * way / acceleration))),
        1.0,
    )
    return Sequence((Quintic(home, start, duration), motion))


# Check of a motion against the arm's limits.

_BLOCK = 65_536
_TOLERANCE = 1e-9


def check_limits(motion: Motion, arm: Arm, rate_hz: float = 1000.0) -> None:
    """Make sure that a motion stays within the arm's joint limits on a fine grid.

    Position, velocity and acceleration; effort needs the dynamics and is not judged
    here. Limits that the description leaves out are infinite.

    Args:
        motion: What is planned.
        arm: Whose limits hold.
        rate_hz: Points per second; the end of the motion is always among them.

    Raises:
        ArgumentError: Naming the joint, the time and the value furthest outside.
    """
    if motion.dof != arm.dof:
        raise ArgumentError(
            f"The motion moves {motion.dof} joints; {arm.name} has {arm.dof}."
        )
    count = int(np.ceil(motion.duration * rate_hz)) + 1
    times = np.linspace(0.0, motion.duration, max(count, 2))
    for begin in range(0, count, _BLOCK):
        _check_block(motion, arm, times[begin : begin + _BLOCK])


def _check_block(motion: Motion, arm: Arm, times: np.ndarray) -> None:
    q, qd, qdd = motion.sample(times)
    bounds = {
        "position": (q, arm.limits("lower"), arm.limits("upper")),
        "velocity": (qd, -arm.limits("velocity"), arm.limits("velocity")),
        "acceleration": (qdd, -arm.limits("acceleration"), arm.limits("acceleration")),
    }
    for what, (values, lower, upper) in bounds.items():
        slack = _TOLERANCE * (1.0 + np.abs(values))
        excess = np.maximum(values - upper, lower - values) - slack
        k, j = np.unravel_index(np.argmax(excess), excess.shape)
        if excess[k, j] > 0:
            bound = upper[j] if values[k, j] > upper[j] else lower[j]
            raise ArgumentError(
                f"Joint {arm.coordinate_names[j]!r} has the {what} "
                f"{values[k, j]:.6g} {_unit(arm, int(j), what)} at t = {times[k]:.4f} s"
                f", beyond its limit {bound:.6g}. Move less far or more slowly."
            )


def _unit(arm: Arm, j: int, what: str) -> str:
    length = "rad" if arm.joints[arm.coordinates[j]].is_revolute else "m"
    return length + {"position": "", "velocity": "/s", "acceleration": "/s²"}[what]


# A motion given by points, and read from a file that `write_motion` wrote.

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
    parts = {
        part: _field(points, _FIELDS[kind], order) for part, kind in _COLUMNS.items()
    }
    if parts["q"] is None:
        raise ArgumentError("its points have no positions.")
    return SampledMotion(times, **parts)  # type: ignore[arg-type]


def _field(
    points: Listed[Mapping[str, Any]], name: str, order: list[int]
) -> np.ndarray | None:
    rows = [point.get(name) or [] for point in points]
    if not any(rows):
        return None
    return np.array(rows, dtype=float)[:, order]
