"""Intervals and torque bands of the physically consistent fit, on simulated arms.

Arms with friction in closed loop, with noise, described wrongly by a fifth and without
any friction. Counted are the parameters that stand alone (`Estimate.std`) inside their
95 % intervals, group by group, and the noise-free torques of a motion never fitted
inside the 90 % band of draws.

    python -m studies.consistent_intervals panda ur10 --runs 200
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import armwise as aw
from armwise.arms import Arm, load_arm
from armwise.identification.coverage import (
    TORQUE_LAG,
    loop_recordings,
    loop_setting,
)
from armwise.motions import random_motion
from armwise.plants import perturbed
from armwise.recordings import prepare
from armwise.regression import interval_factor

GROUPS = {
    "first moments": ("mx", "my", "mz"),
    "inertias": ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"),
    "rotor": ("rotor_inertia",),
    "viscous": ("viscous",),
    "coulomb": ("coulomb",),
    "offset": ("offset",),
}
"""Endings of parameters' names, by what is counted together."""

_RUNS_OF_ONE = 10
"""Logs of one motion and description, before both are drawn anew."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one log gave.

    Attributes:
        inside: By group, for each parameter that stands alone, whether it is inside.
        band: Fraction of each joint's torques inside the band.
    """

    inside: dict[str, list[bool]]
    band: np.ndarray


def with_friction(arm: Arm) -> Arm:
    """The arm with friction as a real one's: a twentieth of its usual torque."""
    size = np.abs(_torques(arm, 0)).max(axis=0)
    parameters = arm.parameters.copy()
    for j in range(arm.dof):
        for kind, fraction in (("coulomb", 0.03), ("viscous", 0.02)):
            k = arm.layout.joint(j, kind)
            parameters[k] = max(parameters[k], fraction * size[j])
        # Motors of geared arms weigh at their joints what links do.
        k = arm.layout.joint(j, "rotor_inertia")
        parameters[k] = max(parameters[k], 0.005 * size[j])
    return arm.with_parameters(parameters)


def _torques(arm: Arm, seed: int) -> np.ndarray:
    motion = random_motion(arm, seed).sample(np.arange(0.0, 8.0, 0.01))
    return aw.Dynamics(arm).inverse_dynamics(motion.q, motion.qd, motion.qdd)


def outcomes(arm: Arm, runs: int, seed: int) -> Iterator[Outcome]:
    """Identify log after log of arms with friction."""
    truth = with_friction(arm)
    for first in range(0, runs, _RUNS_OF_ONE):
        own = seed + first
        described = perturbed(truth, 0.2, own)
        parameters = described.parameters.copy()
        for kind in ("coulomb", "viscous", "rotor_inertia"):
            parameters[truth.layout.drive(kind)] = 0.0
        described = described.with_parameters(parameters)
        # A 17-bit encoder, and noise of a hundredth of the torque.
        setting = loop_setting(truth, None, own, 2**17, 0.01)
        like = None
        for log in loop_recordings(setting, min(_RUNS_OF_ONE, runs - first), own):
            if like is None:
                like = prepare(log, 10.0, arm=described, lag=TORQUE_LAG)
            yield _outcome(described, truth, prepare(log, like=like), own)


def _outcome(described: Arm, truth: Arm, data: aw.Samples, seed: int) -> Outcome:
    estimate = aw.identify(described, data, friction="linear", gain_std=0.0)
    error = np.abs(estimate.parameters - truth.parameters)
    names = described.parameter_names
    is_alone = np.isfinite(estimate.std)
    inside = error <= interval_factor() * estimate.std
    groups = {
        group: [
            bool(inside[k])
            for k in np.flatnonzero(is_alone)
            if names[k].split(".")[-1] in endings
        ]
        for group, endings in GROUPS.items()
    }
    time = np.arange(0.0, 8.0, 0.01)
    motion = random_motion(truth, seed + 5_000_000).sample(time)
    tau = aw.Dynamics(truth).inverse_dynamics(motion.q, motion.qd, motion.qdd)
    unseen = aw.Samples(time=time, q=motion.q, qd=motion.qd, qdd=motion.qdd, tau=tau)
    return Outcome(groups, estimate.band(unseen, residual=False).holds(tau))


def main() -> None:
    """Print what holds, arm by arm, after every ten logs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("arms", nargs="+", metavar="ARM")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args()
    for name in options.arms:
        done: list[Outcome] = []
        for outcome in outcomes(load_arm(name), options.runs, options.first):
            done.append(outcome)
            if len(done) % _RUNS_OF_ONE == 0 or len(done) == options.runs:
                _show(name, done)


def _show(name: str, done: list[Outcome]) -> None:
    parts = []
    for group in GROUPS:
        values = [x for one in done for x in one.inside[group]]
        parts.append(f"{group} {100 * np.mean(values):.1f}" if values else f"{group} –")
    band = 100 * np.mean([one.band for one in done])
    print(
        f"{name}, {len(done)} runs: {', '.join(parts)}; band {band:.1f} %", flush=True
    )


if __name__ == "__main__":
    main()
