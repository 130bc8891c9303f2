"""Losses that exports state, beside those that the gap of what was written shows.

Arms with friction that files can and cannot hold follow two motions in closed loop; one
is identified, the other is what losses are stated and measured on: stated of its motion
alone, a prediction, and beside its torques. Each file is read as its simulator reads
it: what that has no words for is gone. The measured loss is what the file's torque
error in `measure_gap` exceeds the estimate's by, in squares.

    python -m studies.export_losses panda ur10 tx40 --runs 2
"""

from __future__ import annotations

import argparse
import ast
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from armwise.arms import Arm, Drive, load_arm
from armwise.control import largest_torque
from armwise.identification import Estimate, identify
from armwise.jobs import InProcess, JobRunner, ProcessPool
from armwise.motions import Motion, random_motion
from armwise.plants import perturbed
from armwise.recordings import Recording, prepare
from armwise.regression import FrictionTerm, heat_coefficients
from armwise.simulators import export, measure_gap
from armwise.simulators.mujoco_runs import with_biases
from studies.foreign_plants import with_drives
from studies.friction_terms import Terms, moved, true_terms

KINDS = ("plain", "load", "hysteresis", "stribeck", "ripple", "warming")
"""What a plant has beyond viscous and Coulomb friction."""

TARGETS = {"mjcf": "xml", "urdf": "urdf", "sdf": "sdf", "isaaclab": "py", "mjlab": "py",
           "drake": "urdf"}  # fmt: skip
"""Targets, and how their files end."""

_SECONDS, _RATE = 16.0, 500.0
"""Length of a log in [s], and its rate in [Hz]."""

_WARMS = 4
"""How many times as long a log is in which drives warm up."""

_LEAST = 0.01
"""Fraction of a joint's torque below which a loss is not compared: noise is 0.6 %."""

# Squares are subtracted: beside an error twice as large, a correlation of 0.1 of the
# two is 40 % of the loss's own square.
_BESIDE = 0.5
"""Fraction of the estimate's own error below which it is not compared either."""


@dataclass(frozen=True)
class LossOutcome:
    """Stated and measured losses of one export, joint by joint, as fractions.

    Beside them the error of the estimate itself; `predicted` of the motion alone.
    """

    target: str
    own: tuple[float, ...]
    predicted: tuple[float, ...]
    stated: tuple[float, ...]
    measured: tuple[float, ...]

    def ratios(self, losses: tuple[float, ...]) -> list[float]:
        """Losses over those measured, where either is worth comparing."""
        joints = zip(losses, self.measured, self.own, strict=True)
        return [
            stated / max(measured, 1e-9)
            for stated, measured, own in joints
            if max(stated, measured) > max(_LEAST, _BESIDE * own)
        ]


def run_once(name: str, kind: str, seed: int) -> list[LossOutcome]:
    """Identify one plant, write every file, and replay the other log in each."""
    estimate, log = identified(name, kind, seed)
    outcomes = []
    samples = prepare(log, like=estimate.samples[0])
    # One low-pass for all: ripple and friction's steps are little without fast motion.
    gap = partial(
        measure_gap, recordings=[log], cutoff_hz=samples.preparation.cutoff_hz
    )
    (own,) = gap(estimate).motions.values()
    assert own.torque_error is not None
    planned = replace(samples, tau=np.zeros_like(samples.tau))
    with tempfile.TemporaryDirectory() as folder:
        for to, ending in TARGETS.items():
            path = Path(folder, f"{to}.{ending}")
            predicted, stated = (
                export(estimate, path, to=to, data=data).cost
                for data in (planned, samples)
            )
            read = as_read(to, path, estimate.prior_arm)
            (bare,) = gap(read).motions.values()
            assert bare.torque_error is not None
            excess = bare.torque_error**2 - own.torque_error**2
            measured = np.sqrt(np.maximum(excess, 0.0))
            figures = (own.torque_error, predicted, stated, measured)
            outcomes.append(LossOutcome(to, *(tuple(x.tolist()) for x in figures)))
    return outcomes


def identified(name: str, kind: str, seed: int) -> tuple[Estimate, Recording]:
    """An estimate of a plant with friction of its own, and another log of the plant."""
    rng = np.random.default_rng([seed, 43])
    arm = load_arm(name)
    times = _WARMS if kind == "warming" else 1
    motions = [
        random_motion(
            arm, 2 * seed + k, times * _SECONDS, harmonics=12 * times, roughness=0.5
        )
        for k in (0, 1)
    ]
    size = largest_torque(arm, motions[0])
    size = np.maximum(size, 0.04 * size.max())
    described = perturbed(arm, 0.1, rng)
    truth = with_drives(perturbed(arm, 0.1, rng), size, 0.08)
    if name == "tx40":
        # Motor 6 is turned by two joints.
        turned = {truth.coordinate_names[j]: 1.0 for j in (4, 5)}
        drive = Drive(0.01 * size[5], 0.08 * size[5], 0.08 * size[5])
        truth = truth.with_coupling("motor_6", turned)
        truth = replace(truth, couplings=(replace(truth.couplings[0], drive=drive),))
        described = described.with_coupling("motor_6", turned)
    terms = _terms(truth, kind, size, seed, motions[0])
    logs = []
    for motion in motions:
        temperature = np.zeros((0, arm.dof))
        q, tau = moved(truth, terms, motion, "simulated", temperature)
        tau = tau + 0.006 * size * rng.standard_normal(tau.shape)
        logs.append(Recording.from_arrays(np.arange(len(q)) / _RATE, q=q, tau=tau))
    return identify(described, logs[0]), logs[1]


