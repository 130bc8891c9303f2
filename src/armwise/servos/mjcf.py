"""MJCF of an arm with its servos: position actuators driven by set-points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import mjcf_text, quoteattr
from armwise.files import write_atomically
from armwise.servos.rollout import ServoMotion
from armwise.servos.servo import Servo

if TYPE_CHECKING:
    from jaxtyping import Float


def write_servo_mjcf(servo: Servo, path: str | Path) -> None:
    """Write an MJCF with one position actuator per joint.

    The servos are the simplified ones: an MJCF has no Stribeck or load friction, no
    dead band and no integral. `ctrl` is the servo's set-point, which `set_points`
    returns: delay and limits of speed and acceleration have no place in an MJCF.
    """
    servo = servo.simplified()
    lines = []
    for j, joint in enumerate(servo.arm.joints):
        name = quoteattr(joint.name)
        words = [f"name={name} joint={name}"]
        words += [f'kp="{servo.values["stiffness"][j]:.10g}"']
        words += [f'kv="{servo.values["derivative"][j]:.10g}"']
        limit = float(servo.values["saturation"][j])
        if np.isfinite(limit):
            words += [f'forcerange="{-limit:.10g} {limit:.10g}"']
        lines.append(f"<position {' '.join(words)}/>")
    write_atomically(path, mjcf_text(servo.identified_arm, lines))


def set_points(
    servo: Servo, motion: ServoMotion, timestep: float
) -> Float[np.ndarray, "steps dof"]:
    """Return what to write to `ctrl` before every step of MuJoCo, from time zero.

    The derivative's share of the set-point's speed is in it: kp (s + kd/kp ṡ − q) −
    kd q̇ is what the servo does.

    Args:
        servo: As written by `write_servo_mjcf`.
        motion: Of `servo.motion(recording)`.
        timestep: The model's `opt.timestep` in [s].
    """
    servo = servo.simplified()
    # MuJoCo adds the whole step's new speed to the position: it moves as if `ctrl` had
    # come half a step earlier than it was written.
    late = servo.values["delay"] + 0.5 * timestep
    later = replace(servo, values=dict(servo.values) | {"delay": late})
    points = later.set_point(motion, timestep)
    kp, kd = servo.values["stiffness"], servo.values["derivative"]
    rate = np.diff(points.ends, axis=0) / timestep
    shift = servo.values["offset"] + servo.values["zero"]
    steps = int(np.ceil(motion.time[-1] / timestep))
    return (points.means + shift + kd / kp * rate)[:steps]
