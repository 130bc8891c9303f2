"""Read forces of a world from TOML."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from armwise.arms.toml import Table
from armwise.worlds.forces import (
    Drag,
    Force,
    JointLimit,
    JointMotor,
    PointForce,
    Spring,
    Torque,
)
from armwise.worlds.scenario_bodies import Vector, read_end, read_point, vector

_ZERO = (0.0, 0.0, 0.0)


def read_force(row: Table) -> Force:
    """Read one [[force]]."""
    kind = row.text("kind", "-")
    if kind not in _READERS:
        raise row.error(f'has the kind "{kind}". Known: {", ".join(_READERS)}.')
    if "name" not in row.values:
        raise row.error("has no name: the ledger needs one.")
    return _READERS[kind](row)


def _name(row: Table) -> str:
    return row.text("name", "-")


def _spring(row: Table) -> Force:
    row.only("name", "kind", "a", "b", "stiffness", "rest_length", "damping")
    return Spring(
        _name(row),
        read_point(row, "a"),
        read_end(row, "b"),
        row.number("stiffness"),
        row.number("rest_length", 0.0),
        row.number("damping", 0.0),
    )


def _drag(row: Table) -> Force:
    row.only("name", "kind", "point", "linear", "quadratic")
    point = read_point(row, "point")
    return Drag(
        _name(row), point, row.number("linear", 0.0), row.number("quadratic", 0.0)
    )


def _push(row: Table) -> Force:
    """Read a force that is constant, or grows by `ramp` [N/s], until a time [s]."""
    row.only("name", "kind", "point", "force", "ramp", "until")
    start, ramp = vector(row, "force", _ZERO), vector(row, "ramp", _ZERO)
    until = row.number("until", inf)
    if ramp == _ZERO and until == inf:
        return PointForce(_name(row), read_point(row, "point"), start)

    def force(t: float) -> Vector:
        x, y, z = (a + b * t for a, b in zip(start, ramp, strict=True))
        return (x, y, z) if t < until else _ZERO

    return PointForce(_name(row), read_point(row, "point"), force)


def _motor(row: Table) -> Force:
    row.only("name", "kind", "body", "joint", "effort")
    return JointMotor(
        _name(row), row.text("body", "-"), row.text("joint", "-"), row.number("effort")
    )


def _torque(row: Table) -> Force:
    row.only("name", "kind", "body", "axis", "effort", "reaction", "viscous")
    reaction = row.text("reaction", "-")
    return Torque(
        _name(row),
        row.text("body", "-"),
        vector(row, "axis", (0.0, 1.0, 0.0)),
        row.number("effort", 0.0),
        None if reaction == "-" else reaction,
        row.number("viscous", 0.0),
    )


def _limit(row: Table) -> Force:
    keys = ("name", "kind", "body", "joint", "stiffness", "damping", "lower", "upper")
    row.only(*keys)
    return JointLimit(
        _name(row),
        row.text("body", "-"),
        row.text("joint", "-"),
        row.number("stiffness", 1e3),
        row.number("damping", 10.0),
        row.number("lower") if "lower" in row.values else None,
        row.number("upper") if "upper" in row.values else None,
    )


_READERS: dict[str, Callable[[Table], Force]] = {
    "spring": _spring,
    "drag": _drag,
    "push": _push,
    "motor": _motor,
    "torque": _torque,
    "limit": _limit,
}