def _terms(arm: Arm, kind: str, size: np.ndarray, seed: int, motion: Motion) -> Terms:
    heavy = np.argsort(-size)[:2]

    def term(j: int, form: str, scale: float) -> FrictionTerm:
        return FrictionTerm(arm.coordinates[j], arm.coordinate_names[j], form, scale)

    if kind == "stribeck":
        return tuple((term(j, kind, 0.05), float(0.06 * size[j])) for j in heavy)
    if kind == "warming":
        # Half of Coulomb's friction is gone by the end, a quarter of the time on.
        speed = np.abs(motion.sample(np.linspace(0.0, motion.duration, 4000)).qd)
        heat = heat_coefficients(arm, arm.parameters)[:, list(arm.coordinates)]
        power = (heat[0] * speed + heat[1] * speed**2).mean(axis=0)
        falls = -0.5 * heat[0] / power
        constant = 0.25 * motion.duration
        return tuple(
            (term(j, "coulomb_warming", constant), float(falls[j])) for j in heavy
        )
    nothing = np.zeros(arm.dof)
    reach = np.full(arm.dof, 2.0)
    return true_terms(arm, kind, size, reach, seed, nothing, nothing)


def as_read(to: str, path: Path, described: Arm) -> Arm:
    """The arm as a simulator has it that reads what was written for it."""
    beside = {"isaaclab": ".urdf", "mjlab": ".xml"}
    read = load_arm(path.with_suffix(beside[to]) if to in beside else path)
    read = read.with_gravity(described.gravity)
    layout, values = read.layout, read.parameters.copy()
    joints = len(read.joints)
    own = {kind: layout.drive(kind)[:joints] for kind in Drive.__dataclass_fields__}
    words = {"urdf": ("viscous", "coulomb"), "sdf": ("viscous", "coulomb"),
             "drake": ("viscous", "rotor_inertia")}  # fmt: skip
    if to in words:
        kept = values.copy()
        values[layout.drives] = 0.0
        for kind in words[to]:
            values[own[kind]] = kept[own[kind]]
    elif to == "mjcf":
        return with_biases(read, path)
    else:
        if to == "isaaclab":
            values[layout.drives] = 0.0
        values[own["offset"]] = 0.0
        for kind, numbers in _texts(path, to).items():
            values[own[kind]] = [numbers[joint.name] for joint in read.joints]
    return read.with_parameters(values)


def _texts(path: Path, to: str) -> dict[str, dict[str, float]]:
    """Numbers of the joints in a Python text, by name."""
    nodes = ast.walk(ast.parse(path.read_text()))
    calls = [
        {w.arg: ast.literal_eval(w.value) for w in node.keywords}
        for node in nodes
        if isinstance(node, ast.Call)
    ]
    if to == "isaaclab":
        (one,) = calls
        words = {"rotor_inertia": "armature", "coulomb": "dynamic_friction",
                 "viscous": "viscous_friction"}  # fmt: skip
        return {kind: one[word] for kind, word in words.items()}
    words = {"rotor_inertia": "armature", "coulomb": "frictionloss",
             "viscous": "viscous_damping"}  # fmt: skip
    return {
        kind: {one["target_names_expr"][0]: one[word] for one in calls}
        for kind, word in words.items()
    }


def main() -> None:
    """Print the ratio of stated to measured losses, arm by arm and kind by kind."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("arms", nargs="+", metavar="ARM")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--runs", type=int, default=1, help="of each arm and kind")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.runs)
    several = options.processes > 1
    pool: JobRunner = ProcessPool(options.processes) if several else InProcess()
    every: list[list[float]] = [[], []]
    with pool:
        for name in options.arms:
            for kind in options.kinds:
                answers = [x for _, x in pool.run(partial(run_once, name, kind), seeds)]
                outcomes = [x for one in answers for x in one]
                _show(f"{name}, {kind}", outcomes)
                every[0] += [r for x in outcomes for r in x.ratios(x.predicted)]
                every[1] += [r for x in outcomes for r in x.ratios(x.stated)]
    for ratios, of in zip(every, ("motion alone", "log's torques"), strict=True):
        within = np.mean(np.abs(np.array(ratios) - 1.0) <= 0.2) if ratios else 1.0
        print(f"By the {of}: {100 * within:.1f} % of {len(ratios)} within 20 %")


def _show(title: str, outcomes: list[LossOutcome]) -> None:
    parts = []
    for to in TARGETS:
        targets = [one for one in outcomes if one.target == to]
        ratios = [r for one in targets for r in one.ratios(one.predicted)]
        span = f"{min(ratios):.2f}–{max(ratios):.2f}" if ratios else "–"
        parts.append(f"{to} {span}")
    print(f"{title}: predicted / measured {', '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
