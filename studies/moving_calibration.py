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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters, Joint, Link, load_arm
from armwise.calibration import (
    FULL_SCALE,
    Calibration,
    Flaws,
    Moves,
    Observability,
    Structure,
    UnknownSensors,
    calibrate_batch,
    prospects,
    rehearse,
)
from armwise.errors import ArmwiseError

if TYPE_CHECKING:
    from jaxtyping import Float

KINDS = ("x", "y", "z", "skew", "mixed")


def chain(kind: str, links: int, seed: int = 0) -> Arm:
    """A chain of links of some 0.25 m and 1 kg about x, y, z, skew or mixed axes."""
    random = np.random.default_rng([seed, links, KINDS.index(kind)])
    unit = {"x": np.eye(3)[0], "y": np.eye(3)[1], "z": np.eye(3)[2]}
    joints: list[Joint] = []
    bodies: list[Link] = []
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
    return Arm(f"{kind}{links}", tuple(joints), tuple(bodies), gravity=gravity)


def _direction(random: np.random.Generator) -> np.ndarray:
    x = random.normal(size=3)
    return np.asarray(x / np.linalg.norm(x))


def _across(axis: np.ndarray, random: np.random.Generator) -> np.ndarray:
    x = np.cross(axis, _direction(random))
    return np.asarray(x / np.linalg.norm(x))


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


def runs_of(
    structure: Structure,
    engine: str,
    seeds: Sequence[int],
    outlook: Observability,
    moves: Moves | None = None,
    backlash: float = 0.0,
) -> list[Run]:
    """Calibrate arms with sets of sensors, side by side."""
    began = time.process_time()
    rehearsal = rehearse(structure, seeds, mujoco=engine == "mujoco", backlash=backlash)
    answers: Sequence[Calibration | ArmwiseError]
    try:
        answers = calibrate_batch(
            rehearsal.plant, structure, full_scale=FULL_SCALE, effort=rehearsal.effort,
            posture=rehearsal.posture, outlook=outlook, moves=moves,
        )  # fmt: skip
    except ArmwiseError as error:
        answers = [error] * len(seeds)
    took = (time.process_time() - began) / len(seeds)
    return [
        _compared(answer, rehearsal.sensors.of(b), outlook, took)
        for b, answer in enumerate(answers)
    ]


def _compared(
    answer: Calibration | ArmwiseError,
    truth: UnknownSensors,
    outlook: Observability,
    took: float,
) -> Run:
    promised = int(outlook.is_sought.sum())
    if isinstance(answer, ArmwiseError):
        nothing = np.full(truth.alpha.size, np.nan)
        return Run(nothing, nothing, nothing, nothing, promised, 0.0, took, str(answer))
    alpha, beta = truth.lines(answer.recordings)
    gain = answer.alpha / alpha - 1.0
    offset = np.angle(np.exp(1j * (answer.beta - beta)))
    moved = sum(float(r["volts_1"].time[-1]) for r in answer.recordings)
    return Run(
        gain, offset, gain / (answer.alpha_std / np.abs(answer.alpha)),
        offset / answer.beta_std, promised, moved, took,
    )  # fmt: skip


def summary(name: str, engine: str, runs: Sequence[Run]) -> str:
    """One line of the table."""
    gains = np.abs(np.concatenate([r.gain_error for r in runs]))
    offsets = np.rad2deg(np.abs(np.concatenate([r.offset_error for r in runs])))
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
    parser.add_argument("--masses-known", action="store_true")
    parser.add_argument("--backlash", type=float, default=0.0, help="In [rad].")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    bodies = tuple(f"*.{x}" for x in ("m", "mx", "my", "mz"))
    known = bodies if options.masses_known else ()
    arms = (
        [load_arm(name) for name in options.arms]
        if options.arms
        else [chain(kind, n) for n in options.links for kind in options.kinds]
    )
    print(HEADER, flush=True)
    everything: dict[str, list[Run]] = {engine: [] for engine in options.plants}
    for arm in arms:
        structure = Structure(arm, known, flaws=Flaws(bend=0.005))
        effort = rehearse(arm).effort
        outlook = prospects(structure, effort=effort)
        if options.verbose:
            print(outlook)
        for engine in options.plants:
            seeds = range(options.first, options.first + options.sets)
            runs = runs_of(structure, engine, seeds, outlook, None, options.backlash)
            for seed, run in zip(seeds, runs, strict=True):
                if options.verbose or run.failure:
                    _show(run, seed)
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
