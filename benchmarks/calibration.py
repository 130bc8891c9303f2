"""How well sensors are calibrated, and what it costs.

python benchmarks/calibration.py [mujoco] [global]
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np

from armwise.arms import load_arm
from armwise.calibration import (
    Calibration,
    Structure,
    calibratable,
    calibrate_recording,
)
from armwise.calibration.observability import wide_motion
from armwise.control import ComputedTorque
from armwise.motions import Triangle
from armwise.plants import (
    AnalogSensor,
    Encoder,
    MujocoArm,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
)
from armwise.plants import run as follow

NOISE = 0.01
"""Torque noise of the MuJoCo arms in [N m], at 500 Hz."""


class Figure(NamedTuple):
    """One figure, what is asked of it, and what it was measured on."""

    name: str
    value: float
    asked: str
    note: str


def in_mujoco(name: str, seed: int = 1) -> list[Figure]:
    """Offsets of ±10° and gains of ±5 % on every joint, found from 30 s of motion."""
    arm = load_arm(name)
    random = np.random.default_rng(seed)
    alpha = 1.0 + random.uniform(-0.05, 0.05, arm.dof)
    beta = np.deg2rad(random.uniform(-10.0, 10.0, arm.dof))
    analog = AnalogSensor(alpha, beta, noise_std=1e-5, bits=20)
    plant = MujocoArm(
        arm,
        sensors=[analog, Encoder(), Tachometer(), TorqueSensor(noise_std=NOISE)],
        control_rate_hz=500,
    )
    motion = wide_motion(arm, 30.0, 3)
    recording = follow(plant, ComputedTorque(arm, 100.0, 20.0), motion)
    # At 500 Hz behind a 10 Hz low-pass a reading's noise is about a quarter.
    outlook = calibratable(
        arm,
        torque_std=NOISE / 4.0,
        motion=motion,
        tolerance=(0.0007, np.deg2rad(0.07)),
    )
    begin = time.perf_counter()
    found = calibrate_recording(
        arm, recording, alpha=1.0, beta=0.0, gain_range=1.06,
        offset_range=0.2, outlook=outlook,
    )  # fmt: skip
    took = time.perf_counter() - begin
    errors = np.concatenate(
        [100.0 * (found.alpha / alpha - 1.0), np.rad2deg(found.beta - beta)]
    )
    worst = np.abs(errors)[outlook.is_sought]
    gains = outlook.is_sought[: arm.dof].sum()
    note = f"named beforehand as hidden: {', '.join(outlook.hidden)}"
    return [
        Figure(f"{name}: worst gain [%]", worst[:gains].max(), "0.2", note),
        Figure(f"{name}: worst offset [°]", worst[gains:].max(), "0.2", note),
        Figure(f"{name}: calibrated of {errors.size}", worst.size, "all visible", note),
        Figure(f"{name}: time [s]", took, "", f"{arm.dof} joints, 30 s of motion"),
    ]


def one_answer(guesses: int = 100) -> list[Figure]:
    """Random guesses over the whole range: how far apart the answers are."""
    arm = load_arm("hand_controller")
    known = Structure(arm, known=("*.my", "*.offset"), positive=("*.mx",))
    alpha, beta = np.deg2rad([[-7.638, -9.052], [-17.544, 26.299]])
    plant = SimulatedArm(
        arm,
        sensors=[AnalogSensor(alpha, beta, noise_std=3e-4), Encoder(), Tachometer(),
                 TorqueSensor(noise_std=0.003)],
        control_rate_hz=500,
    )  # fmt: skip
    motion = Triangle(
        np.array([-0.2, 0.3]), np.array([0.6, 0.7]), np.array([4.0, 3.1]), 20.0,
        rounding=0.2,
    )  # fmt: skip
    recording = follow(plant, ComputedTorque(arm, 400.0, 40.0), motion)
    outlook = calibratable(known)
    random, answers = np.random.default_rng(0), []
    for k in range(guesses):
        gains = random.uniform(0.05, 0.4, 2) * random.choice([-1.0, 1.0], 2)
        found = calibrate_recording(
            known, recording, alpha=gains, beta=random.uniform(-np.pi, np.pi, 2),
            gain_range=8.0, outlook=outlook, seed=k,
        )  # fmt: skip
        answers.append(np.rad2deg([*found.alpha, *found.beta]))
    usual = np.median(answers, axis=0)
    away = np.abs(np.array(answers) - usual).max(axis=1)
    share = float(np.mean(away < 0.01))
    error = np.abs(usual - np.rad2deg([*alpha, *beta])).max()
    note = f"{guesses} guesses of either sign, gains 0.05–0.4 rad/V, offsets all round"
    return [
        Figure("share of guesses with one answer", share, "1", note),
        Figure("largest error of that answer [°, °/V]", float(error), "", note),
    ]


def run(parts: tuple[str, ...] = ()) -> list[Figure]:
    """Measure everything, or the named parts."""
    made: list[Figure] = []
    if not parts or "mujoco" in parts:
        made += [*in_mujoco("panda"), *in_mujoco("ur10")]
    if not parts or "global" in parts:
        made += one_answer()
    return made


if __name__ == "__main__":
    for figure in run(tuple(sys.argv[1:])):
        print(
            f"{figure.name:48s} {figure.value:10.4g}  ({figure.asked})  {figure.note}"
        )
