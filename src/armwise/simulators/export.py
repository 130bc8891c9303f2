"""Export of an estimate to simulators, with what each of them cannot express.

Every target is a sink: links, and for each joint what it has words for. What it has no
words for is a loss, and its cost is computed: the torque of the effect over a motion,
relative to the whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import (
    Arm,
    Editor,
    arm_to_dict,
    number,
    quoteattr,
    read_xml,
    save_arm,
    simulator_file,
)
from armwise.errors import ArgumentError, ArmError
from armwise.files import scratch_folder, write_atomically
from armwise.identification import (
    Columns,
    Estimate,
    arm_for_file,
    estimate_to_dict,
    predict_torque,
)
from armwise.motions import random_motion
from armwise.recordings import Samples
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
    """

    write: Callable[[_Subject, Path, Path | None], tuple[list[Path], list[str]]]
    lost: tuple[str, ...]
    needs_template_of: str = ""
    many: bool = False


@dataclass(frozen=True, eq=False)
class Loss:
    """An effect that a target cannot express.

    Attributes:
        effect: What it is.
        cost: What it is of each joint's torque, as a fraction.
    """

    effect: str
    cost: Float[np.ndarray, " dof"]


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
    """

    to: str
    files: tuple[Path, ...]
    joints: tuple[str, ...]
    losses: tuple[Loss, ...]
    cost: Float[np.ndarray, " dof"]
    motion: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words."""
        return {
            "to": self.to,
            "files": [str(path) for path in self.files],
            "joints": list(self.joints),
            "losses": [
                {"effect": loss.effect, "cost": loss.cost.tolist()}
                for loss in self.losses
            ],
            "cost": self.cost.tolist(),
            "motion": self.motion,
            "notes": list(self.notes),
        }


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


def export(
    model: Estimate | Arm,
    path: str | PathLike[str],
    *,
    to: str,
    template: str | PathLike[str] | None = None,
    data: Samples | Sequence[Samples] | None = None,
    draws: int = 0,
    seed: int = 0,
) -> Export:
    """Write a model for a simulator, and say what that simulator cannot express.

    Args:
        model: An estimate, or a description.
        path: The file to write; what belongs to it lies beside it.
        to: One of mjcf, urdf, sdf, isaaclab, mjlab, drake, json.
        template: The user's own file (MJCF; URDF for urdf, drake and isaaclab), whose
            comments, meshes and names stay as they are.
        data: Motion on which costs are computed; the estimate's own samples, or else a
            random motion within the arm's limits, when not given.
        draws: Models to draw from the estimate's uncertainty: files of their own, or
            ranges with mean, deviation and correlation where the target has one file.
        seed: Of the draws and the random motion.

    Raises:
        ArgumentError: If there is no such target, or nothing to draw from.
        ArmError: If the template is another arm's, or what was written does not load.
    """
    target = _target(to)
    file, source = Path(fspath(path)), None if template is None else Path(template)
    _check_template(to, target, source)
    estimate = None if isinstance(model, Arm) else model
    runs, motion = _runs(model, data, seed)
    arm = model if isinstance(model, Arm) else _arm_of(model, runs)
    if draws and estimate is None:
        raise ArgumentError(
            f"{arm.name} is a description, which has no uncertainty to draw from. "
            "Export an estimate."
        )
    _require_bodies(arm)
    drawn = np.zeros((0, arm.parameters.size))
    if estimate is not None and draws:
        # Friction that was fitted again for the file scatters as it did before.
        drawn = estimate.sample(draws, seed) + (arm.parameters - estimate.parameters)
        bounded = arm.layout.non_negative
        drawn[:, bounded] = np.maximum(drawn[:, bounded], 0.0)
    subject = _Subject(arm, estimate, drawn)
    losses, cost = _losses(model, arm, target.lost, runs)
    files, notes = target.write(subject, file, source)
    if target.many:
        for k, row in enumerate(drawn):
            other = file.with_name(f"{file.stem}_{k + 1:04d}{file.suffix}")
            one = _Subject(arm.with_parameters(row), estimate, drawn[:0])
            files += target.write(one, other, source)[0]
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


def _target(to: str) -> Target:
    if to not in TARGETS:
        raise ArgumentError(
            f"There is no target {to!r}. Choose from: {', '.join(TARGETS)}."
        )
    return TARGETS[to]


