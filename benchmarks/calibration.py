"""How well sensors are calibrated from recordings, and from whatever first guess.

python benchmarks/calibration.py [mujoco] [global]
"""

from __future__ import annotations

import sys
import time
from functools import cache
from typing import NamedTuple

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.calibration import Structure, calibratable, calibrate_recording
from armwise.calibration.from_recording import sensed_samples
from armwise.calibration.observability import wide_motion
from armwise.control import ComputedTorque
from armwise.dynamics import Dynamics
from armwise.motions import Motion, Triangle
from armwise.plants import (
    AnalogSensor,
    Encoder,
    MujocoArm,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
)
from armwise.plants import run as follow
from armwise.recordings import Channel, Recording, Samples

RATE = 500.0
"""Samples a second of the MuJoCo arms."""

READING_NOISE = 1e-5
"""Noise of their joint sensors in [rad]: that of an encoder of 19 bits."""

MARGIN = 4.0
"""Predicted standard deviations must be so much smaller than what is asked."""

CUTOFF = 4.0
"""Low-pass of their recordings in [Hz], eight times the fastest harmonic."""


class Figure(NamedTuple):
    """One figure, what is asked of it, and what it was measured on."""

    name: str
    value: float
    asked: str
    note: str


def in_mujoco(
    name: str, noise: float, is_described: bool, seeds: int = 5
) -> list[Figure]:
    """Offsets of ±10° and gains of ±5 % on every joint, found from 60 s of motion.

    Args:
        name: The arm.
        noise: Torque noise in [N m] at 500 Hz.
        is_described: Whether the links' inertias are as described, or unknown, too.
        seeds: How many sets of sensors.
    """
    arm = load_arm(name)
    links = arm.parameter_names[arm.layout.links]
    known = Structure(arm, known=links if is_described else ())
    outlook = calibratable(
        known,
        torque_std=_expected_errors(arm, noise),
        motion=_motion(arm),
        tolerance=(0.002 / MARGIN, np.deg2rad(0.2) / MARGIN),
    )
    errors, ratios, took, moved = [], [], [], _moved(name)
    for seed in range(seeds):
        alpha, beta, recording = _miscalibrated(moved, noise, seed)
        begin = time.perf_counter()
        found = calibrate_recording(
            known, recording, alpha=1.0, beta=0.0, gain_range=1.06,
            offset_range=0.2, cutoff_hz=CUTOFF, outlook=outlook,
        )  # fmt: skip
        took.append(time.perf_counter() - begin)
        away = np.concatenate([found.alpha / alpha - 1.0, found.beta - beta])
        doubt = np.concatenate([found.alpha_std / found.alpha, found.beta_std])
        errors.append(np.abs(away)[outlook.is_sought])
        ratios.append((away / doubt)[outlook.is_sought])
    gains = int(outlook.is_sought[: arm.dof].sum())
    worst = np.max(errors, axis=0)
    case = f"{name}, {'inertias as described' if is_described else 'all unknown'}"
    note = f"{seeds} sets of sensors, {noise} N m; hidden: {', '.join(outlook.hidden)}"
    return [
        Figure(f"{case}: worst gain [%]", 100.0 * worst[:gains].max(), "0.2", note),
        Figure(f"{case}: worst offset [°]", np.rad2deg(worst[gains:].max()), "0.2", ""),
        Figure(f"{case}: calibrated of {2 * arm.dof}", worst.size, "named before", ""),
        Figure(f"{case}: error / std, rms", _rms(np.array(ratios)), "about 1", ""),
        Figure(f"{case}: time [s]", float(np.median(took)), "", "60 s of motion"),
    ]


def _motion(arm: Arm) -> Motion:
    return wide_motion(arm, 60.0, 3)


@cache
def _moved(name: str) -> Recording:
    """An arm in MuJoCo, as sensors without any error see it."""
    arm = load_arm(name)
    sensors = [Encoder(), Tachometer(), TorqueSensor()]
    plant = MujocoArm(arm, sensors=sensors, control_rate_hz=RATE)
    return follow(plant, ComputedTorque(arm, 100.0, 20.0), _motion(arm))


def _miscalibrated(
    moved: Recording, noise: float, seed: int
) -> tuple[np.ndarray, np.ndarray, Recording]:
    """Gains, offsets, and what such sensors say of a motion; they steer nothing."""
    random, dof = np.random.default_rng(seed), moved.count("q")
    alpha = 1.0 + random.uniform(-0.05, 0.05, dof)
    beta = np.deg2rad(random.uniform(-10.0, 10.0, dof))
    channels = {}
    for j in range(dof):
        q, tau = moved[f"q_{j + 1}"], moved[f"tau_{j + 1}"]
        read = (q.values - beta[j]) / alpha[j]
        read += READING_NOISE * random.standard_normal(read.size)
        torque = tau.values + noise * random.standard_normal(tau.values.size)
        channels[f"volts_{j + 1}"] = Channel(q.time, read, "V")
        channels[f"tau_{j + 1}"] = Channel(tau.time, torque, "N m")
    source = f"sensors {seed}"
    sensed = Recording.from_channels(
        channels, joint_names=moved.joint_names, source=source
    )
    return alpha, beta, sensed


