"""Planned motions as files: CSV and ROS JointTrajectory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Listed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import ArgumentError
from armwise.files import write_atomically
from armwise.motions.motion import Sequence, require_positive
from armwise.motions.point_to_point import Quintic

if TYPE_CHECKING:
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
    "positions": "q",
    "velocities": "qd",
    "accelerations": "qdd",
    "effort": "tau",
}


def _message(
    times: np.ndarray, columns: Table, names: Listed[str] | None
) -> dict[str, Any]:
    points = [
        {
            **{
                name: columns[kind][k].tolist() if kind in columns else []
                for name, kind in _FIELDS.items()
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