def _check_template(to: str, target: Target, template: Path | None) -> None:
    if template is None:
        return
    if not target.needs_template_of:
        raise ArgumentError(f"{to} takes no template: its file is written anew.")
    root = read_xml(template)
    if root.tag != target.needs_template_of:
        kind = {"mujoco": "an MJCF", "robot": "a URDF"}[target.needs_template_of]
        raise ArmError(
            f"{template} is no template for {to}: it begins with <{root.tag}>, and "
            f"{to} takes {kind} file."
        )


def _require_bodies(arm: Arm) -> None:
    for name, why in arm.defects().items():
        raise ArmError(
            f"{arm.name}: {name}: {why}; no simulator takes that. Identify with the "
            "default method, whose bodies can exist."
        )


def _arm_of(estimate: Estimate, runs: Sequence[Samples]) -> Arm:
    """The arm to write, its friction fitted for what a file can hold."""
    if estimate.columns.friction and not estimate.samples:
        # Read from a file, it has lost its samples: what it predicts stands for them.
        predicted = [replace(run, tau=estimate.predict(run)) for run in runs]
        estimate = replace(estimate, samples=tuple(predicted))
    return arm_for_file(estimate)


# Losses.


def _losses(
    model: Estimate | Arm,
    arm: Arm,
    lost: tuple[str, ...],
    runs: Sequence[Samples],
) -> tuple[tuple[Loss, ...], Float[np.ndarray, " dof"]]:
    """Cost of every effect that a target lacks, and of all together."""
    columns = model.columns if isinstance(model, Estimate) else Columns(model)
    whole = model.all_parameters if isinstance(model, Estimate) else model.parameters
    extra = len(columns.friction)
    # Friction that was fitted again without further terms: theirs is not its own loss.
    refitted = np.concatenate([arm.parameters, np.zeros(extra)])
    parts = {
        effect: part
        for effect, part in _effects(columns, whole, refitted).items()
        if effect in lost and np.any(part)
    }
    everything = sum(parts.values(), np.zeros(whole.size))
    squares = {name: np.zeros(columns.arm.dof) for name in (*parts, "all", "torque")}
    for run in runs:
        for name, part in {**parts, "all": everything}.items():
            squares[name] += _squares(predict_torque(columns, part, run))
        # A planned motion has no measured torque: its own is the model's.
        tau = run.tau if np.any(run.tau) else predict_torque(columns, whole, run)
        squares["torque"] += _squares(tau)
    size = np.where(squares["torque"] > 0, squares["torque"], 1.0)
    losses = [Loss(name, np.sqrt(squares[name] / size)) for name in parts]
    return tuple(losses), np.sqrt(squares["all"] / size)


def _squares(torque: np.ndarray) -> Float[np.ndarray, " dof"]:
    return np.asarray(np.einsum("nj,nj->j", torque, torque))


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
    model: Estimate | Arm, data: Samples | Sequence[Samples] | None, seed: int
) -> tuple[list[Samples], str]:
    if data is not None:
        runs = [data] if isinstance(data, Samples) else list(data)
        return runs, "the motion that was named"
    if isinstance(model, Estimate) and (model.validation_samples or model.samples):
        return list(model.validation_samples or model.samples), "the estimate's own"
    arm = model if isinstance(model, Arm) else model.prior_arm
    # Judgement: ten seconds at the usual rate of prepared samples.
    times = np.arange(0.0, 10.0, 0.01)
    q, qd, qdd = random_motion(arm, seed).sample(times)
    planned = Samples(times, q, qd, qdd, np.zeros_like(q), arm=arm)
    return [planned], "a random motion within the arm's limits"


# Files of the targets.


def _write_mjcf(
    subject: _Subject, path: Path, template: Path | None
) -> tuple[list[Path], list[str]]:
    arm = subject.arm
    data, notes = simulator_file(arm, path, _motors(arm), template)
    _write_checked(path, data)
    return [path], list(notes)


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


def _write_checked(path: Path, data: bytes) -> None:
    """Write an MJCF that MuJoCo has loaded, under another name, without complaint."""
    try:
        import mujoco
    except ImportError:
        write_atomically(path, data)
        return
    with scratch_folder(path.parent) as folder:
        # Beside the target, so that relative names mean the same.
        trial = folder / path.name
        trial.write_bytes(_one_level_up(data))
        try:
            mujoco.MjModel.from_xml_path(str(trial))
        except ValueError as problem:
            reason = " ".join(str(problem).split())
            raise ArmError(f"{path}: MuJoCo refuses it: {reason}") from None
    write_atomically(path, data)


