"""Log of a simulated arm that follows a motion: the channels of a real arm's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.control.feedforward import ComputedTorque
from armwise.dynamics import Dynamics
from armwise.errors import ArmError, PlantDiverged
from armwise.motions import Motion
from armwise.plants import Encoder, MujocoArm, SimulatedArm, TorqueSensor, run
from armwise.recordings import Recording

if TYPE_CHECKING:
    from jaxtyping import Float

STIFFNESS, DAMPING = 400.0, 40.0
"""Feedback per unit of inertia in [1/s²] and [1/s]: 3 Hz, critically damped, like an
industrial servo's."""


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
        encoder_counts: Counts per turn.
        torque_noise: Standard deviation of the measured torque, as a fraction of each
            joint's largest torque along the motion.
        mujoco: Simulate with MuJoCo.
        seed: Of the sensors' noise.

    Raises:
        ArmError: If the arm runs away, as one with impossible inertias does.
    """
    sensors = (
        Encoder(resolution=2 * np.pi / encoder_counts),
        TorqueSensor(noise_std=torque_noise * largest_torque(arm, motion)),
    )
    plant = (MujocoArm if mujoco else SimulatedArm)(arm, sensors=sensors, seed=seed)
    try:
        recording = run(plant, ComputedTorque(arm, STIFFNESS, DAMPING), motion)
    except PlantDiverged as problem:
        raise ArmError(
            f"{arm.name} ran away; nothing was written. Are its inertias physically "
            "realisable? armwise inspect says."
        ) from problem
    # The true state, which the simulation records too, is in no real log.
    return recording.select(
        name for name in recording.channels if name.split("_")[0] in ("q", "tau")
    )


def largest_torque(arm: Arm, motion: Motion) -> Float[np.ndarray, " dof"]:
    """Largest torque of each joint along a motion, in [N m]."""
    times = np.linspace(0.0, motion.duration, 500)
    torque = Dynamics(arm).inverse_dynamics(*motion.sample(times))
    # A joint that carries nothing still needs a scale above zero.
    return np.maximum(np.abs(torque).max(axis=0), 1e-3)
