"""MJCF of an arm with its servos: position actuators driven by set-points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import (
    BASE,
    Arm,
    MjcfScene,
    mjcf_text,
    number,
    numbers,
    quaternion,
    quoteattr,
)
from armwise.dynamics import Dynamics
from armwise.files import write_atomically
from armwise.servos.floor import Floor
from armwise.servos.rollout import ServoMotion
from armwise.servos.servo import Servo

if TYPE_CHECKING:
    from jaxtyping import Float


def write_servo_mjcf(servo: Servo, path: str | Path) -> None:
    """Write an MJCF with one position actuator per joint.

    The servos are the simplified ones: an MJCF has no Stribeck or load friction, no
    dead band and no integral. `ctrl` is the servo's set-point, which `set_points`
    returns: limits of speed and acceleration have no place in an MJCF, nor have delays
    in one that simulators before MuJoCo 4 read. Positions are the description's: a
    log's times `signs`, plus `values["zero"]`.
    A floor that the arm touched is a plane that only the touching points feel.
    """
    servo = servo.simplified()
    lines = []
    for j, joint in enumerate(servo.arm.joints):
        name = quoteattr(joint.name)
        words = [f"name={name} joint={name}"]
        words += [f'kp="{servo.values["stiffness"][j]:.10g}"']
        words += [f'kv="{servo.actuator_damping[j]:.10g}"']
        limit = float(servo.values["saturation"][j])
        if np.isfinite(limit):
            words += [f'forcerange="{-limit:.10g} {limit:.10g}"']
        lines.append(f"<position {' '.join(words)}/>")
    arm = servo.actuated_arm
    write_atomically(path, mjcf_text(arm, lines, touched(servo.floor, arm)))


# Of no consequence: the plane is lower by as much.
_RADIUS = 1e-3
"""Of the spheres in [m] that stand for touching points."""

# A body without any has its mobility taken at another place.
_SPECK = '<inertial pos="0 0 0" mass="1e-9" diaginertia="1e-15 1e-15 1e-15"/>'
"""Inertia of a touching point, a microgram."""

# MuJoCo's contacts prescribe accelerations, so that a given reference stiffness pushes
# harder the heavier what it meets. With the smallest impedance it knows (mjMINIMP)
# regularisation outweighs that, and the force is depth · reference / mobility, of the
# touching body at zero: a spring.
_IMPEDANCE = 1e-4
"""How far contacts keep the acceleration they prescribe."""


def touched(floor: Floor | None, arm: Arm) -> MjcfScene:
    """Write a floor: its plane, the points that touch it, and their springs."""
    if floor is None:
        return MjcfScene()
    up = -np.asarray(arm.gravity) / np.linalg.norm(arm.gravity)
    # Any two level axes make its frame.
    level = np.linalg.svd(up[None])[2][1:]
    R = np.column_stack([*level, up])
    R[:, 0] *= np.linalg.det(R)
    still = 'contype="0" conaffinity="0"'
    pose = f'pos="{numbers((floor.height - _RADIUS) * up)}"'
    pose += f' quat="{numbers(quaternion(R))}"'
    elements: dict[int, list[str]] = {
        BASE: [f'<geom name="floor" type="plane" size="1 1 0.01" {pose} {still}/>']
    }
    pairs = []
    for k, (link, point) in enumerate(zip(floor.links, floor.points, strict=True)):
        name = f"floor_point_{k + 1}"
        sphere = f'<geom name="{name}" size="{number(_RADIUS)}" {still}/>'
        # In a body of its own, whose mobility is the point's.
        body = f'<body name="{name}" pos="{numbers(point)}">{_SPECK}{sphere}</body>'
        elements.setdefault(link, []).append(body)
        spring = number(floor.stiffness * _mobility(arm, link, point))
        impedance = number(_IMPEDANCE)
        pairs.append(
            f'<pair geom1="floor" geom2="{name}" condim="1" solref="-{spring} 0" '
            f'solimp="{impedance} {impedance} 0.001 0.5 2"/>'
        )
    return MjcfScene(elements, pairs)


def _mobility(arm: Arm, link: int, point: Float[np.ndarray, " 3"]) -> float:
    """Return what MuJoCo takes for a point's inverse mass in [1/kg]: at q = 0, mean."""
    dynamics, zero = Dynamics(arm), np.zeros(arm.dof)
    name = arm.links[link].name
    J = dynamics.jacobian(zero, name)
    lever = dynamics.link_pose(zero, name)[:3, :3] @ point
    moved = J[:3] + np.cross(J[3:].T, lever).T
    solved = np.linalg.solve(dynamics.mass_matrix(zero), moved.T)
    return float(np.trace(moved @ solved)) / 3.0


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
