"""Starting points of servo fits, and servos without some of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.servos.model import (
    ELEMENTS,
    LIMITS,
    PARAMETERS,
    Values,
    decode,
    encode,
    stacked,
    tables_of,
    units_of,
)
from armwise.servos.rollout import Roller, ServoMotion

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: direct drives reach some 60 rad/s; what is beyond stands for a delay.
_FASTEST = {"acceleration": 5e3, "slew": 100.0}
"""Limits of the set-point beyond any servo."""

# Starting points, drawn in dimensionless numbers: no servo's size is built in.

_DELAYS = (-0.02, -0.01, 0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06)
_ACCELERATIONS = (np.inf, 160.0, 80.0, 40.0, 20.0, 10.0)
_SLEWS = (np.inf, np.inf, np.inf, 0.7, 0.5, 0.35, 0.25)
"""Of the fastest command; most servos are fast enough."""


@dataclass(frozen=True)
class StartRange:
    """What starting points of one joint are drawn around.

    Attributes:
        inertia: Of the links at the joint, in [kg m²].
        gain: A usual one.
        fastest: Speed of the fastest command in [rad/s].
        coasts: Whether motors are off at times.
    """

    inertia: float
    gain: float
    fastest: float
    coasts: bool


def drawn_starts(
    around: StartRange, base: Values, random: np.random.Generator, count: int
) -> list[dict[str, float]]:
    """Draw servos: natural frequency, damping ratio, friction angle, rotor inertia.

    Args:
        around: Sizes of this joint.
        base: The parameters that are not drawn.
        random: Generator.
        count: How many.
    """
    starts = []
    for _ in range(count):
        total = around.inertia * (1.0 + 10.0 ** random.uniform(-1.0, 1.5))
        omega, ratio = 10.0 ** random.uniform(0.8, 1.8), 10.0 ** random.uniform(-0.7, 1)
        stiffness = omega**2 * total
        drawn = {
            "stiffness": stiffness / around.gain,
            "armature": max(total - around.inertia, 1e-3 * total),
            "damping": 2.0 * ratio * omega * total,
            "coulomb": 10.0 ** random.uniform(-3.0, -1.2) * stiffness,
            "delay": float(random.choice(_DELAYS)),
            "acceleration": float(random.choice(_ACCELERATIONS)),
            "slew": float(random.choice(_SLEWS)) * around.fastest,
        }
        if around.coasts:
            drawn["coasting"] = 10.0 ** random.uniform(-2.0, 0.0)
            drawn["release"] = float(random.choice(_DELAYS[2:7]))
        starts.append(dict(base) | drawn)
    return starts


def shaken(
    values: Values, names: Sequence[str], random: np.random.Generator, count: int
) -> list[dict[str, float]]:
    """Draw servos a factor of e around one, whose valley may not be the lowest.

    Args:
        values: Of a servo.
        names: Its fitted parameters.
        random: Generator.
        count: How many.
    """
    kinds = [PARAMETERS[name].scale for name in names]
    # Limits are sharp, and known where they show; signed ones are near zero.
    reach = [
        0.2 if np.isinf(PARAMETERS[name].absent) else 0.0 if kind == "signed" else 1.0
        for name, kind in zip(names, kinds, strict=True)
    ]
    x = (
        encode(stacked([values]), names)
        + random.normal(size=(count, len(names))) * reach
    )
    is_size = [p.scale == "linear" and p.least == 0.0
               for p in (PARAMETERS[name] for name in names)]  # fmt: skip
    x = np.where(is_size, np.abs(x), x)
    drawn = decode(stacked([values] * count), names, x)
    return [{k: float(v[s]) for k, v in drawn.items()} for s in range(count)]


def best_starts(
    roller: Roller,
    motions: Sequence[ServoMotion],
    starts: Sequence[Values],
    count: int,
) -> list[dict[str, float]]:
    """Return those starts whose free runs are nearest, best first."""
    costs = start_costs(roller, motions, starts)
    return [dict(starts[k]) for k in np.argsort(costs, kind="stable")[:count]]


def start_costs(
    roller: Roller, motions: Sequence[ServoMotion], starts: Sequence[Values]
) -> Float[np.ndarray, " starts"]:
    """Return how far free runs of starts are off, in [rad] over all rows."""
    runs = roller.run(motions, tables_of(stacked(starts)))
    total = np.zeros(len(starts))
    for run, m in zip(runs, motions, strict=True):
        e = np.abs(run[:, m.mask[:, 0], 0] - m.q[m.mask[:, 0], 0])
        # Judgement: beyond 0.1 rad one start is as wrong as another.
        total += np.where(np.isfinite(e), np.minimum(e, 0.1), 1.0).sum(1)
    return total


# Judgement: from hobby servos' slow profiles to no limit that a log would show.
_PROFILES = (12.0, 25.0, 50.0, 100.0, 2e3)
"""Accelerations in [rad/s²] that set-points start from."""

# Judgement: a limit, and a derivative gain, change how late a servo is by so much.
_LATER = (-0.01, 0.0, 0.008, 0.02)
"""What is added to the core's delay in [s]."""

