"""Export of an estimate to simulators, with what each of them cannot express.

Every target is a sink: links, and for each joint what it has words for. What it has no
words for is a loss, and its cost is computed: the torque of the effect over a motion,
relative to the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.arms import (
    Arm,
    arm_to_dict,
    compile_mjcf,
    joints_with_actuators,
    number,
    quoteattr,
    read_xml,
    simulator_file,
)
from armwise.errors import ArgumentError, ArmError
from armwise.files import json_text, write_atomically
from armwise.identification import (
    Columns,
    Estimate,
    arm_for_file,
    at_usual_temperature,
    estimate_to_dict,
    nearest_bodies,
    predict_torque,
)
from armwise.motions import random_motion
from armwise.recordings import Recording, Samples
from armwise.servos import Servo
from armwise.simulators.files import (
    WrittenFiles,
    column_ranges,
    identifier,
    ranges_text,
    require_bodies,
    write_arm,
    write_checked_mjcf,
    write_python,
)
from armwise.simulators.servo_export import (
    LOST,
    drawn_servos,
    lost_of_floor,
    servo_losses,
    write_servo_target,
)
from armwise.version import __version__

if TYPE_CHECKING:
    from jaxtyping import Float


ROTOR, COULOMB, OFFSET, COUPLING, FURTHER = (
    "rotor inertia",
    "Coulomb friction",
    "constant torque",
    "motors turned by several joints",
    "friction beyond viscous and Coulomb",
)
"""Effects that some target has no words for."""


@dataclass(frozen=True)
class Target:
    """A kind of file.

    Attributes:
        write: Writes it: arm, path, template → files written, and notes.
        lost: Effects it cannot express.
        needs_template_of: Root element of a template; empty: it takes none.
        many: Whether draws are files of their own; else ranges in the one file.
        endings: Of its files' names, the usual one first.
    """

    write: Callable[[_Subject, Path, Path | None], WrittenFiles]
    lost: tuple[str, ...]
    endings: tuple[str, ...]
    needs_template_of: str = ""
    many: bool = False


@dataclass(frozen=True, eq=False)
class Loss:
    """An effect that a target cannot express.

    Attributes:
        effect: What it is.
        cost: What its absence costs of each joint's torque, as a fraction (where a log
            has torques, beside them); or, of a servo, the mean change of its free run
            in [rad], NaN where no log was named.
        unit: Which of the two.
    """

    effect: str
    cost: Float[np.ndarray, " dof"]
    unit: Literal["fraction", "rad"] = "fraction"


@dataclass(frozen=True, eq=False)
class Export:
    """What was written, and what was lost on the way.

    Attributes:
        to: The target.
        files: Everything that was written.
        joints: Names of the coordinates.
        losses: Effects that the target cannot express and that the model has.
        cost: Of all of them together, of each joint's torque, as a fraction.
        motion: What the cost was computed on.
        notes: What the user should know besides.
        unit: Of the costs.
    """

    to: str
    files: tuple[Path, ...]
    joints: tuple[str, ...]
    losses: tuple[Loss, ...]
    cost: Float[np.ndarray, " dof"]
    motion: str
    notes: tuple[str, ...] = ()
    unit: Literal["fraction", "rad"] = "fraction"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words."""
        return {
            "to": self.to,
            "files": [str(path) for path in self.files],
            "joints": list(self.joints),
            "losses": [
                {"effect": loss.effect, "cost": _known(loss.cost)}
                for loss in self.losses
            ],
            "cost": _known(self.cost),
            "unit": self.unit,
            "motion": self.motion,
            "notes": list(self.notes),
        }


def _known(values: np.ndarray) -> list[float | None]:
    return [float(v) if isfinite(v) else None for v in values]


@dataclass(frozen=True, eq=False)
class _Subject:
    """What is exported.

    Attributes:
        arm: With friction as a file can hold it.
        estimate: Where it comes from; None for a description.
        draws: Parameters drawn from its uncertainty, one row each; none if not asked.
    """

    arm: Arm
    estimate: Estimate | None
    draws: Float[np.ndarray, "n parameters"]

    @property
    def driven(self) -> list[int]:
        """Joints that move by themselves."""
        return list(self.arm.coordinates)


RANDOM = "10 s of random motion within the arm's limits, always the same"
"""What costs are computed on where no motion is known."""

_CENTRE_DRAWS = 400
"""Draws whose mean is their centre, to a twentieth of what they scatter by."""


