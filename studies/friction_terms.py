"""Choice of friction terms on plants whose friction is known, term by term.

Every run has an arm, a description that is off by a fifth, a motion, noise and terms of
its own; it is identified as a user would. Counted: terms that are there and were
chosen, runs without a term that is not there, and coefficients within their intervals.

    python -m studies.friction_terms --runs 200
    python -m studies.friction_terms panda --plant mujoco --kinds all --runs 5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.control import ComputedTorque, largest_torque
from armwise.dynamics import Dynamics
from armwise.errors import ArmwiseError
from armwise.identification import Estimate, identify
from armwise.jobs import InProcess, JobRunner, ProcessPool
from armwise.motions import Motion, random_motion
from armwise.plants import Friction, MujocoArm, Plant, SimulatedArm, perturbed, run
from armwise.recordings import Channel, Recording, Samples
from armwise.regression import (
    Columns,
    FrictionTerm,
    heat_coefficients,
    interval_factor,
)
from studies.foreign_plants import with_drives

KINDS = ("plain", "load", "hysteresis", "ripple", "warming", "temperature", "all")
"""What a plant has beyond viscous and Coulomb friction: "warming" falls with work done,
"temperature" with a thermometer's reading, "all" has all but the latter."""

_LONG = 120.0
"""Length in [s] of logs in which something warms up; others last a quarter of it."""

_AMBIENT, _HOT = 24.0, 45.0
"""Temperatures in [°C] that thermometers go from and to."""

PLANTS = ("prescribed", "simulated", "mujoco")
"""A motion as planned, torques by inverse dynamics; or a closed loop on a plant."""

_RATE = 500.0
"""Samples a second of a log in [Hz]."""

# A joint that carries next to no load, or none that varies, shows no load friction:
# terms are given to the two joints with the largest torque, and to others.
_LOADED = 2
"""Joints with load friction: those whose torque is largest."""


@dataclass(frozen=True)
class TermOutcome:
    """What became of one run.

    Attributes:
        there: For each term of the plant, whether it was chosen.
        phantoms: Names of chosen terms that the plant has not.
        inside: For each that was chosen rightly, whether its interval holds the truth.
    """

    there: tuple[bool, ...]
    phantoms: tuple[str, ...]
    inside: tuple[bool, ...]


Terms = tuple[tuple[FrictionTerm, float], ...]


def true_terms(
    arm: Arm,
    kind: str,
    size: np.ndarray,
    reach: np.ndarray,
    seed: int,
    friction: np.ndarray,
    power: np.ndarray,
) -> Terms:
    """Terms of a plant: on two joints each, sizes and scales of their own.

    Args:
        arm: The arm.
        kind: One of KINDS.
        size: Largest torque of each joint in [N m].
        reach: Range of each joint in [rad].
        seed: Of sizes, scales and joints.
        friction: Coulomb friction of each joint in [N m].
        power: Power in [W] that each joint dissipates on the average.
    """
    rng = np.random.default_rng([seed, 17])
    ranked = np.argsort(-size)
    heavy, light = ranked[:_LOADED], ranked[_LOADED:]
    names = [arm.driven[i].name for i in arm.coordinates]
    terms: list[tuple[FrictionTerm, float]] = []
    if kind in ("load", "all"):
        for j in heavy:
            term = FrictionTerm(arm.coordinates[j], names[j], "load")
            terms.append((term, float(rng.uniform(0.06, 0.15))))
    if kind in ("hysteresis", "all"):
        for j in rng.choice(light, 2, replace=False):
            width = float(rng.choice([4e-3, 16e-3, 64e-3]))
            term = FrictionTerm(arm.coordinates[j], names[j], "hysteresis", width)
            terms.append((term, float(rng.uniform(0.08, 0.2) * size[j])))
    if kind in ("ripple", "all"):
        j = int(rng.choice(light))
        period = float(reach[j] / rng.uniform(5.0, 15.0))
        for form in ("ripple_sine", "ripple_cosine"):
            term = FrictionTerm(arm.coordinates[j], names[j], form, period)
            sign = float(rng.choice([-1.0, 1.0]))
            terms.append((term, sign * float(rng.uniform(0.04, 0.08) * size[j])))
    if kind in ("warming", "temperature", "all"):
        for j in rng.choice(len(size), 2, replace=False):
            # Cold friction falls by 30 to 60 % of Coulomb's.
            fall = float(rng.uniform(0.3, 0.6) * friction[j])
            form, scale, over = "coulomb_warming", rng.uniform(0.25, 1.0), power[j]
            if kind == "temperature":
                form, scale, over = "coulomb_temperature", 0.3, _HOT - _AMBIENT
            term = FrictionTerm(
                arm.coordinates[j], names[j], form, float(f"{scale * _LONG:.2g}")
            )
            terms.append((term, -fall / float(over)))
    return tuple(terms)


