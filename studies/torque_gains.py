"""Torque gains by a weighed load: how often their 95 % intervals hold the truth.

An arm moves empty and with a load whose mass alone is known; `calibrate_torques`
answers what recorded torques must be multiplied by. Plants are our own simulated arm,
as `armwise simulate` runs it, and MuJoCo's of studies.foreign_plants, whose friction,
lag and controller nobody here wrote equations for. The description is the truth, or
off; the empty run is the same motion, or another.

    python -m studies.torque_gains --runs 2
    python -m studies.torque_gains ur10 robot.urdf --plants plain load --first 100
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import Arm, InertialParameters, load_arm
from armwise.calibration import calibrate_torques
from armwise.control import largest_torque, simulate_log
from armwise.errors import ArmwiseError
from armwise.motions import Motion, random_motion
from armwise.plants import Payload, carrying, perturbed
from armwise.recordings import Recording
from armwise.regression import interval_factor
from studies.foreign_plants import (
    ForeignLoop,
    PlantSetting,
    lively_motion,
    with_drives,
)

PLANTS = ("ours", "plain", "stribeck", "load", "elastic")
"""Our simulated arm with linear friction, and kinds of MuJoCo's."""

_SETTING = PlantSetting(rate_hz=500.0, encoder_bits=17, friction=0.1, stickiness=0.01)
"""Controller and drives of MuJoCo's arms."""


@dataclass(frozen=True, eq=False)
class WeighedRun:
    """Two logs of one robot, and what a calibration of its torques should find.

    Attributes:
        description: The arm as its user has it.
        empty, loaded: Logs without and with the load.
        load: The load.
        gain: True over recorded torque of every joint.
    """

    description: Arm
    empty: Recording
    loaded: Recording
    load: Payload
    gain: np.ndarray


def weighed_run(arm: Arm, plant: str, seed: int, gain_std: float = 0.0) -> WeighedRun:
    """Simulate one robot with a load and without, in turn the same motion or another.

    Args:
        arm: The make.
        plant: One of PLANTS.
        seed: Of the robot, the load, the motions and the noise.
        gain_std: By how much torques are recorded wrong, relative.
    """
    rng = np.random.default_rng([seed, 47])
    other = 2 * seed + seed % 2
    motions = [_motion(arm, plant, each) for each in (2 * seed, other)]
    size = largest_torque(arm, motions[0])
    size = np.maximum(size, 0.04 * size.max())
    load = Payload(arm.links[-1].name, _body(arm, rng))
    gain = np.exp(gain_std * rng.standard_normal(arm.dof))
    if plant == "ours":
        described = with_drives(arm, size, rng.uniform(0.02, 0.1))
        noise = float(rng.choice([0.002, 0.01]))
        logs = [
            simulate_log(real, motion, torque_noise=noise, seed=2 * seed + k)
            for k, (real, motion) in enumerate(
                zip((carrying(described, load), described), motions, strict=True)
            )
        ]
        loaded, empty = (_as_recorded(log, gain) for log in logs)
    else:
        described = perturbed(arm, float(rng.choice([0.0, 0.2])), rng)
        truth = perturbed(with_drives(arm, size, _SETTING.friction), 0.05, rng)
        setting = replace(_SETTING, kind=plant)
        lag = float(rng.uniform(*setting.lag))
        loaded, empty = (
            ForeignLoop(real, described, setting, size).log(motion, lag, rng, 1 / gain)
            for real, motion in zip(
                (carrying(truth, load), truth), motions, strict=True
            )
        )
    return WeighedRun(described, empty, loaded, load, gain)


def _motion(arm: Arm, plant: str, seed: int) -> Motion:
    """As armwise simulate draws one, or a lively one."""
    if plant == "ours":
        return random_motion(arm, seed, 10.0, fastest=1e3)
    return lively_motion(arm, seed, 15.0)


def _body(arm: Arm, rng: np.random.Generator) -> InertialParameters:
    """A load of a thirtieth to a sixth of the arm's mass, centimetres away."""
    mass = rng.uniform(0.03, 0.16) * sum(link.inertia.mass for link in arm.links)
    center = rng.uniform(-0.08, 0.08, 3)
    size = rng.uniform(0.03, 0.08, 3) ** 2
    inertia = mass * np.diag([size[1] + size[2], size[0] + size[2], size[0] + size[1]])
    return InertialParameters.from_center_of_mass(mass, center, inertia)


def _as_recorded(log: Recording, gain: np.ndarray) -> Recording:
    channels = dict(log.channels)
    for j, factor in enumerate(gain):
        torque = channels[f"tau_{j + 1}"]
        channels[f"tau_{j + 1}"] = replace(torque, values=torque.values / factor)
    return log.with_channels(channels)


def errors(run: WeighedRun) -> dict[str, list[float]]:
    """Errors of the gains the load shows, and in standard deviations."""
    found = calibrate_torques(
        run.description, run.empty, run.loaded,
        load_mass=run.load.inertia.mass, frame=run.load.frame,
    )  # fmt: skip
    hidden = {note.split(":")[0] for note in found.notes}
    shown = np.array([name not in hidden for name in found.joint_names])
    error = np.where(shown, found.gain - run.gain, np.nan)
    return {
        "relative": (error / run.gain).round(5).tolist(),
        "sigmas": (error / found.std).round(2).tolist(),
    }


def main() -> None:
    """Print every run, and a line per arm and plant."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("arms", nargs="*", default=["panda", "ur10", "puma560", "iiwa"])
    parser.add_argument("--plants", nargs="+", choices=PLANTS, default=list(PLANTS))
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="First seed.")
    parser.add_argument("--gain-std", type=float, default=0.0)
    options = parser.parse_args()
    every: dict[str, list[float]] = {}
    for seed in range(options.first, options.first + options.runs):
        for arm, plant in product(options.arms, options.plants):
            row: dict[str, Any] = {"arm": Path(arm).stem, "plant": plant, "seed": seed}
            try:
                row |= errors(weighed_run(load_arm(arm), plant, seed, options.gain_std))
            except (ArmwiseError, RuntimeError) as error:
                row |= {"said": str(error), "sigmas": []}
            print(json.dumps(row), flush=True)
            for group in (row["arm"], plant, "all"):
                every.setdefault(group, []).extend(row["sigmas"])
    for group, sigmas in every.items():
        z = np.array(sigmas)
        z = np.abs(z[np.isfinite(z)])
        if z.size:
            held = 100.0 * float(np.mean(z <= interval_factor()))
            print(f"{group}: {z.size} gains, {held:.1f} % held, worst {z.max():.1f}")


if __name__ == "__main__":
    main()
