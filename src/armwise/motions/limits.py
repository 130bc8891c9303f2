"""Does a motion stay within what the arm's joints may do?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.motions.motion import Motion

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