def export(
    model: Estimate | Arm | Servo,
    path: str | PathLike[str],
    *,
    to: str,
    template: str | PathLike[str] | None = None,
    data: Samples | Sequence[Samples] | None = None,
    recordings: Sequence[Recording] = (),
    draws: int = 0,
    seed: int = 0,
) -> Export:
    """Write a model for a simulator, and say what that simulator cannot express.

    Args:
        model: An estimate, a description, or servos.
        path: The file to write; what belongs to it lies beside it.
        to: One of mjcf, urdf, sdf, isaaclab, mjlab, drake, json.
        template: The user's own file (MJCF; URDF for urdf, drake and isaaclab), whose
            comments, meshes and names stay as they are.
        data: Motion on which costs are computed; the estimate's own samples, or else a
            random motion within the arm's limits, always the same, when not given.
            Friction that a file has no words for is fitted again on it, too, if it is
            given and the estimate has no samples.
        recordings: Logs with commands on which the cost of what is lost of servos is
            computed; unknown without any.
        draws: Models to draw from the estimate's uncertainty: files of their own, or
            ranges with mean, deviation and correlation where the target has one file.
        seed: Of the draws.

    Raises:
        ArgumentError: If there is no such target, or nothing to draw from.
        ArmError: If the template is another arm's, or what was written does not load.
    """
    target = _target(to)
    file, source = Path(fspath(path)), None if template is None else Path(template)
    _check_ending(to, target, file)
    _check_template(to, target, source)
    if isinstance(model, Servo):
        return _export_servo(model, file, to, source, recordings, (draws, seed))
    model, replaced = _with_bodies(model)
    estimate = None if isinstance(model, Arm) else model
    runs, motion = _runs(model, data)
    # A log that is named says more of the work to come than the one of the fit; that
    # says more than a random motion.
    is_known = motion == RANDOM and estimate and estimate.known_plain is not None
    if isinstance(model, Arm):
        arm = model
    else:
        arm = arm_for_file(model) if is_known else written_arm(model, runs)
    if draws and estimate is None:
        raise ArgumentError(
            f"{arm.name} is a description, which has no uncertainty to draw from. "
            "Export an estimate."
        )
    require_bodies(arm)
    drawn = np.zeros((0, arm.parameters.size))
    if estimate is not None and draws:
        drawn = estimate.sample(draws, seed)
        # Friction that was fitted again for the file scatters as it did before, but
        # about the file's own: its terms' draws lean away from bounds that it has not.
        other = arm.parameters != estimate.parameters
        about = estimate.sample(_CENTRE_DRAWS, seed).mean(axis=0)
        drawn[:, other] += (arm.parameters - about)[other]
        bounded = arm.layout.non_negative
        drawn[:, bounded] = np.maximum(drawn[:, bounded], 0.0)
    subject = _Subject(arm, estimate, drawn)
    losses, cost = _losses(model, arm, target.lost, runs, _actuated(to, source))
    files, notes = target.write(subject, file, source)
    notes += replaced
    if target.many:
        for k, row in enumerate(drawn):
            other = file.with_name(f"{file.stem}_{k + 1:04d}{file.suffix}")
            one = _Subject(arm.with_parameters(row), estimate, drawn[:0])
            files += target.write(one, other, source)[0]
    has_terms = estimate is not None and bool(estimate.columns.friction)
    if target.lost and has_terms and motion == RANDOM:
        where = "the motion that was fitted" if is_known else RANDOM
        notes.append(
            "Viscous and Coulomb friction stand for all that was identified of it, as "
            f"nearly as they can on {where}: name a log (--log) of work like yours."
        )
    if not any(d.drive.viscous or d.drive.coulomb for d in arm.driven):
        notes.append(
            f"{arm.name} has no friction: the simulated arm coasts. Identify friction, "
            "or leave it to the simulator's own."
        )
    return Export(
        to,
        tuple(files),
        arm.coordinate_names,
        losses,
        cost,
        motion,
        tuple(dict.fromkeys(notes)),
    )


def _with_bodies(model: Estimate | Arm) -> tuple[Estimate | Arm, list[str]]:
    """A description whose numbers no body has, with the nearest that one has."""
    if not isinstance(model, Arm) or not (defects := model.defects()):
        return model, []
    bodies, missing = nearest_bodies(model)
    worst = 100.0 * float(missing.max())
    name, why = next(iter(defects.items()))
    text = f"No body has the numbers of {model.name} ({name}: {why}); those that are "
    return bodies, [f"{text}written differ by up to {worst:.2g} % of a joint's torque."]