_FRICTION = {"driving": 0.03, "back_driven": 0.03, "load_static": 0.03}
"""Sizes of friction that set-points are sought beside."""


def profile_starts(
    core: Values, bare: Values, windows: Sequence[ServoMotion]
) -> list[list[dict[str, float]]]:
    """Return groups of starts, one for every valley that set-points are known to have.

    Accelerations, and the damping all the motor's or half of it a derivative gain's. In
    each group delays, limits of speed and how friction falls off vary, and the best is
    as good as any.

    Args:
        core: What the random starts came to, limits included.
        bare: The same without limits of the set-point.
        windows: That will be fitted.
    """
    speed = max((fastest(w) for w in windows), default=1.0)
    base = dict(bare) | _FRICTION | {"static": 0.1 * bare["coulomb"]}
    own = dict(zip(LIMITS, (2e3, 10.0 * speed), strict=True))
    own |= {n: core[n] for n in LIMITS if np.isfinite(core[n])}
    groups = [[dict(core) | {k: base[k] for k in (*_FRICTION, "static")} | own]]
    for acceleration in _PROFILES:
        for part in (0.0, 0.55):
            timing = {
                "acceleration": acceleration,
                "derivative": max(part, 0.01) * bare["damping"],
                "damping": (part or 1.0) * bare["damping"],
            }
            groups.append([
                base | timing
                | {"slew": factor * speed, "delay": bare["delay"] + later}
                | {"stribeck_speed": falls}
                for factor in (10.0, 0.7, 0.35)
                for later in _LATER
                for falls in (0.05, 0.3)
            ])  # fmt: skip
    return groups


_TIMING = ("delay", *LIMITS)
"""What firmware does alike in all servos of one type."""


def borrowed(
    values: Values, names: Sequence[str], others: Sequence[Values]
) -> list[dict[str, float]]:
    """Return servos with what others of their arm have: the timing, or all of it.

    Args:
        values: Of a servo.
        names: Its fitted parameters.
        others: Servos, those that are explained best first.
    """
    starts = []
    whole = tuple(n for n in names if n not in ("offset", "zero"))
    # Judgement: of whole models two; with all, it takes long.
    for group, lenders in ((_TIMING, others), (whole, others[:2])):
        for other in lenders:
            taken = {n: other[n] for n in group
                     if n in names and other[n] != PARAMETERS[n].absent}  # fmt: skip
            start = dict(values) | taken
            if "derivative" in names and group is _TIMING:
                total = values["damping"] + values["derivative"]
                part = other["derivative"] / (other["damping"] + other["derivative"])
                start |= {"derivative": part * total, "damping": (1.0 - part) * total}
            starts.append(start)
    return starts


def element_starts(
    values: Values, added: Sequence[str], windows: Sequence[ServoMotion]
) -> list[dict[str, float]]:
    """Return values with an element at several sizes, or on a grid of limits."""
    units = units_of(stacked([values]), added)
    starts = []
    for factor in (0.1, 0.3, 1.0, 3.0):
        start = dict(values)
        for name in added:
            start[name] = factor * float(units[name][0])
        starts.append(start)
    if "saturation" in added:
        effort = max(_effort(w) for w in windows) * values["stiffness"]
        limits = [float(f * effort) for f in np.geomspace(0.02, 1.0, 16)]
        if np.isfinite(values["saturation"]):
            limits.append(values["saturation"])
        # All that damps within the limit, or none of it; the fit finds what is between.
        parts = (0.9, 0.0) if "limited_damping" in added else (0.0,)
        return [
            dict(values) | {"saturation": limit, "limited_damping": part}
            for limit in limits
            for part in parts
        ]
    if added == ("braking_speed",):
        reached = max(_coasting_speed(w) for w in windows)
        return [
            dict(values) | {"braking_speed": part * reached}
            for part in (0.5, 0.7, 0.8, 0.9, 0.95)
        ]
    if "coasting_static" in added:
        # What was Stribeck friction is dry friction, as far as the motor was off.
        return [
            start
            | {"coulomb": start["coulomb"] + part * values["static"]}
            | {"inertial_load": values["inertial_load"] or 1.0}
            for start in starts
            for part in (0.0, 0.5, 1.0)
        ]
    if added == ("heating",):
        warm = float(np.median([w.warmth[0] for w in windows]))
        for start in starts:
            # The same servo at the usual temperature.
            for name in ("stiffness", "damping", "saturation", "start_up"):
                start[name] *= 1.0 + start["heating"] * warm
        return starts
    for name in ("stribeck_speed", "creep_speed"):
        if name in added:
            return [dict(start) | {name: speed}
                    for start in starts for speed in (0.03, 0.1, 0.3, 1.0)]  # fmt: skip
    if PARAMETERS[added[0]].scale == "signed":
        starts += [dict(values) | {added[0]: -s[added[0]]} for s in starts]
    return starts


