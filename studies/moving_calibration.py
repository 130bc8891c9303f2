"""Study of calibration by moving: chains of all kinds, and known arms, many sensors.

Each run is an arm whose masses differ from its description, with dry friction and bent
sensors of random gain, sign and offset, calibrated from nothing. A table compares what
was returned with the truth, in our plant and in MuJoCo's.

    python -m studies.moving_calibration --sets 20
    python -m studies.moving_calibration --arms panda ur10 puma560 iiwa --sets 3
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import (
    BASE,
    Arm,
    Drive,
    InertialParameters,
    Joint,
    Link,
    load_arm,
)
from armwise.calibration import (
    Calibration,
    Flaws,
    Moves,
    Observability,
    Structure,
    calibrate,
    prospects,
)
from armwise.dynamics import Dynamics
from armwise.errors import ArmwiseError
from armwise.plants import (
    Actuator,
    AnalogSensor,
    Friction,
    MujocoArm,
    Plant,
    SimulatedArm,
    perturbed,
)

if TYPE_CHECKING:
    from jaxtyping import Float

FULL_SCALE = 6.0
"""Readings in [V] that joints may reach."""

CONVERTER = 10.0
"""Readings in [V] at which converters end."""

BEND = 0.004
"""Largest deviation of sensors from their line, as a fraction of the converter's."""

KINDS = ("x", "y", "z", "skew", "mixed")


def chain(kind: str, links: int, seed: int = 0) -> Arm:
    """A chain of links of some 0.25 m and 1 kg about x, y, z, skew or mixed axes."""
    random = np.random.default_rng([seed, links, KINDS.index(kind)])
    unit = {"x": np.eye(3)[0], "y": np.eye(3)[1], "z": np.eye(3)[2]}
    joints, bodies = [], []
    for k in range(links):
        mixed = "yxz"[k % 3]
        axis = unit.get(mixed if kind == "mixed" else kind)
        if axis is None:
            axis = _direction(random)
        origin = np.eye(4)
        if k:
            origin[:3, 3] = 0.25 * _across(joints[-1].axis, random)
        mass = float(random.uniform(0.6, 1.5)) * 0.85**k
        center = float(random.uniform(0.08, 0.15)) * _across(axis, random)
        inertia = InertialParameters.from_center_of_mass(
            mass, center, mass * np.diag(random.uniform(1e-3, 3e-3, 3) + 1e-3)
        )
        name = f"joint_{k + 1}"
        joints.append(Joint(name, "revolute", k - 1 if k else BASE, origin, axis))
        bodies.append(Link(f"link_{k + 1}", inertia))
    # Across x and y axes gravity points down; z axes lie in a tilted rig.
    gravity = 9.81 * (np.array([0.0, -1.0, 0.0]) if kind == "z" else -np.eye(3)[2])
    if kind == "skew":
        gravity = 9.81 * _direction(random)
    return _driven(Arm(f"{kind}{links}", tuple(joints), tuple(bodies), gravity=gravity))


def _direction(random: np.random.Generator) -> np.ndarray:
    x = random.normal(size=3)
    return np.asarray(x / np.linalg.norm(x))


def _across(axis: np.ndarray, random: np.random.Generator) -> np.ndarray:
    x = np.cross(axis, _direction(random))
    return np.asarray(x / np.linalg.norm(x))


def _driven(arm: Arm) -> Arm:
    """With motors in proportion to the gravity that each joint bears."""
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (200, arm.dof))
    load = np.abs(Dynamics(arm).gravity_torque(q)).max(axis=0)
    load = np.maximum(load, 0.05 * load.max())
    joints = []
    for joint, most in zip(arm.joints, load, strict=True):
        limits = joint.limits
        effort = limits.effort if np.isfinite(limits.effort) else 4.0 * float(most)
        joints.append(replace(joint, limits=replace(limits, effort=effort)))
    return replace(arm, joints=tuple(joints))


def worn(arm: Arm, random: np.random.Generator) -> Arm:
    """The arm as it really is: masses 20 % off, friction of 4 to 8 % of its load."""
    true = perturbed(arm, 0.2, random)
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (200, arm.dof))
    load = np.abs(Dynamics(arm).gravity_torque(q)).max(axis=0)
    load = np.maximum(load, 0.05 * load.max())
    M = np.diagonal(Dynamics(true).mass_matrix(q), axis1=1, axis2=2).mean(axis=0)
    joints = []
    for joint, most, inertia in zip(true.joints, load, M, strict=True):
        drive = Drive(
            rotor_inertia=max(joint.drive.rotor_inertia, 0.05 * float(inertia)),
            viscous=float(0.02 * most * random.uniform(0.5, 1.5)),
            coulomb=float(most * random.uniform(0.04, 0.08)),
            offset=float(most * random.uniform(-0.01, 0.01)),
        )
        joints.append(replace(joint, drive=drive))
    return replace(true, joints=tuple(joints))