def _export_servo(
    servo: Servo,
    path: Path,
    to: str,
    template: Path | None,
    recordings: Sequence[Recording],
    draws: tuple[int, int],
) -> Export:
    if servo.gains:
        raise ArgumentError(
            "The servos were identified with gain registers "
            f"{', '.join(f'{g:g}' for g in sorted(servo.gains))}: say which one the "
            "model is to have (--register; servo.with_gain)."
        )
    drawn = drawn_servos(servo, *draws)
    require_bodies(servo.arm)
    missing = lost_of_floor(servo, to, template)
    costs = servo_losses(servo, LOST[to], recordings, missing)
    together = costs.pop("together", None)
    if together is None:
        together = next(iter(costs.values()), np.zeros(servo.arm.dof))
    written = write_servo_target(servo, path, to, template, drawn)
    files, notes = written.files, list(written.notes)
    if TARGETS[to].many:
        for k, one in enumerate(drawn):
            other = path.with_name(f"{path.stem}_{k + 1:04d}{path.suffix}")
            files += write_servo_target(one, other, to, template).files
    if to in ("urdf", "sdf", "drake"):
        notes.append(f"{to} has no words for gains: what follows commands is lost.")
    if costs and not recordings:
        notes.append("No log was named: what the losses cost is not known.")
    away = [name for name, cost in costs.items() if np.isposinf(cost).any()]
    if away or np.isposinf(together).any():
        notes.append(
            f"Without {' or '.join(away) or 'all of these'} the arm runs away under "
            "the logged commands: write what armwise.servos.set_points returns instead."
        )
    if np.any(servo.signs < 0):
        names = zip(servo.arm.coordinate_names, servo.signs, strict=True)
        turned = ", ".join(name for name, sign in names if sign < 0)
        notes.append(f"The log counts {turned} the other way than the description.")
    return Export(
        to,
        tuple(files),
        servo.arm.coordinate_names,
        tuple(Loss(name, cost, "rad") for name, cost in costs.items()),
        together,
        "the logs that were named" if recordings else "no motion",
        tuple(notes),
        "rad",
    )


def _target(to: str) -> Target:
    if to not in TARGETS:
        raise ArgumentError(
            f"There is no target {to!r}. Choose from: {', '.join(TARGETS)}."
        )
    return TARGETS[to]


def _check_ending(to: str, target: Target, path: Path) -> None:
    """Refuse a name that says it is another target's file; others are as good."""
    endings = {ending for one in TARGETS.values() for ending in one.endings}
    if path.suffix.lower() in endings.difference(target.endings):
        raise ArgumentError(
            f"{path.name} is no name for {to}, whose files end in {target.endings[0]}."
        )


def _check_template(to: str, target: Target, template: Path | None) -> None:
    if template is None:
        return
    if not target.needs_template_of:
        raise ArgumentError(f"{to} takes no template: its file is written anew.")
    root = read_xml(template)
    if root.tag == "mujocoinclude":
        raise ArmError(
            f"{template} is no template for {to}: it is a part (<mujocoinclude>) that "
            "other MJCF files include. Name one of these."
        )
    if root.tag != target.needs_template_of:
        kind = {"mujoco": "an MJCF", "robot": "a URDF"}[target.needs_template_of]
        raise ArmError(
            f"{template} is no template for {to}: it begins with <{root.tag}>, and "
            f"{to} takes {kind} file."
        )


def written_arm(estimate: Estimate, runs: Sequence[Samples]) -> Arm:
    """The arm that is written, its friction fitted for what a file can hold."""
    if estimate.columns.friction and not estimate.samples:
        # Read from a file, it has lost its samples: what it predicts stands for them.
        predicted = [replace(run, tau=estimate.predict(run)) for run in runs]
        estimate = replace(estimate, samples=tuple(predicted), known_plain=None)
    return arm_for_file(estimate)


# Losses.


