"""Export of servos: position actuators, and what simulators cannot express of them.

The cost of what is lost is in radians: the free run over a log without the effect,
beside the one with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm, number, quoteattr, simulator_file
from armwise.errors import ArgumentError, RecordingError
from armwise.files import json_text, write_atomically
from armwise.recordings import Recording
from armwise.servos import (
    CORE,
    ELEMENTS,
    PARAMETERS,
    Servo,
    servo_to_dict,
    touched,
)
from armwise.simulators.files import (
    WrittenFiles,
    column_ranges,
    identifier,
    ranges_text,
    write_arm,
    write_checked_mjcf,
    write_python,
)

if TYPE_CHECKING:
    from jaxtyping import Float

_RATE, _EARLY = "derivative of the set-point", "delay below zero"
"""Effects of one parameter, of which a part has words: actuators damp by a derivative
gain, and act late."""

_ZERO = "joint zero"
"""Joints of a file count from where the description does, not from where the log does:
what it reads is as far off."""

_EFFECTS = {
    "delay": ("delay",),
    _EARLY: ("delay",),
    _RATE: ("derivative",),
    **{
        name: parameters
        for name, parameters in ELEMENTS.items()
        # These have words in every target; a profile is a limit beside one of them.
        if name
        not in (
            "derivative gain",
            "saturation",
            "torque limit",
            "command offset",
            "set-point profile",
        )
    },
    # Gears that carry what accelerates are an effect of their own.
    "unpowered friction": ("coasting_static",),
}
"""Effects that some target has no words for, and their parameters."""

_OF_COMMANDS = ("delay", _EARLY, _RATE, "acceleration limit", "slew limit", _ZERO)
"""Effects that set-points written to the simulator, and a reading's shift, could hold;
servos are fitted again without the others."""

_STEP = 1e-3
"""Physics step in [s] that delays in steps are counted in."""


# Judgement: no joint of a servo arm is a turn away from its command on the average.
_RUN_AWAY = 2.0 * np.pi
"""Mean change of a free run in [rad] beyond which it says nothing but that."""


def servo_losses(
    servo: Servo,
    lost: Sequence[str],
    recordings: Sequence[Recording],
    floor_loss: str | None,
) -> dict[str, Float[np.ndarray, " dof"]]:
    """Mean change of the free run in [rad] for want of each effect, and of all.

    Effects that the servos are fitted again without cost what that fit differs by;
    infinity is an arm that runs away.

    Args:
        servo: What is exported.
        lost: Effects that the target has no words for.
        recordings: Over which it is counted.
        floor_loss: What the target lacks of a floor: see `lost_of_floor`.
    """
    present = [name for name in lost if _has(servo, name)]
    if floor_loss is not None:
        present.append(floor_loss)
    inner = [n for n in present if n in _EFFECTS and n not in _OF_COMMANDS]
    groups = [[name] for name in present if not servo.plain or name not in inner]
    groups += [inner] if servo.plain and inner else []
    if not recordings:
        return {", ".join(names): np.full(servo.arm.dof, np.nan) for names in groups}
    motions = [servo.motion(recording) for recording in recordings]
    whole = servo.rollouts(motions)
    weights = np.array([len(m.time) for m in motions], dtype=float)

    def cost(names: Sequence[str]) -> Float[np.ndarray, " dof"]:
        lacking = _without(servo, names)
        shift = lacking.values["zero"] if _ZERO in names else 0.0
        try:
            runs = lacking.rollouts(motions)
        except RecordingError:  # it is beyond all numbers
            return np.full(servo.arm.dof, np.inf)
        pairs = zip(runs, whole, strict=True)
        means = [np.abs(a + shift - b).mean(axis=0) for a, b in pairs]
        mean = np.asarray(weights @ means / weights.sum())
        # One joint that whirls shakes all others.
        ran_away = not np.all(mean <= _RUN_AWAY)
        return np.full(mean.shape, np.inf) if ran_away else mean

    costs = {", ".join(names): cost(names) for names in groups}
    if len(groups) > 1:
        costs["together"] = cost(present)
    return costs


def _has(servo: Servo, effect: str) -> bool:
    """Whether servos have an effect, of those in `_EFFECTS`."""
    if effect == _EARLY:
        return bool(np.any(servo.values["delay"] < 0.0))
    absent = [(servo.values[p], PARAMETERS[p].absent) for p in _EFFECTS[effect]]
    return any(bool(np.any(values != none)) for values, none in absent)


def _without(servo: Servo, names: Sequence[str]) -> Servo:
    """Return servos as files have them that lack some effects."""
    if any(name in _EFFECTS and name not in _OF_COMMANDS for name in names):
        servo = servo.simplified()
    values = dict(servo.values)
    removed = [name for name in names if name not in (_RATE, _ZERO)]
    for parameter in [p for name in removed for p in _EFFECTS.get(name, ())]:
        none = np.full(servo.arm.dof, PARAMETERS[parameter].absent)
        is_early = _EARLY in names and "delay" not in names
        if parameter == "delay" and is_early:
            none = np.maximum(values["delay"], 0.0)
        values[parameter] = none
    if _RATE in names:
        # What an actuator damps by is within its limit of torque.
        own, inside = values["damping"], servo.actuator_damping
        damping = own + values["derivative"]
        values["limited_damping"] = inside / np.where(damping > 0.0, damping, 1.0)
        values |= {"damping": damping, "derivative": np.zeros(servo.arm.dof)}
    floor = None if _FLOOR in names else servo.floor
    if floor is not None and _FLOOR_FRICTION in names:
        floor = replace(floor, friction=0.0)
    return replace(servo, values=values, floor=floor, plain={})


def position_actuators(servo: Servo) -> dict[str, str]:
    """A line of <actuator> per joint: kp (ctrl + shift − q) − kd q̇, and no more."""
    lines = {}
    for j, joint in enumerate(servo.arm.joints):
        kp, kd = float(servo.values["stiffness"][j]), float(servo.actuator_damping[j])
        shift = float(servo.values["offset"][j] + servo.values["zero"][j])
        # Everything is said: a template's defaults must not change it.
        words = [f"name={quoteattr(joint.name)} joint={quoteattr(joint.name)}"]
        words += [f'dyntype="none" gaintype="fixed" gainprm="{number(kp)}"']
        bias = " ".join(number(x) for x in (kp * shift, -kp, -kd))
        words += [f'biastype="affine" biasprm="{bias}" gear="1" ctrllimited="false"']
        limit = float(servo.values["saturation"][j])
        if isfinite(limit):
            words += [f'forcerange="{number(-limit)} {number(limit)}"']
        lines[joint.name] = f"<general {' '.join(words)}/>"
    return lines


def drawn_servos(servo: Servo, count: int, seed: int) -> list[Servo]:
    """Draw servos from what is not known of them, as simulators have them."""
    if not count:
        return []
    draws, simple = servo.sample(count, seed), servo.simplified()
    for name, drawn in draws.items():
        fitted, value = servo.values[name], simple.values[name]
        # As far beside what simulators have as beside what was fitted.
        with np.errstate(invalid="ignore", divide="ignore"):
            is_log = PARAMETERS[name].scale == "log"
            moved = value * (drawn / fitted) if is_log else value + (drawn - fitted)
        if PARAMETERS[name].scale == "linear":
            moved = np.maximum(moved, PARAMETERS[name].least)
        # Without it, infinite or zero, there is nothing to scatter.
        draws[name] = np.where(np.isfinite(moved) & (drawn != fitted), moved, value)
    return [
        replace(simple, values={name: rows[k] for name, rows in draws.items()})
        for k in range(count)
    ]


_RANDOMISED = (
    *CORE,
    *("derivative", "offset", "saturation", "limited_damping", "acceleration", "slew"),
)
"""Parameters that simulators have words for, or set-points."""


def _ranges(drawn: Sequence[Servo]) -> dict[str, Any]:
    """Mean, deviation and 90 % range of servos, and their correlations."""
    columns = {}
    for j, joint in enumerate(drawn[0].arm.joints):
        for name in _RANDOMISED:
            values = np.array([one.values[name][j] for one in drawn])
            if np.ptp(np.nan_to_num(values)) > 0.0:
                columns[f"{joint.name}.{name}"] = values
    return column_ranges(columns)


def write_servo_target(
    servo: Servo,
    path: Path,
    to: str,
    template: Path | None,
    drawn: Sequence[Servo] = (),
) -> WrittenFiles:
    """Write servos for a target, with the ranges of those drawn where it holds them."""
    # Gains and friction of one fit: those of the whole model belong to friction that
    # simulators do not have.
    servo = servo if to == "json" else servo.simplified()
    if drawn and to in _HOLDS_RANGES:
        return _HOLDS_RANGES[to](servo, path, template, drawn)
    return _WRITERS[to](servo, path, template)


def _write_mjcf(servo: Servo, path: Path, template: Path | None) -> WrittenFiles:
    arm, lines = servo.actuated_arm, position_actuators(servo)
    around = touched(servo.floor, arm)
    data, notes = simulator_file(arm, path, lines, template, around)
    if any("had an actuator" in note for note in notes):
        raise ArgumentError(
            f"{template}: {notes[-1].split(' in the template')[0]}, and two would "
            "fight over a joint. Take it out; the export brings its own."
        )
    write_checked_mjcf(path, data)
    return WrittenFiles([path], list(notes))


def _write_description(kind: str) -> Callable[[Servo, Path, Path | None], WrittenFiles]:
    def write(servo: Servo, path: Path, template: Path | None) -> WrittenFiles:
        return write_arm(servo.identified_arm, path, kind, template)

    return write


def _delay_steps(servo: Servo) -> dict[str, int]:
    delays = np.maximum(servo.values["delay"], 0.0)
    names = [joint.name for joint in servo.arm.joints]
    return {n: round(float(d) / _STEP) for n, d in zip(names, delays, strict=True)}


def _write_isaaclab(
    servo: Servo, path: Path, template: Path | None, drawn: Sequence[Servo] = ()
) -> WrittenFiles:
    arm, beside = servo.actuated_arm, path.with_suffix(".urdf")
    written = write_arm(arm, beside, "urdf", template)
    lines = [
        f'"""{_plain(arm)}: servos by Armwise; links: {beside.name}."""',
        "",
        "from isaaclab.actuators import DelayedPDActuatorCfg",
        "",
        f"# Delays are in physics steps of {_STEP:g} s; friction is an effort, as in",
        "# Isaac Sim 5.0 and later.",
        "ACTUATORS = {",
    ]
    steps = _delay_steps(servo)
    for j, joint in enumerate(arm.joints):
        words = {
            "joint_names_expr": [joint.name],
            "stiffness": float(servo.values["stiffness"][j]),
            "damping": float(servo.actuator_damping[j]),
            "armature": joint.drive.rotor_inertia,
            "friction": joint.drive.coulomb,
            "dynamic_friction": joint.drive.coulomb,
            "viscous_friction": joint.drive.viscous,
            "min_delay": steps[joint.name],
            "max_delay": steps[joint.name],
        }
        limit = float(servo.values["saturation"][j])
        if isfinite(limit):
            words["effort_limit"] = limit
        lines.append(f'    "{identifier(joint.name)}": DelayedPDActuatorCfg(')
        lines += [f"        {name}={value!r}," for name, value in words.items()]
        lines.append("    ),")
    write_python(path, [*lines, "}", *_ranges_lines(drawn)])
    return WrittenFiles([path, beside], written.notes)


def _ranges_lines(drawn: Sequence[Servo]) -> list[str]:
    return ranges_text(_ranges(drawn)) if drawn else []


def _write_mjlab(
    servo: Servo, path: Path, template: Path | None, drawn: Sequence[Servo] = ()
) -> WrittenFiles:
    arm, beside = servo.actuated_arm, path.with_suffix(".xml")
    if beside == path:
        raise ArgumentError(f"{path}: mjlab's text is Python; name it .py.")
    data, notes = simulator_file(arm, beside, {}, template)
    write_checked_mjcf(beside, data)
    lines = [
        f'"""{_plain(arm)}: servos by Armwise; links and joints: {beside.name}."""',
        "",
        "from mjlab.actuator import BuiltinPositionActuatorCfg",
        "",
        f"# Lags are in physics steps of {_STEP:g} s.",
        "ACTUATORS = (",
    ]
    steps = _delay_steps(servo)
    for j, joint in enumerate(arm.joints):
        words = {
            "target_names_expr": (joint.name,),
            "stiffness": float(servo.values["stiffness"][j]),
            "damping": float(servo.actuator_damping[j]),
            "armature": joint.drive.rotor_inertia,
            "frictionloss": joint.drive.coulomb,
            "viscous_damping": joint.drive.viscous,
            "delay_min_lag": steps[joint.name],
            "delay_max_lag": steps[joint.name],
        }
        limit = float(servo.values["saturation"][j])
        if isfinite(limit):
            words["effort_limit"] = limit
        lines.append("    BuiltinPositionActuatorCfg(")
        lines += [f"        {name}={value!r}," for name, value in words.items()]
        lines.append("    ),")
    write_python(path, [*lines, ")", *_ranges_lines(drawn)])
    return WrittenFiles([path, beside], list(notes))


def _write_json(
    servo: Servo, path: Path, template: Path | None, drawn: Sequence[Servo] = ()
) -> WrittenFiles:
    content = servo_to_dict(servo)
    if drawn:
        content["randomisation"] = _ranges(drawn)
    write_atomically(path, json_text(content))
    return WrittenFiles([path], [])


def _plain(arm: Arm) -> str:
    return arm.name.replace("\\", "/").replace('"', "'")


_WRITERS: Mapping[str, Callable[[Servo, Path, Path | None], WrittenFiles]] = {
    "mjcf": _write_mjcf,
    "urdf": _write_description("urdf"),
    "sdf": _write_description("sdf"),
    "drake": _write_description("drake"),
    "isaaclab": _write_isaaclab,
    "mjlab": _write_mjlab,
    "json": _write_json,
}

_HOLDS_RANGES = {
    "isaaclab": _write_isaaclab,
    "mjlab": _write_mjlab,
    "json": _write_json,
}

_NO_DELAY = tuple(name for name in _EFFECTS if name != _EARLY)
_DELAYED = tuple(name for name in _EFFECTS if name != "delay")
LOST = {
    "mjcf": _NO_DELAY,
    "urdf": _NO_DELAY,
    "sdf": _NO_DELAY,
    "drake": _NO_DELAY,
    "isaaclab": _DELAYED,
    "mjlab": _DELAYED,
    "json": (),
}
"""Target → effects of a servo it cannot express: no simulator acts before it is told
to, and two know how to wait."""


_FLOOR, _FLOOR_FRICTION = "floor", "floor's friction"
"""What of a floor that the arm touched a file may lack."""


def lost_of_floor(servo: Servo, to: str, template: Path | None) -> str | None:
    """Return what a target's file lacks of a floor: a template has its surroundings.

    MuJoCo's friction of a contact creeps, and gives way by nothing: beside a floor that
    is a spring it would do less than half of what was found.
    """
    if servo.floor is None or to == "json":
        return None
    if to != "mjcf" or template is not None:
        return _FLOOR
    return _FLOOR_FRICTION if servo.floor.friction > 0.0 else None
