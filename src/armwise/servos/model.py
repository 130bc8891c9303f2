"""Servo parameters: names, units, scales, and the elements a model grows by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.servos.rollout import ServoTables

if TYPE_CHECKING:
    from jaxtyping import Float


Values = Mapping[str, float]
"""Every parameter of one servo."""

LIMITS = ("acceleration", "slew")
"""Limits of the set-point, infinite where there are none."""


@dataclass(frozen=True)
class ServoParameter:
    """One number of a servo.

    Attributes:
        unit: Its unit.
        absent: Its value where the servo has no such thing.
        scale: "log": always positive, fitted by its logarithm; "linear": in units of
            `start`, at least `least`; "signed": in units of `start`.
        start: Where a fit starts from when it is added.
        step: Difference for derivatives, in the fitted coordinate.
        meaning: What it is.
        least: Smallest value of a linear one.
        most: Largest value of a linear one.
    """

    unit: str
    absent: float
    scale: Literal["log", "linear", "signed"]
    start: float
    step: float
    meaning: str
    least: float = 0.0
    most: float = np.inf


# Steps are wide, some percent: stick and slip make the error ripple on finer scales.
PARAMETERS: dict[str, ServoParameter] = {
    "stiffness": ServoParameter(
        "N m/rad", 0.0, "log", 15.0, 0.03, "torque per position error, per unit of gain"
    ),
    "damping": ServoParameter(
        "N m s/rad", 0.0, "log", 0.6, 0.04, "back-EMF, viscous friction, derivative"
    ),
    "coulomb": ServoParameter(
        "N m", 0.0, "log", 0.05, 0.04, "dry friction while sliding"
    ),
    "armature": ServoParameter(
        "kg m²", 0.0, "log", 0.02, 0.06, "rotor inertia at the joint"
    ),
    # Below zero where a log reads positions after it has written commands, under one
    # stamp; judgement: two samples of 50 Hz.
    "delay": ServoParameter(
        "s", 0.0, "linear", 0.02, 0.05, "from a command's stamp to its effect", -0.04
    ),
    "acceleration": ServoParameter(
        "rad/s²", np.inf, "log", 40.0, 0.06, "limit of the set-point's acceleration"
    ),
    "slew": ServoParameter(
        "rad/s", np.inf, "log", 5.0, 0.03, "limit of the set-point's speed"
    ),
    "static": ServoParameter(
        "N m", 0.0, "linear", 0.05, 0.1, "dry friction at rest beyond Coulomb's"
    ),
    "stribeck_speed": ServoParameter(
        "rad/s", 0.1, "log", 0.1, 0.1, "speed at which half of that is gone"
    ),
    # Between them mixed: -1 is 2^-|v/s|, 0 is 1/(1 + (v/s)²), 1 is 2^-(v/s)².
    "stribeck_shape": ServoParameter(
        "1",
        0.0,
        "linear",
        1.0,
        0.2,
        "of its fall: -1 exponential, 0 algebraic, 1 Gaussian",
        -1.0,
        1.0,
    ),
    "driving": ServoParameter(
        "1", 0.0, "linear", 0.1, 0.2, "friction per load that the motor drives"
    ),
    "back_driven": ServoParameter(
        "1", 0.0, "linear", 0.1, 0.2, "friction per load that drives the motor"
    ),
    "release": ServoParameter(
        "s", 0.0, "linear", 0.02, 0.1, "from switching the motor off to its effect"
    ),
    "derivative": ServoParameter(
        "N m s/rad", 0.0, "linear", 0.1, 0.2, "torque per rate of the position error"
    ),
    "feedback_delay": ServoParameter(
        "s", 0.0, "linear", 5e-3, 0.2, "age of the position that torque answers to"
    ),
    "integral": ServoParameter(
        "N m/(rad s)", 0.0, "linear", 1.0, 0.2, "torque per integral of the error"
    ),
    "dead_band": ServoParameter(
        "rad", 0.0, "linear", 2e-3, 0.25, "error that gives no torque"
    ),
    "saturation": ServoParameter(
        "N m", np.inf, "log", 2.0, 0.05, "largest torque, of voltage or current"
    ),
    # A voltage's limit has none of it, a current's limit all that the motor damps.
    "limited_damping": ServoParameter(
        "1", 0.0, "linear", 0.9, 0.1, "part of the damping within that", most=1.0
    ),
    "offset": ServoParameter(
        "rad", 0.0, "signed", 2e-3, 0.2, "of the command against the position"
    ),
    "zero": ServoParameter(
        "rad", 0.0, "signed", 0.05, 0.2, "of the position against the description"
    ),
    "quadratic": ServoParameter(
        "N m s²/rad²", 0.0, "linear", 0.05, 0.2, "friction per square of speed"
    ),
    "coasting": ServoParameter(
        "1", 1.0, "log", 0.5, 0.1, "damping with the motor off, of that when on"
    ),
    "coasting_static": ServoParameter(
        "1", 1.0, "log", 0.5, 0.1, "Stribeck friction with the motor off, of that on"
    ),
    "braking_speed": ServoParameter(
        "rad/s", np.inf, "log", 5.0, 0.03, "from which a motor brakes that is off"
    ),
    "load_static": ServoParameter(
        "1", 0.0, "linear", 0.1, 0.2, "friction per load at rest beyond that sliding"
    ),
    "load_square": ServoParameter(
        "1/(N m)", 0.0, "linear", 0.05, 0.2, "friction per square of the load"
    ),
    "start_up": ServoParameter(
        "N m", 0.0, "linear", 0.05, 0.2, "torque at the first tick of error"
    ),
    "heating": ServoParameter(
        "1/K", 0.0, "linear", 0.004, 0.2, "torque lost per kelvin of the winding"
    ),
    "inertial_load": ServoParameter(
        "1", 0.0, "linear", 0.5, 0.1, "of the load on gears, the part of inertia's"
    ),
    "load_stiction": ServoParameter(
        "1", 0.0, "linear", 0.1, 0.2, "friction per load of a joint that sticks"
    ),
    "creep_speed": ServoParameter(
        "rad/s", 0.05, "log", 0.05, 0.1, "speed at which half of that is gone"
    ),
    "bearing": ServoParameter(
        "m", 0.0, "linear", 5e-3, 0.2, "dry friction per weight on the bearings"
    ),
    "lower": ServoParameter("rad", -np.inf, "signed", -1.0, 0.01, "wall below"),
    "upper": ServoParameter("rad", np.inf, "signed", 1.0, 0.01, "wall above"),
}

CORE = ("stiffness", "damping", "coulomb", "armature", "delay")
"""What every servo has."""

ELEMENTS: dict[str, tuple[str, ...]] = {
    "acceleration limit": ("acceleration",),
    "slew limit": ("slew",),
    "load friction": ("driving", "back_driven"),
    "bearing friction": ("bearing",),
    "Stribeck friction": ("static", "load_static", "stribeck_speed"),
    "unpowered friction": ("coasting_static", "inertial_load", "quadratic"),
    "unpowered braking": ("braking_speed",),
    "inertial load": ("inertial_load",),
    "heavy-load friction": ("load_square",),
    "stiction": ("load_stiction", "creep_speed"),
    "joint zero": ("zero",),
    "start-up torque": ("start_up",),
    "command offset": ("offset",),
    "derivative gain": ("derivative",),
    "saturation": ("saturation",),
    "torque limit": ("saturation", "limited_damping"),
    "feedback delay": ("feedback_delay",),
    "quadratic friction": ("quadratic",),
    "dead band": ("dead_band",),
    "integral gain": ("integral",),
    "winding temperature": ("heating",),
}
"""Elements a model grows by, in the order they are tried, and their parameters.

