"""What a URDF says of a joint: its axis, limits, friction, and whom it follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms.arm import Drive, Joint, Limits, Mimic
from armwise.arms.mimics import resolve_mimic
from armwise.arms.urdf_extension import EXTENSION
from armwise.arms.xml import Element

if TYPE_CHECKING:
    from jaxtyping import Float

MOVING: dict[str, Literal["revolute", "prismatic"]] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
}
"""URDF's joint types that move, and what they are here."""

UNBOUNDED = 1e300
"""A limit at least this large is none: URDF has no word for infinity."""


def read_axis(joint: Element) -> Float[np.ndarray, " 3"]:
    """Return the unit axis of a joint; x where none is given, as URDF has it."""
    element = joint.find("axis")
    if element is None:
        return np.array([1.0, 0.0, 0.0])
    axis = np.array(element.vector("xyz", (1.0, 0.0, 0.0)))
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise joint.error("has an axis of length zero; give it a direction.")
    return axis / length + 0.0


def read_limits(joint: Element) -> Limits:
    """Return a joint's limits; a zero, URDF's default, counts as not known."""
    limit = joint.find("limit")
    if limit is None:
        return Limits()
    values = {name: limit.number(name, 0.0, inf) for name in ("lower", "upper")}
    lower, upper = values["lower"], values["upper"]
    if joint.text("type") == "continuous" or lower == upper == 0.0:
        lower, upper = -inf, inf
    if lower > upper:
        raise joint.error(f"has lower limit {lower:g} > upper {upper:g}; swap them.")
    rates = (_read_rate(limit, name) for name in ("velocity", "acceleration", "effort"))
    return Limits(_bounded(lower), _bounded(upper), *rates)


def _read_rate(limit: Element, name: str) -> float:
    value = limit.number(name, 0.0, inf)
    if value < 0:
        raise limit.error(
            f'has the negative {name} limit "{value:g}"; make it positive.'
        )
    return _bounded(value) if value else inf


def _bounded(value: float) -> float:
    return value if abs(value) < UNBOUNDED else inf if value > 0 else -inf


def read_drive(joint: Element) -> Drive:
    """Return friction from <dynamics>, rotor inertia and offset from <armwise>."""
    dynamics, ours = joint.find("dynamics"), joint.find(EXTENSION)
    return Drive(
        rotor_inertia=ours.number("rotor_inertia", 0.0) if ours else 0.0,
        viscous=dynamics.number("damping", 0.0) if dynamics else 0.0,
        coulomb=dynamics.number("friction", 0.0) if dynamics else 0.0,
        offset=ours.number("offset", 0.0) if ours else 0.0,
    )


def read_mimics(
    elements: Sequence[Element], joints: Sequence[Joint]
) -> tuple[Joint, ...]:
    """Return the joints with their <mimic>, each following one that moves by itself."""
    index = {joint.name: i for i, joint in enumerate(joints)}
    follow = {
        i: _read_mimic(element, index)
        for i, element in enumerate(elements)
        if element.find("mimic") is not None
    }
    led = list(joints)
    for i in follow:
        mimic = resolve_mimic(i, follow)
        if mimic is None:
            raise elements[i].error("mimics itself in a circle; let one joint lead.")
        led[i] = replace(led[i], mimic=mimic)
    return tuple(led)


def _read_mimic(joint: Element, index: dict[str, int]) -> Mimic:
    element = joint.require("mimic")
    leader = element.text("joint")
    if leader not in index:
        raise joint.error(
            f'mimics "{leader}", which is no moving joint. '
            f"There are: {', '.join(list(index)[:8])}."
        )
    multiplier, offset = (
        element.number("multiplier", 1.0),
        element.number("offset", 0.0),
    )
    return Mimic(index[leader], multiplier, offset)
