"""Planned motions as files, CSV and ROS JointTrajectory; their approach and limits."""

from __future__ import annotations

import json
from collections.abc import Sequence as Listed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import ArgumentError
from armwise.files import write_atomically
from armwise.motions.motion import MotionSample, Sequence, require_positive
from armwise.motions.point_to_point import Polynomial, Quintic
from armwise.tables import read_bounded

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.motions.motion import Motion


def write_motion(
    motion: Motion,
    path: str | Path,
    rate_hz: float = 100.0,
    joint_names: Listed[str] | None = None,
) -> Path:
    """Write a motion, sampled, for another program to follow.

    `.csv` has the columns time, q_1 …, qd_1 …, qdd_1 …; `.json`, `.yaml` and `.yml`
    hold one ROS message of the type trajectory_msgs/JointTrajectory.

    Args:
        motion: What is planned.
        path: Where to; the ending chooses the format.
        rate_hz: Points per second; the end of the motion is always written.
        joint_names: One per joint; 1, 2, … (CSV) or joint_1, … (ROS) when not given.

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
    text = writers[path.suffix.lower()](times, motion.sample(times), joint_names)
    write_atomically(path, text)
    return path


def _csv(times: np.ndarray, sample: MotionSample, names: Listed[str] | None) -> str:
    dof = sample.q.shape[1]
    ends = names or [str(j + 1) for j in range(dof)]
    header = ["time"] + [f"{kind}_{end}" for kind in sample._fields for end in ends]
    table = np.column_stack([times, *sample]).tolist()
    rows = (",".join(map(repr, row)) for row in table)
    return "\n".join([",".join(header), *rows]) + "\n"


def _message(
    times: np.ndarray, sample: MotionSample, names: Listed[str] | None
) -> dict[str, Any]:
    columns = ("positions", "velocities", "accelerations")
    points = [
        {
            **{
                name: values[k].tolist()
                for name, values in zip(columns, sample, strict=True)
            },
            "effort": [],
            "time_from_start": _stamp(float(t)),
        }
        for k, t in enumerate(times)
    ]
    default = [f"joint_{j + 1}" for j in range(sample.q.shape[1])]
    return {
        "header": {"stamp": _stamp(0.0), "frame_id": ""},
        "joint_names": list(names or default),
        "points": points,
    }


def _stamp(seconds: float) -> dict[str, int]:
    total = round(seconds * 1e9)
    return {"sec": total // 10**9, "nanosec": total % 10**9}


def _json(times: np.ndarray, sample: MotionSample, names: Listed[str] | None) -> str:
    return json.dumps(_message(times, sample, names), indent=1) + "\n"


def _yaml(times: np.ndarray, sample: MotionSample, names: Listed[str] | None) -> str:
    message = _message(times, sample, names)
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


# Motions read back from files.


def read_motion(path: str | Path, arm: Arm) -> Polynomial:
    """Read a motion that `write_motion`, or another program, wrote for an arm.

    `.csv` has a column time [s], and q_… for every joint, by name or number; qd_… and
    qdd_… if it has them for all. `.json` holds a ROS JointTrajectory. Between the
    points the motion is the polynomial that meets all that is given.

    Raises:
        ArgumentError: If joints are missing, or times do not rise.
    """
    file = Path(path)
    if file.suffix.lower() == ".csv":
        times, columns = _read_csv(file, arm)
    elif file.suffix.lower() == ".json":
        times, columns = _read_json(file, arm)
    else:
        raise ArgumentError(f"{file.name}: a motion is read from .csv or .json.")
    if len(times) < 2 or np.any(np.diff(times) <= 0):
        raise ArgumentError(f"{file}: a motion needs two points, and times that rise.")
    if not all(np.all(np.isfinite(x)) for x in (times, *columns)):
        raise ArgumentError(f"{file}: a number of the motion is not finite.")
    return Polynomial.meeting(times - times[0], *columns)


def _read_csv(path: Path, arm: Arm) -> tuple[np.ndarray, list[np.ndarray]]:
    lines = read_bounded(path, ArgumentError).decode(errors="replace").splitlines()
    header = [name.strip() for name in lines[0].split(",")] if lines else []
    rows = [line for line in lines[1:] if line.strip()]
    try:
        table = np.array([line.split(",") for line in rows], dtype=float)
    except ValueError as problem:
        raise ArgumentError(f"{path}: not a table of numbers ({problem}).") from None
    if table.ndim != 2 or table.shape[1] != len(header) or "time" not in header:
        raise ArgumentError(f"{path}: a motion needs columns time, q_1, q_2, ….")
    columns = []
    for kind in MotionSample._fields:
        names = [f"{kind}_{name}" for name in arm.coordinate_names]
        if not set(names) <= set(header):
            names = [f"{kind}_{j + 1}" for j in range(arm.dof)]
        if set(names) <= set(header):
            columns.append(table[:, [header.index(name) for name in names]])
        else:
            break
    if not columns:
        raise ArgumentError(
            f"{path} has no position for each joint of {arm.name}: "
            f"{', '.join(arm.coordinate_names)}. Found: {', '.join(header[:20])}."
        )
    return table[:, header.index("time")], columns


def _read_json(path: Path, arm: Arm) -> tuple[np.ndarray, list[np.ndarray]]:
    try:
        message = json.loads(read_bounded(path, ArgumentError))
        names, points = list(message["joint_names"]), message["points"]
        stamps = [point["time_from_start"] for point in points]
        times = np.array([t["sec"] + 1e-9 * t["nanosec"] for t in stamps], dtype=float)
        kinds = ("positions", "velocities", "accelerations")
        whole = [k for k in kinds if all(point.get(k) for point in points)]
        columns = [np.array([p[k] for p in points], dtype=float) for k in whole]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ArgumentError(f"{path} is no JointTrajectory in JSON.") from None
    if not columns or any(x.shape[1:] != (len(names),) for x in columns):
        raise ArgumentError(f"{path}: every point needs one position per joint.")
    if missing := [name for name in arm.coordinate_names if name not in names]:
        raise ArgumentError(f"{path} does not move {missing[0]!r} of {arm.name}.")
    order = [names.index(name) for name in arm.coordinate_names]
    return times, [column[:, order] for column in columns]


def with_approach(motion: Motion, arm: Arm) -> Motion:
    """Return a motion that begins at rest where the arm is described.

    A slow approach to its start comes first; none where the arm is there already.
    """
    start, rest = motion.sample(0.0).q, arm.rest
    way = np.abs(start - rest)
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
    return Sequence((Quintic(rest, start, duration), motion))


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