A profile's limit delays what its derivative gain hastens: each alone makes others up
for its partner, and looks useless or false. Saturation limits what the error asks for,
as a supply's voltage does; a torque limit the whole torque of the motor, what damps by
it included, as a current's. Of a motor that is off gears carry what its rotor takes to
accelerate, and not the weight that falls.
"""

_SHAPES = {
    "stribeck_speed": {"static", "load_static"},
    "stribeck_shape": {"static", "load_static"},
    "coasting_static": {"static", "load_static"},
    "creep_speed": {"load_stiction"},
    "limited_damping": {"saturation"},
}
"""Parameter → those without which it means nothing."""


FALLS = ("stribeck_speed", "stribeck_shape", "creep_speed")
"""How friction falls off with speed: there or not with that friction."""


def meaningful(names: Sequence[str]) -> tuple[str, ...]:
    """Return parameters without those that mean nothing beside the others."""
    return tuple(n for n in names if n not in _SHAPES or _SHAPES[n] & set(names))


EXPRESSIBLE = (
    *CORE, "acceleration", "slew", "offset", "zero", "derivative", "saturation",
    "limited_damping",
)  # fmt: skip
"""Parameters that simulators have, or that set-points written to them can hold."""

_HUGE = 1e9
"""Stands for infinity where C multiplies."""


def units_of(
    values: Mapping[str, np.ndarray], names: Collection[str]
) -> dict[str, np.ndarray]:
    """Return units of linear coordinates, torques in those of each servo."""
    # Torques are counted in the servo's own friction, so that a finger's servo and a
    # leg's take steps of the same worth.
    torque = np.maximum(values["coulomb"], 1e-3 * values["stiffness"]) / 0.1
    sizes = {"N m": torque, "1/(N": 1.0 / torque}
    return {
        name: p.start
        * next(
            (x for unit, x in sizes.items() if p.unit.startswith(unit)),
            np.ones_like(torque),
        )
        for name, p in PARAMETERS.items()
        if name in names
    }


def encode(
    values: Mapping[str, np.ndarray], names: Sequence[str]
) -> Float[np.ndarray, "servos names"]:
    """Return the fitted coordinates of some parameters of servos."""
    units = units_of(values, names)
    coordinates = [
        np.log(values[name])
        if PARAMETERS[name].scale == "log"
        else values[name] / units[name]
        for name in names
    ]
    return np.stack([np.asarray(x, float) for x in coordinates], axis=-1)


def decode(
    values: Mapping[str, np.ndarray],
    names: Sequence[str],
    coordinates: Float[np.ndarray, "servos names"],
) -> dict[str, np.ndarray]:
    """Return all values, those of some parameters taken from fitted coordinates."""
    units = units_of(values, names)
    result = dict(values)
    for name, x in zip(names, np.moveaxis(coordinates, -1, 0), strict=True):
        scale = PARAMETERS[name].scale
        if scale == "log":
            # Judgement: e^±14 is beyond any servo; farther out exp would overflow.
            result[name] = np.exp(np.clip(x, -14.0, 14.0))
        else:
            value = x * units[name]
            is_bound = scale == "linear"
            bounds = PARAMETERS[name].least, PARAMETERS[name].most
            result[name] = np.clip(value, *bounds) if is_bound else value
    return result


def absent() -> dict[str, float]:
    """Return a servo that has nothing but the core, at its starting values."""
    values = {name: p.absent for name, p in PARAMETERS.items()}
    return values | {name: PARAMETERS[name].start for name in CORE}


def stacked(servos: Sequence[Mapping[str, float]]) -> dict[str, np.ndarray]:
    """Return servos as one array per parameter."""
    return {name: np.array([s[name] for s in servos]) for name in PARAMETERS}


_USUAL_STEP = 4e-3
"""Step of rollouts in [s] at 50 samples a second."""


def half_step_inertia(damping: np.ndarray) -> np.ndarray:
    """Return what a fit's armature lacks of the rotor's inertia, in [kg m²].

    Half a step's damping: rollouts step by the trapezoidal rule, in which damping and
    inertia show as M + h d / 2. Valleys run along that sum, so fits have it as one of
    their coordinates.
    """
    return np.asarray(0.5 * _USUAL_STEP * damping)


def tables_of(values: Mapping[str, np.ndarray]) -> ServoTables:
    """Return tables of single joints from the values of fits, one for each servo."""
    rotor = values["armature"] + half_step_inertia(values["damping"])
    whole = {**values, "armature": rotor}
    rows = np.clip([whole[name] for name in PARAMETERS], -_HUGE, _HUGE)
    return dict(zip(PARAMETERS, rows[..., None], strict=True))
