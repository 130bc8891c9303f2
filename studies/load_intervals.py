"""Loads of simulated current-driven arms: how often intervals hold the true mass.

Torque constants are off by a tenth, friction has Stribeck and load-dependent parts that
nobody knows, currents are logged late, the arm's description is wrong by a tenth. Each
robot carries nothing, a weighed load and an unknown one: the unknown mass is estimated
from the difference to the empty run, before and after `calibrate_torques`.

    python -m studies.load_intervals --runs 20
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import armwise as aw
from armwise.arms import Arm, Drive, InertialParameters
from armwise.calibration import calibrate_torques
from armwise.control import ComputedTorque
from armwise.loads import LoadEstimate, design_load_excitation, identify_load
from armwise.motions import Motion
from armwise.plants import (
    Encoder,
    Friction,
    Payload,
    SimulatedArm,
    TorqueSensor,
    perturbed,
    run_batch,
)
from armwise.recordings import Channel, Recording
from armwise.regression import FrictionTerm

FRAME = "flange"
CAPACITY = {"iiwa": 7.0, "panda": 3.0, "puma560": 2.5, "ur5": 5.0, "ur10": 10.0}
"""What each arm may carry in [kg]."""

GAIN_STD = 0.1
"""Relative error of the torque constants."""

COMMON = 0.3
"""Correlation of two joints' errors: one temperature, one scaling, one data sheet."""

_BATCH = 5
"""Robots that are simulated side by side, with the same load-dependent friction: few,
or some two hundred robots would be a dozen draws of it."""


@dataclass(frozen=True, eq=False)
class Robot:
    """One current-driven robot and its logs.

    Attributes:
        arm: As it is described, wrong by a tenth.
        weighed, unknown: What it carried.
        logs: Empty, with the weighed load, with the unknown one.
    """

    arm: Arm
    weighed: InertialParameters
    unknown: InertialParameters
    logs: tuple[Recording, Recording, Recording]


def robots(name: str, count: int, motion: Motion, seed: int) -> Iterator[Robot]:
    """Simulate robots with everything their owners do not know, side by side."""
    random = np.random.default_rng(seed)
    arm = aw.load_arm(name)
    largest = arm.limits("effort")
    arms = [_with_drives(arm, random) for _ in range(count)]
    loads = [[random_load(name, random) for _ in range(2)] for _ in range(count)]
    bodies = [[InertialParameters.zero(), *pair] for pair in loads]
    terms = tuple(
        (FrictionTerm(j, joint.name, "load"), float(random.uniform(0.02, 0.1)))
        for j, joint in enumerate(arm.joints)
    )
    plant = SimulatedArm(
        arm,
        true_arm=[each for each in arms for _ in range(3)],
        payload=[Payload(FRAME, body) for three in bodies for body in three],
        friction=Friction(
            static=random.uniform(1.1, 1.6, arm.dof), stribeck_speed=0.05, terms=terms
        ),
        sensors=[
            Encoder(2.0 * np.pi / 2**18),
            TorqueSensor(noise_std=0.005 * largest),
        ],
        control_rate_hz=250.0,
        plant_rate_hz=2000.0,
        seed=seed,
        keeps_truth=False,
    )
    logs = run_batch(plant, ComputedTorque(arms[0], 2500.0, 100.0), motion)
    for k in range(count):
        own, common = random.normal(size=arm.dof), random.normal()
        gain = np.exp(GAIN_STD * ((1 - COMMON) ** 0.5 * own + COMMON**0.5 * common))
        lag = float(random.uniform(0.0, 0.01))
        three = [_as_logged(log, gain, lag) for log in logs[3 * k : 3 * k + 3]]
        described = perturbed(arm, 0.1, seed=seed + k)
        yield Robot(described, loads[k][0], loads[k][1], (three[0], three[1], three[2]))


def _with_drives(arm: Arm, random: np.random.Generator) -> Arm:
    drives = [
        Drive(
            rotor_inertia=0.004 * torque,
            viscous=random.uniform(0.01, 0.05) * torque,
            coulomb=random.uniform(0.02, 0.05) * torque,
        )
        for torque in arm.limits("effort")
    ]
    joints = [
        replace(joint, drive=drive)
        for joint, drive in zip(arm.joints, drives, strict=True)
    ]
    return replace(arm, joints=tuple(joints))


def _as_logged(log: Recording, gain: np.ndarray, lag: float) -> Recording:
    """Positions, and torques by the wrong constants, stamped late."""
    channels = {n: c for n, c in log.channels.items() if n.startswith("q_")}
    for j, factor in enumerate(gain):
        measured = log[f"tau_{j + 1}"]
        late = Channel(measured.time + lag, factor * measured.values)
        channels[f"tau_{j + 1}"] = late
    return Recording.from_channels(channels)


def random_load(name: str, random: np.random.Generator) -> InertialParameters:
    """A body of a fifth of the capacity to nearly all of it, centimetres away."""
    mass = CAPACITY[name] * random.uniform(0.2, 0.9)
    center = random.uniform([-0.05, -0.05, 0.03], [0.05, 0.05, 0.12])
    size = random.uniform(0.03, 0.08, 3) ** 2
    inertia = mass * np.diag([size[1] + size[2], size[0] + size[2], size[0] + size[1]])
    return InertialParameters.from_center_of_mass(mass, center, inertia)


def estimates(robot: Robot) -> dict[str, float]:
    """Estimate the unknown load before and after the gains are calibrated."""
    empty, weighed, unknown = robot.logs
    before = identify_load(unknown, robot.arm, frame=FRAME, bare=empty)
    gains = calibrate_torques(
        robot.arm, empty, weighed, load_mass=robot.weighed.mass, frame=FRAME
    )
    after = identify_load(unknown, robot.arm, frame=FRAME, bare=empty, gains=gains)
    mass = robot.unknown.mass
    return _result("before", before, mass) | _result("after", after, mass)


def _result(name: str, load: LoadEstimate, mass: float) -> dict[str, float]:
    low, high = load.interval(0.95)[0]
    return {
        f"{name}_error": load.mass / mass - 1.0,
        f"{name}_std": load.std.mass / mass,
        f"{name}_holds": float(low <= mass <= high),
    }


def summary(name: str, rows: list[dict[str, float]]) -> dict[str, object]:
    """Coverage and errors of one arm's robots so far."""
    columns = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    answer: dict[str, object] = {"arm": name, "runs": len(rows)}
    for when in ("before", "after"):
        error, std = columns[f"{when}_error"], columns[f"{when}_std"]
        answer |= {
            f"{when}_coverage": round(float(columns[f"{when}_holds"].mean()), 3),
            f"{when}_median_error": round(float(np.median(np.abs(error))), 4),
            f"{when}_bias": round(float(error.mean()), 4),
            f"{when}_scatter": round(float(error.std()), 4),
            f"{when}_std": round(float(np.median(std)), 4),
        }
    return answer


def main() -> None:
    """Print a summary per arm after every batch: a run cut short still counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--arm", choices=sorted(CAPACITY), action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows: dict[str, list[dict[str, float]]] = {
        name: [] for name in options.arm or ("panda", "ur10")
    }
    plans = {
        name: design_load_excitation(aw.load_arm(name), FRAME, candidates=60)
        for name in rows
    }
    for first in range(0, options.runs, _BATCH):
        count = min(_BATCH, options.runs - first)
        for name, plan in plans.items():
            several = robots(name, count, plan.motion, options.seed + first)
            rows[name] += [estimates(robot) for robot in several]
            print(json.dumps(summary(name, rows[name])), flush=True)


if __name__ == "__main__":
    main()