def _losses(
    model: Estimate | Arm,
    arm: Arm,
    lost: tuple[str, ...],
    runs: Sequence[Samples],
    actuated: set[str],
) -> tuple[tuple[Loss, ...], Float[np.ndarray, " dof"]]:
    """Cost of every effect that a target lacks, and of all together.

    Args:
        model: What is exported.
        arm: What is written of it.
        lost: Effects that the target lacks.
        runs: The motion.
        actuated: Joints whose constant torque it lacks in any case.
    """
    columns = model.columns if isinstance(model, Estimate) else Columns(model)
    whole = model.all_parameters if isinstance(model, Estimate) else model.parameters
    extra = len(columns.friction)
    # Friction that was fitted again without further terms: theirs is not its own loss.
    refitted = np.concatenate([arm.parameters, np.zeros(extra)])
    effects = _effects(columns, whole, refitted)
    if OFFSET not in lost:
        others = [j for j, x in enumerate(arm.joints) if x.name not in actuated]
        effects[OFFSET][arm.layout.drive("offset")[others]] = 0.0
    parts = {
        effect: part
        for effect, part in effects.items()
        if (effect in lost or effect == OFFSET) and np.any(part)
    }
    everything = sum(parts.values(), np.zeros(whole.size))
    effects = {**parts, "all": everything}
    squares, crossed = (
        {name: np.zeros(columns.arm.dof) for name in effects} for _ in range(2)
    )
    size, missed = np.zeros((2, columns.arm.dof))
    for run in runs:
        tau = predict_torque(columns, whole, run)
        # A planned motion has no measured torque: its own is the model's.
        measured = run.tau if np.any(run.tau) else tau
        size = size + _sums(measured, measured)
        missed = missed + _sums(measured - tau, measured - tau)
        for name, part in effects.items():
            torque = predict_torque(columns, part, run)
            squares[name] += _sums(torque, torque)
            crossed[name] += _sums(measured - tau, torque)
    size = np.where(size > 0, size, 1.0)
    costs = {
        name: np.sqrt(_growth(squares[name], crossed[name], missed) / size)
        for name in effects
    }
    return tuple(Loss(name, costs[name]) for name in parts), costs["all"]


# Beside an error twice as large, a chance correlation of 0.1 is 40 % of the growth.
_BESIDE = 0.5
"""Ratio to the model's own error below which an effect's size is its cost."""


def _growth(
    square: Float[np.ndarray, " dof"],
    crossed: Float[np.ndarray, " dof"],
    missed: Float[np.ndarray, " dof"],
) -> Float[np.ndarray, " dof"]:
    """What ‖τ − τ̂‖² grows by without an effect d of the model: ‖d‖² + 2 (τ − τ̂)·d.

    A robot that has less of it than the model loses less than ‖d‖².
    """
    is_large = square > _BESIDE**2 * missed
    return np.where(is_large, np.maximum(square + 2.0 * crossed, 0.0), square)


def _actuated(to: str, template: Path | None) -> set[str]:
    """Joints of an MJCF's template that keep their actuator, and get no bias."""
    if to != "mjcf" or template is None:
        return set()
    return joints_with_actuators(compile_mjcf(template))


def _sums(one: np.ndarray, other: np.ndarray) -> Float[np.ndarray, " dof"]:
    return np.asarray(np.einsum("nj,nj->j", one, other))


def _effects(
    columns: Columns,
    whole: Float[np.ndarray, " parameters"],
    refitted: Float[np.ndarray, " parameters"],
) -> dict[str, Float[np.ndarray, " parameters"]]:
    """The parameters of each effect; those of all others are zero."""
    arm, layout = columns.arm, columns.arm.layout
    joints = len(arm.joints)

    def only(indices: Any, values: np.ndarray) -> np.ndarray:
        part = np.zeros(whole.size)
        part[indices] = values[indices]
        return part

    def of_joints(name: str) -> np.ndarray:
        return only(layout.drive(name)[:joints], refitted)

    motors = [
        k
        for name in ("rotor_inertia", "viscous", "coulomb", "offset")
        for k in layout.drive(name)[joints:].tolist()
    ]
    return {
        ROTOR: of_joints("rotor_inertia"),
        COULOMB: of_joints("coulomb"),
        OFFSET: of_joints("offset"),
        COUPLING: only(motors, refitted),
        FURTHER: whole - refitted if columns.friction else np.zeros(whole.size),
    }


def _runs(
    model: Estimate | Arm, data: Samples | Sequence[Samples] | None
) -> tuple[list[Samples], str]:
    if data is not None:
        runs = [data] if isinstance(data, Samples) else list(data)
        return runs, "the motion that was named"
    if isinstance(model, Estimate) and (model.validation_samples or model.samples):
        return list(model.validation_samples or model.samples), "the estimate's own"
    arm = model if isinstance(model, Arm) else model.prior_arm
    # Judgement: ten seconds at the usual rate of prepared samples.
    times = np.arange(0.0, 10.0, 0.01)
    # One seed: draws of another have the same costs.
    q, qd, qdd = random_motion(arm, 0).sample(times)
    planned = Samples(times, q, qd, qdd, np.zeros_like(q), arm=arm)
    if isinstance(model, Estimate):
        planned = at_usual_temperature(model.columns, planned)
    return [planned], RANDOM


