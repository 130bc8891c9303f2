"""Choice of friction terms on plants whose friction is known, term by term.

Every run has an arm, a description that is off by a fifth, a motion, noise and terms of
its own; it is identified as a user would. Counted: terms that are there and were
chosen, runs without a term that is not there, and coefficients within their intervals.

    python -m studies.friction_terms --plant simulated mujoco --runs 10 --processes 16
    python -m studies.friction_terms panda --plant mujoco --kinds all --runs 5
    python -m studies.friction_terms --plant mujoco --runs 5 --motions moved/

Thermometers are for prescribed motion. A run takes 4 to 10 s of processor time, one of
the kinds warming and all 30 to 60 s, nearly all of it the closed loop: `--motions`
stores how arms moved, for later runs of another state of the selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.control import ComputedTorque, largest_torque
from armwise.dynamics import Dynamics
from armwise.errors import ArmwiseError
from armwise.files import replacing
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

KINDS = (
    "plain", "load", "hysteresis", "ripple", "motor", "warming", "temperature", "all",
)  # fmt: skip
"""What a plant has beyond viscous and Coulomb friction: "motor" is friction that varies
over a turn of the motor, "warming" falls with work done, "temperature" with a
thermometer's reading, "all" has all but these two. Every description knows its gears.
"""

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
    if kind == "motor":
        for j in rng.choice(len(size), 2, replace=False):
            period = 2.0 * np.pi / float(arm.driven[arm.coordinates[j]].gear or 1.0)
            part, phase = rng.uniform(0.25, 0.6), rng.uniform(0.0, 2.0 * np.pi)
            for form, of in (("coulomb_sine", np.cos), ("coulomb_cosine", np.sin)):
                term = FrictionTerm(arm.coordinates[j], names[j], form, period)
                terms.append((term, float(part * friction[j] * of(phase))))
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


def run_once(
    name: str, kind: str, plant: str, seed: int, motions: Path | None = None
) -> TermOutcome | str:
    """Move and identify one plant; or why that was not possible."""
    try:
        description, log, terms = known_log(name, kind, plant, seed, motions)
        return outcome(identify(description, log), terms)
    except (ArmwiseError, RuntimeError) as error:
        return str(error)


def known_log(
    name: str, kind: str, plant: str, seed: int, motions: Path | None = None
) -> tuple[Arm, Recording, Terms]:
    """The arm as its user has it, a log of the plant, and the plant's terms.

    Args:
        name: Of a bundled arm.
        kind: One of KINDS.
        plant: One of PLANTS.
        seed: Of all that is drawn.
        motions: Folder in which motions of plants are stored and looked for.
    """
    rng = np.random.default_rng([seed, 41])
    arm = _geared(load_arm(name), seed)
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
    time = np.arange(round(motion.duration * _RATE)) / _RATE
    # Joints warm up at paces of their own.
    pace = time[:, None] / rng.uniform(0.2 * _LONG, 0.6 * _LONG, arm.dof)
    temperature = _AMBIENT + (_HOT - _AMBIENT) * -np.expm1(-pace)
    stored = motions and motions / f"{name}-{kind}-{plant}-{seed}.npz"
    if stored is None or not stored.exists():
        q, tau = moved(truth, terms, motion, plant, temperature)
        if stored is not None:
            stored.parent.mkdir(parents=True, exist_ok=True)
            with replacing(stored) as temporary, temporary.open("wb") as file:
                np.savez(file, q=q, tau=tau)
    else:
        with np.load(stored, allow_pickle=False) as arrays:
            q, tau = arrays["q"], arrays["tau"]
    tau = tau + 0.006 * size * rng.standard_normal(tau.shape)
    # An encoder of 17 bits.
    count = 2.0 * np.pi / 2**17
    time = np.arange(len(q)) / _RATE
    log = Recording.from_arrays(time, q=count * np.round(q / count), tau=tau)
    if kind == "temperature":
        # Thermometers count whole degrees.
        readings = np.round(temperature[: len(q)]).T
        log = log.with_channels(
            {f"temperature_{j + 1}": Channel(time, x) for j, x in enumerate(readings)}
        )
    return description, log, terms


def _geared(arm: Arm, seed: int) -> Arm:
    """The arm with gears of its own, from belts to a joint's usual hundred."""
    rng = np.random.default_rng([seed, 53])
    gears = np.round(np.exp(rng.uniform(np.log(10.0), np.log(100.0), len(arm.joints))))
    pairs = zip(arm.joints, gears.tolist(), strict=True)
    return replace(arm, joints=tuple(replace(j, gear=gear) for j, gear in pairs))


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


HEADER = (
    f"{'plant':<12}{'arm':<8}{'kind':<12}{'runs':>5}{'right':>7}{'clean':>7}"
    f"{'terms':>10}{'inside':>10}"
)
"""Runs; with exactly the right terms; without one that is not there; terms that are
there and were chosen; coefficients within their 95 % interval."""


def row(name: str, outcomes: Sequence[TermOutcome]) -> str:
    """One line of counts."""
    chosen = [x for one in outcomes for x in one.there]
    inside = [x for one in outcomes for x in one.inside]
    clean = sum(not one.phantoms for one in outcomes)
    right = sum(all(one.there) and not one.phantoms for one in outcomes)
    terms, held = (f"{sum(x)}/{len(x)}" for x in (chosen, inside))
    return f"{name}{len(outcomes):>5}{right:>7}{clean:>7}{terms:>10}{held:>10}"


def main() -> None:
    """Run the study from the command line."""
    from argparse import ArgumentParser

    parser = ArgumentParser(description="Choice of friction terms on known plants.")
    parser.add_argument("arms", nargs="*", default=["ur5", "panda"])
    parser.add_argument("--runs", type=int, default=10, help="Of each arm and kind.")
    parser.add_argument("--first", type=int, default=0, help="Seed of the first run.")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--plant", nargs="+", default=PLANTS[:1], choices=PLANTS)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--motions", type=Path, help="Folder that stores motions.")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.runs)
    # Seed by seed, so that long and short runs are spread over the processes.
    items = [
        (arm, kind, plant, seed, options.motions)
        for seed in seeds
        for plant in options.plant
        for kind in options.kinds
        for arm in options.arms
    ]
    processes = options.processes
    pool: JobRunner = ProcessPool(processes) if processes > 1 else InProcess()
    answers: dict[tuple[str, str, str], list[TermOutcome]] = {}
    with pool:
        for number, answer in pool.run(_run, items):
            arm, kind, plant, seed, _ = items[number]
            if isinstance(answer, str):
                print(f"{plant} {arm} {kind} {seed}: refused: {answer}", flush=True)
                continue
            answers.setdefault((plant, arm, kind), []).append(answer)
            missing = sum(not there for there in answer.there)
            if missing or answer.phantoms:
                names = ", ".join(answer.phantoms) or "none"
                print(
                    f"{plant} {arm} {kind} {seed}: {missing} missing, "
                    f"not there: {names}",
                    flush=True,
                )
    print(HEADER)
    for (plant, arm, kind), outcomes in sorted(answers.items()):
        print(row(f"{plant:<12}{arm:<8}{kind:<12}", outcomes))
    for plant in options.plant:
        every = [x for key, own in answers.items() if key[0] == plant for x in own]
        print(row(f"{plant:<12}{'all':<8}{'all':<12}", every))


def _run(item: tuple[str, str, str, int, Path | None]) -> TermOutcome | str:
    return run_once(*item)


if __name__ == "__main__":
    main()
