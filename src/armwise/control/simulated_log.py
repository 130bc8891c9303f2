"""Log of a simulated arm that follows a motion: the channels of a real arm's log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.control.feedforward import ComputedTorque
from armwise.dynamics import Dynamics
from armwise.errors import ArmError, PlantDiverged
from armwise.motions import Motion, MotionSample
from armwise.plants import (
    Encoder,
    Measurement,
    MujocoArm,
    SimulatedArm,
    TorqueSensor,
    run,
)
from armwise.recordings import Recording

if TYPE_CHECKING:
    from jaxtyping import Float

STIFFNESS, DAMPING = 400.0, 40.0
"""Feedback per unit of inertia in [1/s²] and [1/s]: 3 Hz, critically damped, like an
industrial servo's."""


# Judgement: a usual ball screw.
SCREW_LEAD = 0.01
"""What a joint that slides moves in a turn of its encoder in [m]."""


def simulate_log(
    arm: Arm,
    motion: Motion,
    *,
    # Judgement: seventeen bits a turn.
    encoder_counts: int = 2**17,
    # Judgement: 1 % of the largest torque.
    torque_noise: float = 0.01,
    mujoco: bool = False,
    seed: int = 0,
) -> Recording:
    """Let a simulated arm follow a motion by computed torque; return q and tau.

    Args:
        arm: The arm, whose own model the controller has.
        motion: What to follow.
        encoder_counts: Counts per turn; of a joint that slides, per `SCREW_LEAD`.
        torque_noise: Standard deviation of the measured torque, as a fraction of each
            joint's largest torque along the motion.
        mujoco: Simulate with MuJoCo.
        seed: Of the sensors' noise.

    Returns:
        The log; its notes say if joints were given rotors.

    Raises:
        ArmError: If the arm runs away, as one with impossible inertias does.
    """
    real, notes = with_rotors(arm, motion)
    sensors = (
        Encoder(resolution=_turned_by(arm) / encoder_counts),
        TorqueSensor(noise_std=torque_noise * largest_torque(real, motion)),
    )
    plant = (MujocoArm if mujoco else SimulatedArm)(real, sensors=sensors, seed=seed)
    try:
        recording = run(plant, _Servo(real), motion)
    except PlantDiverged as problem:
        raise ArmError(_divergence(real, motion)) from problem
    # The true state, which the simulation records too, is in no real log.
    measured = recording.select(
        name for name in recording.channels if name.split("_")[0] in ("q", "tau")
    )
    return replace(measured, notes=(*measured.notes, *notes))


def _turned_by(arm: Arm) -> Float[np.ndarray, " dof"]:
    """What a turn of each joint's encoder is in [rad] or [m]."""
    turns = [arm.joints[i].is_revolute for i in arm.coordinates]
    return np.where(turns, 2.0 * np.pi, SCREW_LEAD)


# Judgement: 8 Hz, like the position loop of a servo. Slower, a light joint that is off
# by a little stands still at each reversal until its reference comes back to it.
_FRICTION_RATE = 50.0
"""Rate in [1/s] at which errors decay of a joint that has little but friction."""


class _Servo:
    """Computed torque that overcomes friction as the reference moves.

    By the measured velocity a light joint would stick: standing still it would get no
    push, and its feedback, in proportion to its inertia, is less than its friction.
    Moving, a velocity that is measured late would compensate viscous friction late.
    """

    def __init__(self, arm: Arm) -> None:
        layout, parameters = arm.layout, arm.parameters.copy()
        viscous, coulomb = layout.drive("viscous"), layout.drive("coulomb")
        rows = [*arm.coupling_matrix, *(coupling.weights for coupling in arm.couplings)]
        self._rows = np.array(rows)
        self._viscous, self._coulomb = parameters[viscous], parameters[coulomb]
        parameters[viscous] = parameters[coulomb] = 0.0
        smooth = arm.with_parameters(parameters)
        self._feedback = ComputedTorque(smooth, STIFFNESS, DAMPING)

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self._feedback.reset(batch, period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        speed = reference.qd @ self._rows.T
        error = (reference.q - measurement.need("q")) @ self._rows.T
        lost = self._viscous * (speed + _FRICTION_RATE * error)
        friction: np.ndarray = (lost + self._coulomb * np.sign(speed)) @ self._rows
        return self._feedback.torque(t, reference, measurement) + friction


# Judgement: less than the least motor's, and far above rounding in a mass matrix of
# arms up to a ton.
LEAST_INERTIA = 1e-6
"""Of a joint, seen with all others free, in [kg m²] or [kg]: less gets a rotor."""

# Judgement: a small industrial joint's motor, seen through its gear.
USUAL_ROTOR = 1e-2
"""Rotor in [kg m²] or [kg] of the joints of an arm that is described without masses."""


def with_rotors(arm: Arm, motion: Motion) -> tuple[Arm, tuple[str, ...]]:
    """Give joints that carry next to no inertia a rotor, and say so.

    Without one they would accelerate without bound: every real joint has a motor.
    """
    inertia = effective_inertia(arm, motion)
    light = [j for j in range(arm.dof) if inertia[j] < LEAST_INERTIA]
    if not light:
        return arm, ()
    joints = list(arm.joints)
    has_mass = any(link.inertia.has_mass for link in arm.links)
    added = LEAST_INERTIA if has_mass else USUAL_ROTOR
    for j in light:
        joint = joints[arm.coordinates[j]]
        rotor = joint.drive.rotor_inertia + added
        drive = replace(joint.drive, rotor_inertia=rotor)
        joints[arm.coordinates[j]] = replace(joint, drive=drive)
    names = ", ".join(arm.coordinate_names[j] for j in light)
    note = (
        f"{names}: next to no inertia is described; simulated with a rotor of "
        f"{added:g} kg m² (or kg)."
    )
    return replace(arm, joints=tuple(joints)), (note,)


def effective_inertia(arm: Arm, motion: Motion) -> Float[np.ndarray, " dof"]:
    """Least inertia of each joint along a motion, all others free: 1 / (M⁻¹)_jj."""
    # Judgement: twenty postures show the order of magnitude.
    q = motion.sample(np.linspace(0.0, motion.duration, 20)).q
    values, vectors = np.linalg.eigh(Dynamics(arm).mass_matrix(q))
    # An eigenvalue that rounding made zero or negative moves without bound.
    mobility = np.einsum("tjk,tk->tj", vectors**2, 1.0 / np.maximum(values, 1e-15))
    least: np.ndarray = 1.0 / mobility.max(axis=0)
    return least


def _divergence(arm: Arm, motion: Motion) -> str:
    """Say why an arm may have run away."""
    if defects := arm.defects():
        name, why = next(iter(defects.items()))
        return f"{arm.name} ran away; nothing was written. {name}: {why}."
    inertia = effective_inertia(arm, motion)
    j = int(inertia.argmin())
    return (
        f"{arm.name} ran away; nothing was written. Its lightest joint is "
        f"{arm.coordinate_names[j]!r}, {inertia[j]:.2g} kg m² (or kg): lock it, or "
        "give it a rotor inertia."
    )


def largest_torque(arm: Arm, motion: Motion) -> Float[np.ndarray, " dof"]:
    """Largest torque of each joint along a motion, in [N m]."""
    times = np.linspace(0.0, motion.duration, 500)
    torque = Dynamics(arm).inverse_dynamics(*motion.sample(times))
    # A joint that carries nothing still needs a scale above zero; fingers need 1e-4.
    return np.maximum(np.abs(torque).max(axis=0), 1e-6)