# Files of the targets.


def _write_mjcf(subject: _Subject, path: Path, template: Path | None) -> WrittenFiles:
    arm = subject.arm
    data, notes = simulator_file(arm, path, _motors(arm), template)
    write_checked_mjcf(path, data)
    return WrittenFiles([path], list(notes))


def _motors(arm: Arm) -> dict[str, str]:
    """A motor for every joint that moves by itself; the drive's offset is its bias."""
    lines = {}
    # A constant torque of a coupled motor is one of each joint that turns it.
    offsets = arm.coupling_matrix.T @ [joint.drive.offset for joint in arm.joints]
    for coupling in arm.couplings:
        offsets = offsets + coupling.weights * coupling.drive.offset
    for i, offset in zip(arm.coordinates, offsets, strict=True):
        joint = arm.joints[i]
        # Everything is said: a template's defaults must not change it.
        words = [f"name={quoteattr(joint.name)} joint={quoteattr(joint.name)}"]
        words += ['dyntype="none" gaintype="fixed" gainprm="1" biastype="affine"']
        words += [f'biasprm="{number(-offset)} 0 0" gear="1" ctrllimited="false"']
        effort = joint.limits.effort
        if isfinite(effort):
            words += [f'forcerange="{number(-effort)} {number(effort)}"']
        lines[joint.name] = f"<general {' '.join(words)}/>"
    return lines


def _write_description(
    kind: str,
) -> Callable[[_Subject, Path, Path | None], WrittenFiles]:
    def write(subject: _Subject, path: Path, template: Path | None) -> WrittenFiles:
        return write_arm(subject.arm, path, kind, template)

    return write


def _write_isaaclab(
    subject: _Subject, path: Path, template: Path | None
) -> WrittenFiles:
    arm, beside = subject.arm, path.with_suffix(".urdf")
    _, notes = write_arm(arm, beside, "urdf", template)
    names = [arm.joints[i].name for i in subject.driven]
    lines = [
        *_head(subject, f"links: {beside.name}, to be converted to USD"),
        "from isaaclab.actuators import IdealPDActuatorCfg",
        "",
        "# Friction is an effort, as in Isaac Sim 5.0 and later. Stiffness and damping",
        "# are a controller's, which was not identified: efforts pass through.",
        "ACTUATORS = {",
        f'    "{identifier(arm.name)}": IdealPDActuatorCfg(',
        f"        joint_names_expr={names!r},",
        "        stiffness=0.0,",
        "        damping=0.0,",
        *_by_joint(subject, "armature", "rotor_inertia"),
        *_by_joint(subject, "friction", "coulomb"),
        *_by_joint(subject, "dynamic_friction", "coulomb"),
        *_by_joint(subject, "viscous_friction", "viscous"),
        *_limits(subject, "effort_limit", "effort"),
        *_limits(subject, "velocity_limit", "velocity"),
        "    ),",
        "}",
        *_ranges_text(subject),
    ]
    write_python(path, lines)
    return WrittenFiles([path, beside], notes)


def _write_mjlab(subject: _Subject, path: Path, template: Path | None) -> WrittenFiles:
    arm, beside = subject.arm, path.with_suffix(".xml")
    # mjlab makes the actuators itself: the file beside has none of ours.
    data, notes = simulator_file(arm, beside, {}, template)
    write_checked_mjcf(beside, data)
    lines = [
        *_head(subject, f"links, joints and tendons: {beside.name}"),
        "from mjlab.actuator import BuiltinMotorActuatorCfg",
        "",
        "ACTUATORS = (",
    ]
    for i in subject.driven:
        joint = arm.joints[i]
        effort = joint.limits.effort
        lines += [
            "    BuiltinMotorActuatorCfg(",
            f"        target_names_expr=({joint.name!r},),",
            f"        effort_limit={effort if isfinite(effort) else 1e6!r},",
            f"        armature={joint.drive.rotor_inertia!r},",
            f"        frictionloss={joint.drive.coulomb!r},",
            f"        viscous_damping={joint.drive.viscous!r},",
            "    ),",
        ]
    lines += [")", *_ranges_text(subject)]
    write_python(path, lines)
    return WrittenFiles([path, beside], [*notes, *_own_actuators(beside, template)])


