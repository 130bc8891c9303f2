"""Recordings of hand controllers whose sensors are not what they seem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.calibration import Structure
from armwise.control import ComputedTorque
from armwise.motions import Triangle
from armwise.plants import (
    AnalogSensor,
    Encoder,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
    run,
)
from armwise.recordings import Recording

ALPHA = np.deg2rad([-7.638, -9.052])
BETA = np.deg2rad([-17.544, 26.299])


def hand(coulomb: float = 0.02) -> Arm:
    arm = load_arm("hand_controller")
    joints = tuple(
        replace(j, drive=replace(j.drive, coulomb=coulomb, viscous=0.002))
        for j in arm.joints
    )
    return replace(arm, joints=joints)


def structure(arm: Arm | None = None) -> Structure:
    return Structure(arm or hand(), known=("*.my", "*.offset"), positive=("*.mx",))


def recorded(
    arm: Arm | None = None,
    amplitude: tuple[float, float] = (0.6, 0.7),
    noise: float = 0.003,
    full_scale: float = 10.0,
    seed: int = 0,
    nonlinearity: float = 0.0,
) -> Recording:
    arm = arm or hand()
    plant = SimulatedArm(
        arm,
        sensors=[
            AnalogSensor(ALPHA, BETA, nonlinearity, 3e-4, full_scale=full_scale),
            Encoder(),
            Tachometer(),
            TorqueSensor(noise_std=noise),
        ],
        control_rate_hz=500,
        seed=seed,
    )
    motion = Triangle(
        np.array([-0.2, 0.3]), np.array(amplitude), np.array([4.0, 3.1]), 12.0,
        rounding=0.3,
    )  # fmt: skip
    recording = run(plant, ComputedTorque(arm, 400.0, 40.0), motion)
    kept = {k: v for k, v in recording.channels.items() if k[:3] in ("vol", "tau")}
    return recording.select(kept)