@dataclass(frozen=True, eq=False)
class Sensors:
    """Random sensors: θ = α v + β about which v bends in an S.

    Attributes:
        alpha, beta: Of the line through the converter's ends.
        bend: Largest deviation as a fraction of the converter's range.
    """

    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    bend: Float[np.ndarray, " dof"]

    @classmethod
    def drawn(cls, arm: Arm, random: np.random.Generator) -> Sensors:
        """Of either sign; ranges within the joints' limits where they have any."""
        n = arm.dof
        half = random.uniform(0.7, 1.2, n)
        middle = random.uniform(-np.pi, np.pi, n)
        low, high = arm.limits("lower"), arm.limits("upper")
        has = np.isfinite(low) & np.isfinite(high) & (high - low < 2.0 * np.pi)
        half = np.where(has, np.minimum(half, 0.45 * (high - low)), half)
        with np.errstate(invalid="ignore"):
            inside = low + half + random.uniform(size=n) * (high - low - 2.0 * half)
        middle = np.where(has, inside, middle)
        sign = random.choice([-1.0, 1.0], n)
        return cls(
            sign * half / FULL_SCALE, middle, BEND * random.uniform(-1.0, 1.0, n)
        )

    def mounted(self) -> AnalogSensor:
        """For a plant."""
        return AnalogSensor(
            self.alpha, self.beta, self.bend, 3e-4, bits=16, full_scale=CONVERTER
        )

    def line(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """α and β of the best lines between two readings of each joint."""
        alpha, beta = np.empty_like(self.alpha), np.empty_like(self.beta)
        straight = np.linspace(-1.2 * CONVERTER, 1.2 * CONVERTER, 24_001)
        x = straight / CONVERTER
        for j in range(alpha.size):
            bow = 1.5 * np.sqrt(3.0) * (x - x**3)
            read = straight + self.bend[j] * CONVERTER * bow
            grid = np.linspace(low[j], high[j], 2001)
            slope, offset = np.polyfit(grid, np.interp(grid, read, straight), 1)
            alpha[j] = self.alpha[j] * slope
            beta[j] = self.beta[j] + self.alpha[j] * offset
        return alpha, beta


def mounted_plant(
    arm: Arm, engine: str, sensors: Sensors, random: np.random.Generator, seed: int
) -> Plant:
    """One worn arm with these sensors, in our plant or in MuJoCo."""
    true = worn(arm, random)
    actuator = Actuator(saturation=arm.limits("effort"))
    if engine == "mujoco":
        return MujocoArm(
            true, sensors=[sensors.mounted()], actuator=actuator, seed=seed,
            control_rate_hz=250.0, plant_rate_hz=1000.0, keeps_truth=False,
        )  # fmt: skip
    return SimulatedArm(
        arm, true_arm=true, sensors=[sensors.mounted()], actuator=actuator, seed=seed,
        friction=Friction(static=1.2), control_rate_hz=250.0, plant_rate_hz=2000.0,
        keeps_truth=False,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Run:
    """One calibration beside the truth.

    Attributes:
        gain_error, offset_error: Relative, and in [rad]; NaN where unknown.
        gain_sigmas, offset_sigmas: The same in their own standard deviations.
        promised: How many unknowns were sought.
        moved: Time in motion in [s].
        took: Processor time in [s].
        failure: Why there is nothing, in words.
    """

    gain_error: Float[np.ndarray, " dof"]
    offset_error: Float[np.ndarray, " dof"]
    gain_sigmas: Float[np.ndarray, " dof"]
    offset_sigmas: Float[np.ndarray, " dof"]
    promised: int
    moved: float
    took: float
    failure: str = ""


def one_run(
    arm: Arm,
    engine: str,
    seed: int,
    outlook: Observability | None = None,
    structure: Structure | None = None,
    moves: Moves | None = None,
) -> Run:
    """Calibrate one arm with one set of sensors."""
    random = np.random.default_rng(seed)
    sensors = Sensors.drawn(arm, random)
    plant = mounted_plant(arm, engine, sensors, random, seed)
    began = time.process_time()
    nothing = np.full(arm.dof, np.nan)
    structure = structure or Structure(arm, flaws=Flaws(bend=0.005))
    outlook = outlook or prospects(structure, moves=moves)
    promised = int(outlook.is_sought.sum())
    try:
        result = calibrate(
            plant, structure, full_scale=FULL_SCALE, posture=sensors.beta,
            outlook=outlook, moves=moves,
        )  # fmt: skip
    except ArmwiseError as error:
        took = time.process_time() - began
        return Run(*(4 * [nothing]), promised, 0.0, took, str(error))
    took = time.process_time() - began
    alpha, beta = sensors.line(*_visited(result))
    gain = result.alpha / alpha - 1.0
    offset = np.angle(np.exp(1j * (result.beta - beta)))
    moved = sum(float(r["volts_1"].time[-1]) for r in result.recordings)
    return Run(
        gain, offset, gain / (result.alpha_std / np.abs(result.alpha)),
        offset / result.beta_std, promised, moved, took,
    )  # fmt: skip


def _visited(result: Calibration) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest reading of each joint."""
    n = len(result.joint_names)
    readings = [
        [r[f"volts_{j + 1}"].values for r in result.recordings] for j in range(n)
    ]
    low = np.array([min(float(v.min()) for v in row) for row in readings])
    high = np.array([max(float(v.max()) for v in row) for row in readings])
    return low, high


def summary(name: str, engine: str, runs: Sequence[Run]) -> str:
    """One line of the table."""
    gains = np.abs(np.array([r.gain_error for r in runs]))
    offsets = np.rad2deg(np.abs(np.array([r.offset_error for r in runs])))
    sigmas = np.abs(
        np.concatenate([np.ravel([r.gain_sigmas, r.offset_sigmas]) for r in runs])
    )
    sigmas = sigmas[np.isfinite(sigmas)]
    promised = sum(r.promised for r in runs)
    failed = sum(bool(r.failure) for r in runs)
    worst = float(np.max(sigmas, initial=0.0))
    covered = float(np.mean(sigmas <= 1.96)) if sigmas.size else np.nan
    return (
        f"{name:<10} {engine:<7} {len(runs):>4} {promised:>8} {sigmas.size:>8} "
        f"{100.0 * _most(gains):>9.3f} {_most(offsets):>10.3f} {100.0 * covered:>8.1f} "
        f"{worst:>7.2f} {failed:>6} {np.median([r.moved for r in runs]):>6.0f} "
        f"{np.median([r.took for r in runs]):>6.1f}"
    )


def _most(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(np.max(values, initial=0.0))


HEADER = (
    "arm        plant   runs promised returned  gain [%] offset [°]  cover % "
    "worst σ  failed  moved   took"
)


def main() -> None:
    """Print the table."""
    from argparse import ArgumentParser

    parser = ArgumentParser(description="Calibration by moving, beside the truth.")
    parser.add_argument("--sets", type=int, default=20, help="Sensor sets of each arm.")
    parser.add_argument("--first", type=int, default=0, help="First seed.")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--links", nargs="*", type=int, default=[2, 3, 4, 5, 6])
    parser.add_argument("--plants", nargs="*", default=["ours", "mujoco"])
    parser.add_argument("--arms", nargs="*", help="Names or files instead of chains.")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    arms = (
        [_driven(load_arm(name)) for name in options.arms]
        if options.arms
        else [chain(kind, n) for n in options.links for kind in options.kinds]
    )
    print(HEADER, flush=True)
    everything: dict[str, list[Run]] = {engine: [] for engine in options.plants}
    for arm in arms:
        outlook = prospects(Structure(arm, flaws=Flaws(bend=0.005)))
        if options.verbose:
            print(outlook)
        for engine in options.plants:
            runs = []
            for seed in range(options.first, options.first + options.sets):
                runs.append(one_run(arm, engine, seed, outlook))
                if options.verbose:
                    _show(runs[-1], seed)
            everything[engine] += runs
            print(summary(Path(arm.name).stem[:10], engine, runs), flush=True)
    for engine, runs in everything.items():
        print(summary("all", engine, runs), flush=True)


def _show(run: Run, seed: int) -> None:
    with np.printoptions(precision=2, suppress=True, linewidth=150):
        print(
            f"  {seed} gains % {100 * run.gain_error} σ {run.gain_sigmas}\n"
            f"    offsets ° {np.rad2deg(run.offset_error)} σ {run.offset_sigmas} "
            f"moved {run.moved:.0f} took {run.took:.1f} {run.failure}",
            flush=True,
        )


if __name__ == "__main__":
    main()
