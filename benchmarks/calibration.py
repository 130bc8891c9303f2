"""How well sensors are calibrated, how soon drift is found, and what it costs.

python benchmarks/calibration.py [mujoco] [global] [watchdog]
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.calibration import (
    Calibration,
    Structure,
    Watchdog,
    calibratable,
    calibrate_recording,
)
from armwise.calibration.observability import wide_motion
from armwise.control import ComputedTorque
from armwise.motions import Hold, Quintic, Sequence, Triangle
from armwise.plants import (
    AnalogSensor,
    Encoder,
    MujocoArm,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
    perturbed,
    run_batch,
)
from armwise.plants import run as follow
from armwise.recordings import Recording

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


def drift(arms: int = 60, seconds: float = 600.0) -> list[Figure]:
    """Pick and place on Pandas whose model is 1 % wrong; 1° jumps in some of them."""
    from dataclasses import replace

    arm = load_arm("panda")
    drives = [replace(j.drive, coulomb=0.2, viscous=0.2, rotor_inertia=0.05)
              for j in arm.joints]  # fmt: skip
    joints = zip(arm.joints, drives, strict=True)
    arm = replace(arm, joints=tuple(replace(j, drive=d) for j, d in joints))
    model, random = perturbed(arm, 0.01, 1), np.random.default_rng(0)
    plant = SimulatedArm(
        model, true_arm=arm, batch=arms, control_rate_hz=125, plant_rate_hz=1000,
        sensors=[Encoder(2e-5), Tachometer(), TorqueSensor(noise_std=0.05)],
        keeps_truth=False, seed=3,
    )  # fmt: skip
    motions = [_pick_and_place(arm, seconds, random) for _ in range(arms)]
    logs = run_batch(plant, ComputedTorque(arm, 200.0, 28.0), motions, duration=seconds)
    begin = time.perf_counter()
    false = sum(len(_watched(model, log, None, 0.0).alarms) for log in logs)
    cost = (time.perf_counter() - begin) / (arms * seconds / 0.008)
    note = f"{arms * seconds / 3600:.1f} h, {arms} arms"
    made = [
        Figure("false alarms", false, "0", note),
        Figure("cost [µs] per sample", 1e6 * cost, "constant", "blocks of 500"),
    ]
    for joint in (1, 2, 3):
        onset = 0.6 * seconds
        dogs = [_watched(model, log, joint, onset) for log in logs[: min(arms, 10)]]
        delays = [d.alarms[0].time - onset if d.alarms else np.inf for d in dogs]
        share = float(np.mean([0.0 <= x <= 5.0 for x in delays]))
        what = f"1° on joint {joint + 1}: found within 5 s (share)"
        made.append(Figure(what, share, "1", f"median {np.median(delays):.1f} s"))
    return made


def _pick_and_place(arm: Arm, seconds: float, random: np.random.Generator) -> Sequence:
    low = np.maximum(arm.limits("lower"), -1.5)
    high = np.minimum(arm.limits("upper"), 2.0)
    posts = low + (high - low) * random.uniform(0.15, 0.85, (4, arm.dof))
    parts, now, passed, k = [], posts[0], 0.0, 0
    while passed < seconds:
        after = posts[(k + 1) % 4] + random.normal(0.0, 0.05, arm.dof)
        took = random.uniform(1.2, 2.2)
        parts += [Quintic(now, after, took), Hold(after, 0.3)]
        now, passed, k = after, passed + took + 0.3, k + 1
    return Sequence(tuple(parts))


def _watched(model: Arm, log: Recording, joint: int | None, onset: float) -> Watchdog:
    times = log["q_1"].time
    q, tau = (
        np.stack([log[f"{x}_{j + 1}"].values for j in range(model.dof)], axis=1)
        for x in ("q", "tau")
    )
    if joint is not None:
        q[times >= onset, joint] += np.deg2rad(1.0)
    given = Calibration.given(model, torque_std=0.05)
    # The jump itself would be told at once by its speed: only gravity is asked.
    dog = Watchdog(model, given, 0.008, largest_speed=np.inf)
    for k in range(0, len(times), 500):
        rows = slice(k, k + 500)
        if dog.update(times[rows], q[rows], tau[rows]):
            break
    return dog


def run(parts: tuple[str, ...] = ()) -> list[Figure]:
    """Measure everything, or the named parts."""
    made: list[Figure] = []
    if not parts or "mujoco" in parts:
        made += [*in_mujoco("panda"), *in_mujoco("ur10")]
    if not parts or "global" in parts:
        made += one_answer()
    if not parts or "watchdog" in parts:
        made += drift()
    return made


if __name__ == "__main__":
    for figure in run(tuple(sys.argv[1:])):
        print(
            f"{figure.name:48s} {figure.value:10.4g}  ({figure.asked})  {figure.note}"
        )