def _one_level_up(data: bytes) -> bytes:
    """The same file as one folder further down has to say it."""
    root, editor = read_xml(Path("export.xml"), data), Editor(data)
    compilers = list(root.all("compiler"))
    for compiler in compilers:
        names = ("meshdir", "texturedir", "assetdir")
        own = {k: v for k, v in compiler.attributes.items() if k in names}
        editor.set(compiler, {k: f"../{v}" for k, v in own.items() if v[:1] != "/"})
    has_folder = any("meshdir" in c.attributes for c in compilers)
    if not has_folder and not any("assetdir" in c.attributes for c in compilers):
        editor.insert(root, ['<compiler meshdir=".." texturedir=".."/>'])
    return editor.result()


def _saved(arm: Arm, path: Path, kind: str, template: Path | None) -> _Saved:
    """What save_arm writes; it decides by the name, and a file may have any."""
    with scratch_folder(path.parent) as folder:
        file = folder / f"{path.stem}.{kind}"
        notes = save_arm(arm, file, template)
        return file.read_bytes(), list(notes)


_Saved = tuple[bytes, list[str]]


def _write_urdf(
    subject: _Subject, path: Path, template: Path | None
) -> tuple[list[Path], list[str]]:
    data, notes = _saved(subject.arm, path, "urdf", template)
    write_atomically(path, data)
    return [path], notes


def _write_sdf(
    subject: _Subject, path: Path, template: Path | None
) -> tuple[list[Path], list[str]]:
    data, notes = _saved(subject.arm, path, "sdf", None)
    write_atomically(path, data)
    return [path], notes


_DRAKE = "http://drake.mit.edu"


def _write_drake(
    subject: _Subject, path: Path, template: Path | None
) -> tuple[list[Path], list[str]]:
    """URDF with a transmission for every joint, whose rotor turns as the joint does."""
    data, notes = _saved(subject.arm, path, "urdf", template)
    root, editor = read_xml(path, data), Editor(data)
    if "xmlns:drake" not in root.attributes:
        editor.set(root, {"xmlns:drake": _DRAKE})
    known = {}
    for transmission in root.all("transmission"):
        end, actuator = transmission.find("joint"), transmission.find("actuator")
        if end is not None and actuator is not None:
            known[end.attributes.get("name")] = actuator
    added: list[str] = []
    for i in subject.driven:
        joint = subject.arm.joints[i]
        inertia = number(joint.drive.rotor_inertia)
        words = [
            f'<drake:rotor_inertia value="{inertia}"/>',
            '<drake:gear_ratio value="1"/>',
        ]
        if joint.name in known:
            actuator = known[joint.name]
            for tag in ("drake:rotor_inertia", "drake:gear_ratio"):
                old = actuator.find(tag)
                value = inertia if tag == "drake:rotor_inertia" else "1"
                if old is not None:
                    editor.set(old, {"value": value})
                    words = [word for word in words if tag not in word]
            if words:
                editor.insert(actuator, words)
            continue
        name = quoteattr(joint.name)
        added += [
            f"<transmission name={quoteattr(joint.name + '_transmission')}>",
            "  <type>transmission_interface/SimpleTransmission</type>",
            f"  <joint name={name}>",
            "    <hardwareInterface>EffortJointInterface</hardwareInterface>",
            "  </joint>",
            f"  <actuator name={name}>",
            *(f"    {word}" for word in words),
            "  </actuator>",
            "</transmission>",
        ]
    if added:
        editor.insert(root, added)
    write_atomically(path, editor.result())
    return [path], notes


