"""Known motions and torques to make recordings from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armwise.arms import Arm, Drive, load_arm
from armwise.dynamics import Dynamics
from armwise.recordings import Recording


def arm_with_friction(name: str = "ddarm", coulomb: float = 2.0) -> Arm:
    arm = load_arm(name)
    drive = Drive(rotor_inertia=0.1, viscous=1.0, coulomb=coulomb, offset=0.2)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


def motion(dof: int, time: np.ndarray, seed: int = 0):
    """Position, velocity, acceleration of a sum of sinusoids of 0.1 to 0.5 Hz."""
    rng = np.random.default_rng(seed)
    omega = 2 * np.pi * 0.1 * np.arange(1, 6)[:, None, None]
    size = rng.normal(0.0, 0.3, (5, 1, dof)) / np.sqrt(5)
    phase = omega * time[None, :, None] + rng.uniform(0, 6.28, (5, 1, dof))
    q = (size * np.sin(phase)).sum(axis=0)
    qd = (size * omega * np.cos(phase)).sum(axis=0)
    qdd = -(size * omega**2 * np.sin(phase)).sum(axis=0)
    return q, qd, qdd


def recording(
    arm: Arm,
    *,
    duration: float = 20.0,
    rate: float = 500.0,
    lag: float = 0.0,
    position_noise: float = 0.0,
    torque_noise: float = 0.0,
    jitter: float = 0.0,
    missing: float = 0.0,
    velocity: bool = False,
    seed: int = 0,
) -> Recording:
    """Measure the known motion with these defects."""
    rng = np.random.default_rng(seed + 1000)
    time = np.arange(int(duration * rate)) / rate
    time = np.sort(time + rng.uniform(-jitter, jitter, time.size))
    time = time[rng.random(time.size) >= missing]
    q, qd, _ = motion(arm.dof, time, seed)
    tau = Dynamics(arm).inverse_dynamics(*motion(arm.dof, time - lag, seed))
    return Recording.from_arrays(
        time,
        q=q + rng.normal(0, position_noise, q.shape),
        qd=qd if velocity else None,
        tau=tau + rng.normal(0, torque_noise, tau.shape),
        joint_names=arm.coordinate_names,
        source="made.csv",
    )
