"""MJCF of an arm with its servos: position actuators driven by set-points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import mjcf_text
from armwise.files import write_atomically
from armwise.servos.rollout import ServoMotion
from armwise.servos.servo import Servo

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: a servo's own loop runs at about 1 kHz; MuJoCo's error at 1 ms is far
# below a tick of its encoder.
TIMESTEP = 1e-3
"""Step in [s] that the model asks of MuJoCo."""


def write_servo_mjcf(servo: Servo, path: str | Path) -> None:
    """Write an MJCF with one position actuator per joint.

    The servos are the simplified ones: an MJCF has no Stribeck or load friction, no
    dead band and no integral. `ctrl` is the servo's set-point, which `set_points`
    returns: delay and limits of speed and acceleration have no place in an MJCF.
    """
    servo = servo.simplified()
    text = mjcf_text(servo.identified_arm)
    text = text.replace(
        "<option ", f'<option timestep="{TIMESTEP:g}" integrator="implicitfast" ', 1
    )
    # MuJoCo's friction creeps by default, a milliradian a second; a stiff one holds.
    text = text.replace(
        'frictionloss="', 'solimpfriction="0.9999 0.9999 0.001 0.5 2" frictionloss="'
    )
    lines = ["  <actuator>"]
    for j, joint in enumerate(servo.arm.joints):
        words = [f'name="{joint.name}"', f'joint="{joint.name}"']
        words += [f'kp="{servo.values["stiffness"][j]:.10g}"']
        words += [f'kv="{servo.values["derivative"][j]:.10g}"']
        limit = float(servo.values["saturation"][j])
        if np.isfinite(limit):
            words += [f'forcerange="{-limit:.10g} {limit:.10g}"']
        lines.append(f"    <position {' '.join(words)}/>")
    lines.append("  </actuator>")
    end = text.rindex("</mujoco>")
    write_atomically(path, text[:end] + "\n".join(lines) + "\n" + text[end:])


def set_points(
    servo: Servo, motion: ServoMotion, timestep: float = TIMESTEP
) -> Float[np.ndarray, "steps dof"]:
    """Return what to write to `ctrl` before every step of MuJoCo, from time zero.

    The derivative's share of the set-point's speed is in it: kp (s + kd/kp ṡ − q) −
    kd q̇ is what the servo does.
    """
    servo = servo.simplified()
    h, points = servo.set_point(motion)
    at = np.arange(0.0, float(motion.time[-1]), timestep) + 0.5 * timestep
    ends = np.arange(len(points)) * h
    columns = []
    for j in range(points.shape[1]):
        kp, kd = servo.values["stiffness"][j], servo.values["derivative"][j]
        place = np.interp(at, ends, points[:, j])
        rate = np.interp(at, ends[:-1] + 0.5 * h, np.diff(points[:, j]) / h)
        shift = servo.values["offset"][j] + servo.values["zero"][j]
        columns.append(place + shift + kd / kp * rate)
    return np.column_stack(columns)