def _write_isaaclab(
    subject: _Subject, path: Path, template: Path | None
) -> tuple[list[Path], list[str]]:
    arm, beside = subject.arm, path.with_suffix(".urdf")
    _, notes = _write_urdf(subject, beside, template)
    names = [arm.joints[i].name for i in subject.driven]
    lines = [
        *_head(subject, f"links: {beside.name}, to be converted to USD"),
        "from isaaclab.actuators import IdealPDActuatorCfg",
        "",
        "# Friction is an effort, as in Isaac Sim 5.0 and later. Stiffness and damping",
        "# are a controller's, which was not identified: efforts pass through.",
        "ACTUATORS = {",
        f'    "{_identifier(arm.name)}": IdealPDActuatorCfg(',
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
    return [*_write_python(path, lines), beside], notes


def _write_mjlab(
    subject: _Subject, path: Path, template: Path | None
) -> tuple[list[Path], list[str]]:
    arm, beside = subject.arm, path.with_suffix(".xml")
    if beside == path:
        raise ArgumentError(f"{path}: mjlab's text is Python; name it .py.")
    # mjlab makes the actuators itself: the file beside has none of ours.
    data, notes = simulator_file(arm, beside, {}, template)
    _write_checked(beside, data)
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
    return [*_write_python(path, lines), beside], list(notes)


def _write_python(path: Path, lines: Sequence[str]) -> list[Path]:
    text = "\n".join([*lines, ""])
    compile(text, str(path), "exec")  # names of joints can be anything: it must parse
    write_atomically(path, text)
    return [path]


def _head(subject: _Subject, beside: str) -> list[str]:
    name = subject.arm.name.replace("\\", "/").replace('"', "'")
    return [f'"""{name}, as identified by Armwise {__version__}; {beside}."""', ""]


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name) or "arm"


def _by_joint(subject: _Subject, word: str, parameter: str) -> Iterator[str]:
    yield f"        {word}={{"
    for i in subject.driven:
        joint = subject.arm.joints[i]
        yield f"            {joint.name!r}: {getattr(joint.drive, parameter)!r},"
    yield "        },"


def _limits(subject: _Subject, word: str, limit: str) -> Iterator[str]:
    joints = [subject.arm.joints[i] for i in subject.driven]
    known = {
        j.name: getattr(j.limits, limit)
        for j in joints
        if isfinite(getattr(j.limits, limit))
    }
    if known:
        yield f"        {word}={{"
        yield from (f"            {n!r}: {float(v)!r}," for n, v in known.items())
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
    table = np.stack(list(columns.values()), axis=1)
    std = table.std(axis=0)
    unit = np.where(std > 0, std, 1.0)
    whitened = (table - table.mean(axis=0)) / unit
    low, high = np.quantile(table, [0.05, 0.95], axis=0)
    return {
        "draws": len(draws),
        "parameters": {
            name: {
                "mean": float(table[:, k].mean()),
                "std": float(std[k]),
                "low": float(low[k]),
                "high": float(high[k]),
            }
            for k, name in enumerate(columns)
        },
        "correlation": (whitened.T @ whitened / len(table)).tolist(),
    }


def _ranges_text(subject: _Subject) -> list[str]:
    if not len(subject.draws):
        return []
    measured = ranges(subject.arm, subject.draws)
    lines = ["", "# 90 % ranges of what was identified, by draws from its uncertainty."]
    lines += ["# Joint by joint they are not independent: CORRELATION has their order."]
    lines += ["RANDOMIZATION = {"]
    for name, values in measured["parameters"].items():
        lines.append(f"    {name!r}: {values!r},")
    lines += ["}", f"CORRELATION = {json.dumps(measured['correlation'])}"]
    return lines


def _write_json(
    subject: _Subject, path: Path, template: Path | None
) -> tuple[list[Path], list[str]]:
    arm, estimate = subject.arm, subject.estimate
    content: dict[str, Any] = {"armwise": __version__, "arm": arm_to_dict(arm)}
    if estimate is not None:
        content["estimate"] = estimate_to_dict(estimate)
    if len(subject.draws):
        content["randomisation"] = ranges(arm, subject.draws)
        content["draws"] = subject.draws.tolist()
    write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False))
    return [path], []


TARGETS: dict[str, Target] = {
    "mjcf": Target(_write_mjcf, (FURTHER,), "mujoco", many=True),
    "urdf": Target(_write_urdf, (ROTOR, OFFSET, COUPLING, FURTHER), "robot", many=True),
    "sdf": Target(_write_sdf, (ROTOR, OFFSET, COUPLING, FURTHER), many=True),
    "isaaclab": Target(_write_isaaclab, (OFFSET, COUPLING, FURTHER), "robot"),
    "mjlab": Target(_write_mjlab, (OFFSET, FURTHER), "mujoco"),
    "drake": Target(
        _write_drake, (COULOMB, OFFSET, COUPLING, FURTHER), "robot", many=True
    ),
    "json": Target(_write_json, ()),
}
"""Targets by name."""