def run_once(name: str, kind: str, plant: str, seed: int) -> TermOutcome | str:
    """Move and identify one plant; or why that was not possible."""
    rng = np.random.default_rng([seed, 41])
    arm = load_arm(name)
    length, harmonics = 0.25 * _LONG, 20
    if kind in ("warming", "temperature", "all"):
        length, harmonics = _LONG, 80
    motion = random_motion(
        arm, seed, length, harmonics=harmonics, roughness=0.5, fastest=1.6
    )
    size = largest_torque(arm, motion)
    size = np.maximum(size, 0.04 * size.max())
    truth = perturbed(with_drives(arm, size, 0.08), 0.05, rng)
    description = perturbed(arm, 0.2, rng)
    path = motion.sample(np.linspace(0.0, motion.duration, 4000))
    speed = np.abs(path.qd)
    heat = heat_coefficients(truth, truth.parameters)[:, list(arm.coordinates)]
    power = (heat[0] * speed + heat[1] * speed**2).mean(axis=0)
    reach = np.ptp(path.q, axis=0)
    terms = true_terms(arm, kind, size, reach, seed, heat[0], power)
    try:
        time = np.arange(round(motion.duration * _RATE)) / _RATE
        # Joints warm up at paces of their own.
        pace = time[:, None] / rng.uniform(0.2 * _LONG, 0.6 * _LONG, arm.dof)
        temperature = _AMBIENT + (_HOT - _AMBIENT) * -np.expm1(-pace)
        q, tau = moved(truth, terms, motion, plant, temperature)
        tau = tau + 0.006 * size * rng.standard_normal(tau.shape)
        # An encoder of 17 bits.
        count = 2.0 * np.pi / 2**17
        time = np.arange(len(q)) / _RATE
        log = Recording.from_arrays(time, q=count * np.round(q / count), tau=tau)
        if kind == "temperature":
            # Thermometers count whole degrees.
            readings = np.round(temperature[: len(q)]).T
            log = log.with_channels(
                {
                    f"temperature_{j + 1}": Channel(time, x)
                    for j, x in enumerate(readings)
                }
            )
        estimate = identify(description, log)
    except (ArmwiseError, RuntimeError) as error:
        return str(error)
    return outcome(estimate, terms)