def _own_actuators(path: Path, template: Path | None) -> Iterator[str]:
    """What to do about actuators of a template, which mjlab does not take out."""
    if template is None:
        return
    model = compile_mjcf(path)
    names = [model.actuator(k).name or f"number {k + 1}" for k in range(model.nu)]
    if names:
        more = ", …" if len(names) > 3 else ""
        yield (
            f"{path.name} keeps the template's actuators ({', '.join(names[:3])}{more})"
            ", and mjlab adds those of ACTUATORS to them: take one or the other out."
        )


def _head(subject: _Subject, beside: str) -> list[str]:
    name = subject.arm.name.replace("\\", "/").replace('"', "'")
    return [f'"""{name}, as identified by Armwise {__version__}; {beside}."""', ""]


def _by_joint(subject: _Subject, word: str, parameter: str) -> Iterator[str]:
    yield f"        {word}={{"
    for i in subject.driven:
        joint = subject.arm.joints[i]
        yield f"            {joint.name!r}: {getattr(joint.drive, parameter)!r},"
    yield "        },"


def _limits(subject: _Subject, word: str, limit: str) -> Iterator[str]:
    joints = [subject.arm.joints[i] for i in subject.driven]
    attributes = {
        j.name: getattr(j.limits, limit)
        for j in joints
        if isfinite(getattr(j.limits, limit))
    }
    if attributes:
        yield f"        {word}={{"
        yield from (f"            {n!r}: {float(v)!r}," for n, v in attributes.items())
        yield "        },"


# Randomisation from the estimate's uncertainty.


def ranges(arm: Arm, draws: Float[np.ndarray, "n parameters"]) -> dict[str, Any]:
    """Mean, deviation and 90 % range of what simulators randomise, and correlations.

    Names are those of the arm's parameters; centres of mass are relative to the link.
    """
    layout = arm.layout
    joints = len(arm.joints)
    columns: dict[str, np.ndarray] = {}
    names = arm.parameter_names
    for k in layout.mass:
        columns[names[k]] = draws[:, k]
        link = names[k].removesuffix(".m")
        for axis in range(3):
            columns[f"{link}.center_{'xyz'[axis]}"] = (
                draws[:, k + 1 + axis] / draws[:, k]
            )
    for word in ("rotor_inertia", "viscous", "coulomb"):
        for k in layout.drive(word)[:joints]:
            columns[names[k]] = draws[:, k]
    return column_ranges(columns)


def _ranges_text(subject: _Subject) -> list[str]:
    if not len(subject.draws):
        return []
    return ranges_text(ranges(subject.arm, subject.draws))


def _write_json(subject: _Subject, path: Path, template: Path | None) -> WrittenFiles:
    arm, estimate = subject.arm, subject.estimate
    content: dict[str, Any] = {"armwise": __version__, "arm": arm_to_dict(arm)}
    if estimate is not None:
        content["estimate"] = estimate_to_dict(estimate)
    if len(subject.draws):
        content["randomisation"] = ranges(arm, subject.draws)
        content["draws"] = subject.draws.tolist()
    write_atomically(path, json_text(content))
    return WrittenFiles([path], [])


_NOT_IN_XML = (ROTOR, OFFSET, COUPLING, FURTHER)
TARGETS: dict[str, Target] = {
    "mjcf": Target(_write_mjcf, (FURTHER,), (".xml", ".mjcf"), "mujoco", many=True),
    "urdf": Target(
        _write_description("urdf"), _NOT_IN_XML, (".urdf", ".xml"), "robot", many=True
    ),
    "sdf": Target(
        _write_description("sdf"), _NOT_IN_XML, (".sdf", ".world", ".xml"), many=True
    ),
    "isaaclab": Target(_write_isaaclab, (OFFSET, COUPLING, FURTHER), (".py",), "robot"),
    "mjlab": Target(_write_mjlab, (OFFSET, FURTHER), (".py",), "mujoco"),
    "drake": Target(
        _write_description("drake"),
        (COULOMB, OFFSET, COUPLING, FURTHER),
        (".urdf", ".xml"),
        "robot",
        many=True,
    ),
    "json": Target(_write_json, (), (".json",)),
}
"""Targets by name."""
