"""Read constraints of a world from TOML."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from armwise.arms.toml import Table
from armwise.motions import Motion, Sinusoid
from armwise.worlds.bodies import Point
from armwise.worlds.constraints import (
    Constraint,
    PointToCurve,
    PointToLine,
    PointToNail,
    PointToPlane,
    PointToPoint,
    PointVelocity,
)
from armwise.worlds.curves import CircleCurve
from armwise.worlds.joints import Hinge, Orientation, Weld
from armwise.worlds.scenario_bodies import Vector, read_end, read_point, vector

_COMMON = ("name", "kind", "frequency", "max_force", "max_deviation")
_ZERO = (0.0, 0.0, 0.0)


def read_constraint(row: Table) -> Constraint:
    """Read one [[constraint]]."""
    kind = row.text("kind", "nail")
    if kind not in _READERS:
        raise row.error(f'has the unknown kind "{kind}". Known: {", ".join(_READERS)}.')
    if "name" not in row.values:
        raise row.error("has no name: the log and the ledger need one.")
    return _READERS[kind](row)


def _strength(row: Table) -> tuple[float, float, float]:
    return (
        row.number("frequency", 10.0),
        row.number("max_force", inf),
        row.number("max_deviation", inf),
    )


def _name(row: Table) -> str:
    return row.text("name", "-")


def _target(row: Table, key: str) -> Vector | Motion:
    """Read a place that stays, or one carried by a sinusoid in `motion`."""
    if "motion" not in row.values:
        return vector(row, key, _ZERO)
    motion = row.table("motion").only(
        "center", "amplitude", "omega", "phase", "duration"
    )
    return Sinusoid(
        vector(motion, "center", _ZERO),  # type: ignore[arg-type]
        vector(motion, "amplitude", _ZERO),  # type: ignore[arg-type]
        vector(motion, "omega", _ZERO),  # type: ignore[arg-type]
        motion.number("duration", 1e6),
        vector(motion, "phase", _ZERO),  # type: ignore[arg-type]
    )


def _nail(row: Table) -> Constraint:
    row.only(*_COMMON, "point", "at", "motion")
    return PointToNail(
        _name(row), read_point(row, "point"), _target(row, "at"), *_strength(row)
    )


def _pin(row: Table) -> Constraint:
    row.only(*_COMMON, "a", "b")
    a, b = read_point(row, "a"), read_point(row, "b")
    return PointToPoint(_name(row), a, b, *_strength(row))


def _line(row: Table) -> Constraint:
    row.only(*_COMMON, "point", "through", "along", "motion")
    return PointToLine(
        _name(row),
        read_point(row, "point"),
        _target(row, "through"),
        vector(row, "along", (1.0, 0.0, 0.0)),
        *_strength(row),
    )


def _plane(row: Table) -> Constraint:
    row.only(*_COMMON, "point", "through", "normal", "motion")
    return PointToPlane(
        _name(row),
        read_point(row, "point"),
        _target(row, "through"),
        vector(row, "normal", (0.0, 0.0, 1.0)),
        *_strength(row),
    )


def _circle(row: Table) -> Constraint:
    row.only(*_COMMON, "point", "center", "normal", "radius")
    curve = CircleCurve(
        vector(row, "center", _ZERO),
        vector(row, "normal", (0.0, 1.0, 0.0)),
        row.number("radius"),
    )
    return PointToCurve(_name(row), read_point(row, "point"), curve, *_strength(row))


def _velocity(row: Table) -> Constraint:
    row.only(*_COMMON, "point", "velocity", "along", "motion")
    along = (vector(row, "along", _ZERO),) if "along" in row.values else ()
    return PointVelocity(
        _name(row),
        read_point(row, "point"),
        _target(row, "velocity"),
        along,
        *_strength(row),
    )


def _hinge(row: Table) -> Constraint:
    row.only(*_COMMON, "a", "b", "axis", "axis_b", "spread")
    axis = vector(row, "axis", (0.0, 1.0, 0.0))
    return Hinge(
        _name(row),
        read_point(row, "a"),
        read_end(row, "b"),
        axis,
        vector(row, "axis_b", axis),
        row.number("spread", 0.1),
        *_strength(row),
    )


def _weld(row: Table) -> Constraint:
    row.only(*_COMMON, "a", "b", "spread")
    spread = row.number("spread", 0.1)
    return Weld(
        _name(row),
        read_point(row, "a"),
        read_end(row, "b"),
        spread=spread,
        frequency=_strength(row)[0],
        max_force=_strength(row)[1],
        max_deviation=_strength(row)[2],
    )


def _orientation(row: Table) -> Constraint:
    row.only(*_COMMON, "a", "b", "free_axis", "spread")
    b = read_end(row, "b") if "b" in row.values else None
    if b is not None and not isinstance(b, Point):
        raise row.error('needs a point for "b", or no b to hold it in the world.')
    free = vector(row, "free_axis", _ZERO) if "free_axis" in row.values else None
    return Orientation(
        _name(row),
        read_point(row, "a"),
        b,
        free_axis=free,
        spread=row.number("spread", 0.1),
        frequency=_strength(row)[0],
        max_force=_strength(row)[1],
        max_deviation=_strength(row)[2],
    )


_READERS: dict[str, Callable[[Table], Constraint]] = {
    "nail": _nail,
    "pin": _pin,
    "line": _line,
    "plane": _plane,
    "circle": _circle,
    "velocity": _velocity,
    "hinge": _hinge,
    "weld": _weld,
    "orientation": _orientation,
}