# At three times the speed at which half is gone a tenth of it is left by the algebraic
# shape, an eighth by the exponential one, and nothing by the Gaussian.
_TAILS = {0.0: 0.1, -1.0: 0.12, 1.0: 0.0}
"""Shape of Stribeck friction → what is left of it where others take over."""


def shape_starts(values: Values) -> list[dict[str, float]]:
    """Return a servo's Stribeck friction in other shapes, alike at rest and at speed.

    What is left at speed is Coulomb friction in a shape that has no tail.
    """
    own = values["stribeck_shape"]
    tail = _TAILS[float(np.sign(own))] * abs(own) + _TAILS[0.0] * (1.0 - abs(own))
    starts = [dict(values)]
    for shape, other in _TAILS.items():
        moved = values["static"] * (tail - other) / (1.0 - other)
        # Sliding friction stays one, however much there is at rest.
        moved = max(moved, -0.5 * values["coulomb"])
        starts.append(
            dict(values)
            | {
                "stribeck_shape": shape,
                "static": values["static"] - moved,
                "coulomb": values["coulomb"] + moved,
            }
        )
    return starts


def fastest(motion: ServoMotion) -> float:
    """Return the fastest speed in [rad/s] of the commands over 0.1 s."""
    period = float(np.median(np.diff(motion.time)))
    lag = max(1, round(0.1 / period))
    if len(motion.time) <= lag:
        return 1.0
    moved = np.abs(motion.goals[lag:] - motion.goals[:-lag]).max()
    return max(float(moved) / (lag * period), 1e-2)


def _effort(motion: ServoMotion) -> float:
    """Return the largest error in [rad] while the motor is on, times the gain."""
    rows = motion.mask[:, 0] & (motion.powered > 0.5)
    errors = np.abs(motion.goals[rows, 0] - motion.q[rows, 0])
    return float(errors.max(initial=1e-3)) * motion.gain


def _coasting_speed(motion: ServoMotion) -> float:
    """Return the fastest speed in [rad/s] over 0.1 s with the motor off."""
    off = motion.mask[:, 0] & (motion.powered < 0.5)
    period = float(np.median(np.diff(motion.time)))
    lag = max(1, round(0.1 / period))
    moved = np.abs(motion.q[lag:, 0] - motion.q[:-lag, 0])[off[lag:] & off[:-lag]]
    return max(float(moved.max(initial=0.0)) / (lag * period), 1e-2)


def beyond_servos(values: Values) -> set[str]:
    """Return the limits of a set-point that no servo has, finite all the same."""
    return {name for name, most in _FASTEST.items() if most < values[name] < np.inf}


def without_derivative(start: dict[str, float], values: Values) -> dict[str, float]:
    """Return a start whose damping and delay do what a derivative gain did."""
    gain = values["derivative"]
    if start["derivative"] == 0.0 and gain > 0.0:
        inner = start["limited_damping"] * values["damping"] + gain
        start["delay"] -= gain / values["stiffness"]
        start["damping"] += gain
        if start["limited_damping"] > 0.0:
            start["limited_damping"] = inner / start["damping"]
    return start


def without(values: Values, names: Sequence[str]) -> dict[str, float]:
    """Return values with what is not among the names left out."""
    return {
        name: value if name in names else PARAMETERS[name].absent
        for name, value in values.items()
    }


TORQUE_UNITS = {
    parameter.unit
    for parameter in PARAMETERS.values()
    if parameter.unit.startswith(("N m", "kg m²"))
}
"""Units of what grows with a servo's torques."""


_PER_LOAD = (
    "driving", "back_driven", "load_static", "load_square", "load_stiction", "bearing",
)  # fmt: skip
"""Friction per load."""


def with_torques(values: Values, factor: float) -> dict[str, float]:
    """Return a servo all of whose torques are so many times as large."""
    # Loads are what they are: friction of theirs grows by its fraction of them.
    return {
        name: value * factor
        if PARAMETERS[name].unit in TORQUE_UNITS or name in _PER_LOAD
        else value
        for name, value in values.items()
    }


def with_even_friction(values: Values) -> dict[str, float] | None:
    """Return a servo that moves alike, its load friction alike both ways.

    None of a drive that locks: friction that holds all of what would drive it back is
    no valley's end, and its even servo would be twice as strong and more.

    A servo whose torques are all f times as large, and whose friction is f (1 + d) − 1
    of the load that it drives and 1 − f (1 − b) of what drives it, moves alike but for
    inertia: of that valley this is the middle.
    """
    if values["back_driven"] >= 1.0 + values["driving"]:
        return None
    factor = 2.0 / (2.0 + values["driving"] - values["back_driven"])
    part = factor * (1.0 + values["driving"]) - 1.0
    even = with_torques(values, factor)
    return even | dict.fromkeys(ELEMENTS["load friction"], part)


def evened(starts: Sequence[Values], names: Sequence[str]) -> list[dict[str, float]]:
    """Return starts with even load friction, if that is among the fitted parameters."""
    is_fitted = set(ELEMENTS["load friction"]) <= set(names)
    servos = [with_even_friction(values) for values in starts] if is_fitted else []
    return [servo for servo in servos if servo is not None]