def _expected_errors(arm: Arm, noise: float) -> np.ndarray:
    """Of torques, at 20 independent ones a second: their own, and the readings'."""
    bend = (2.0 * np.pi) ** 2 * np.sqrt(2.0 / RATE * CUTOFF**5 / 5.0)
    acceleration = READING_NOISE * bend * np.sqrt(10.0 / CUTOFF)
    postures = np.random.default_rng(0).uniform(-1.5, 1.5, (50, arm.dof))
    inertia = np.diagonal(Dynamics(arm).mass_matrix(postures), axis1=1, axis2=2)
    own = noise * np.sqrt(20.0 / RATE)
    return np.sqrt(own**2 + (inertia.mean(axis=0) * acceleration) ** 2)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


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
    random = np.random.default_rng(0)
    sides = random.choice([-1.0, 1.0], (guesses, 2))
    gains = random.uniform(0.05, 0.4, (guesses, 2)) * sides
    offsets = random.uniform(-np.pi, np.pi, (guesses, 2))
    what = f"{guesses} guesses: gains of 0.05–0.4 rad/V and either sign, offsets ±180°"
    return _agreement(
        known, sensed_samples(recording, 10.0), gains, offsets, 8.0, np.pi,
        np.concatenate([alpha, beta]), f"hand_controller, {what}",
    )  # fmt: skip


def one_answer_of_many_joints(name: str = "ur10", guesses: int = 20) -> list[Figure]:
    """The same for an arm of six joints, all inertias unknown."""
    arm = load_arm(name)
    alpha, beta, recording = _miscalibrated(_moved(name), 0.01, 1)
    random = np.random.default_rng(0)
    gains = 1.0 + random.uniform(-0.25, 0.25, (guesses, arm.dof))
    offsets = np.deg2rad(random.uniform(-60.0, 60.0, (guesses, arm.dof)))
    what = f"{guesses} guesses: gains ±25 %, offsets ±60°"
    return _agreement(
        Structure(arm), sensed_samples(recording, CUTOFF), gains, offsets, 1.4, 1.5,
        np.concatenate([alpha, beta]), f"{name}, {what}",
    )  # fmt: skip


def _agreement(
    known: Structure,
    sensed: Samples,
    gains: np.ndarray,
    offsets: np.ndarray,
    gain_range: float,
    offset_range: float,
    truth: np.ndarray,
    what: str,
) -> list[Figure]:
    """Calibrate from every guess; say how many agree."""
    outlook = calibratable(known)
    sought, answers, doubts = outlook.is_sought, [], []
    begin = time.perf_counter()
    for k, (alpha, beta) in enumerate(zip(gains, offsets, strict=True)):
        found = calibrate_recording(
            known, sensed, alpha=alpha, beta=beta, gain_range=gain_range,
            offset_range=offset_range, outlook=outlook, seed=k,
        )  # fmt: skip
        answers.append(np.concatenate([found.alpha, found.beta])[sought])
        doubts.append(np.concatenate([found.alpha_std, found.beta_std])[sought])
    took = (time.perf_counter() - begin) / len(gains)
    usual = np.median(answers, axis=0)
    std = np.median(doubts, axis=0)
    away = (np.abs(np.array(answers) - usual) / std).max(axis=1)
    error = np.abs(usual - truth[sought]) / std
    return [
        Figure("guesses that lead to one answer", float(np.sum(away < 0.1)),
               f"{len(gains)}", what),
        Figure("answers apart / std", float(away.max()), "0.1", ""),
        Figure("largest error of the answer / std", float(error.max()), "", ""),
        Figure("time [s] a guess", took, "", f"{int(sought.sum())} unknowns"),
    ]  # fmt: skip


def run(parts: tuple[str, ...] = ()) -> list[Figure]:
    """Measure everything, or the named parts."""
    made: list[Figure] = []
    if not parts or "mujoco" in parts:
        for name in ("panda", "ur10"):
            made += in_mujoco(name, 0.01, is_described=False)
            made += in_mujoco(name, 0.05, is_described=True)
    if not parts or "global" in parts:
        made += [*one_answer(), *one_answer_of_many_joints()]
    return made


if __name__ == "__main__":
    for figure in run(tuple(sys.argv[1:])):
        print(
            f"{figure.name:48s} {figure.value:10.4g}  ({figure.asked})  {figure.note}"
        )