def moved(
    truth: Arm, terms: Terms, motion: Motion, plant: str, temperature: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and motor torques of an arm with these terms."""
    if plant == "prescribed":
        time = np.arange(round(motion.duration * _RATE)) / _RATE
        q, qd, qdd = motion.sample(time)
        tau = Dynamics(truth).inverse_dynamics(q, qd, qdd)
        samples = Samples(time, q, qd, qdd, tau, temperature=temperature)
        columns = Columns(truth, tuple(term for term, _ in terms))
        shapes = columns.friction_columns(samples, slice(0, len(samples)))
        return q, tau + shapes @ np.array([c for _, c in terms])
    if any(term.kind.uses_temperature for term, _ in terms):
        raise RuntimeError("Thermometers are for prescribed motion.")
    further = Friction(terms=terms)
    loop: Plant
    if plant == "simulated":
        loop = SimulatedArm(truth, friction=further)
    else:
        # Soft friction is less than Coulomb's at low speed: a term that is there.
        loop = MujocoArm(truth, friction=further, friction_holds=True)
    log = run(loop, ComputedTorque(truth, 400.0, 40.0), motion)
    channels = [
        [log[f"{name}_{i + 1}"] for i in range(truth.dof)] for name in ("q", "tau")
    ]
    time = channels[0][0].time
    step = max(1, round(1.0 / (_RATE * float(np.median(np.diff(time))))))
    q, tau = (np.stack([c.values for c in group], axis=1) for group in channels)
    return q[::step], tau[::step]


def outcome(estimate: Estimate, terms: Terms) -> TermOutcome:
    """Compare chosen terms with those of the plant.

    A hysteresis or a ripple counts as found whatever its width, and so does warming
    whatever its time constant: they are tried on a grid. Its coefficient is compared
    where that is the plant's own; friction per degree is the same about any.
    """
    chosen = [term for term, _ in estimate.friction]
    own = {(term.joint, term.form) for term, _ in terms}
    there = tuple(
        any((t.joint, t.form) == (term.joint, term.form) for t in chosen)
        for term, _ in terms
    )
    phantoms = [t.name for t in chosen if (t.joint, t.form) not in own]
    leaders = [estimate.base.names[i] for i in estimate.base.indices]
    inside = []
    names = {(t.joint, t.form): t.name for t in chosen if t.kind.uses_temperature}
    for term, coefficient in terms:
        name = names.get((term.joint, term.form), term.name)
        if name in leaders:
            row = leaders.index(name)
            reach = interval_factor() * estimate.base_std[row]
            error = abs(estimate.base_values[row] - coefficient)
            inside.append(bool(error <= reach))
    return TermOutcome(there, tuple(phantoms), tuple(inside))


def table(outcomes: Sequence[TermOutcome]) -> list[str]:
    """Three lines: terms found, runs without phantoms, coefficients within."""
    chosen = [x for one in outcomes for x in one.there]
    clean = sum(not one.phantoms for one in outcomes)
    inside = [x for one in outcomes for x in one.inside]
    whole = sum(all(one.there) and not one.phantoms for one in outcomes)
    lines = [f"  exactly the right terms in {whole} of {len(outcomes)} runs"]
    lines.append(f"  no term that is not there in {clean} of {len(outcomes)} runs")
    if chosen:
        lines.append(f"  {sum(chosen)} of {len(chosen)} terms chosen")
    if inside:
        lines.append(f"  {sum(inside)} of {len(inside)} coefficients in their interval")
    names = sorted(name for one in outcomes for name in one.phantoms)
    if names:
        lines.append(f"  not there: {', '.join(names)}")
    return lines


def main() -> None:
    """Run the study from the command line."""
    from argparse import ArgumentParser

    parser = ArgumentParser(description="Choice of friction terms on known plants.")
    parser.add_argument("arms", nargs="*", default=["ur5", "panda"])
    parser.add_argument("--runs", type=int, default=10, help="Of each arm and kind.")
    parser.add_argument("--first", type=int, default=0, help="Seed of the first run.")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--plant", default="prescribed", choices=PLANTS)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.runs)
    pool: JobRunner = (
        ProcessPool(options.workers) if options.workers > 1 else InProcess()
    )
    with pool:
        for name in options.arms:
            for kind in options.kinds:
                answers = []
                job = partial(run_once, name, kind, options.plant)
                for _, answer in pool.run(job, seeds):
                    answers.append(answer)
                    print(f"\r{len(answers)} of {len(seeds)}", end="", flush=True)
                outcomes = [x for x in answers if isinstance(x, TermOutcome)]
                print(f"\r{name}, {kind}, {options.plant}: {len(outcomes)} runs")
                print("\n".join(table(outcomes)) if outcomes else "  none")
                refused = {x for x in answers if isinstance(x, str)}
                for text in sorted(refused):
                    print(f"  refused: {text}")


if __name__ == "__main__":
    main()
