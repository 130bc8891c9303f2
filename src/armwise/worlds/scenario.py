"""Worlds in TOML files: bodies, constraints, forces and run settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from armwise.arms import load_arm, pose, rotation_from_rpy
from armwise.errors import ArgumentError, ArmwiseError
from armwise.motions import Motion, Sinusoid
from armwise.plants import CashKarp, Integrator, RungeKutta4, SemiImplicit
from armwise.tables import TomlTable, read_toml
from armwise.worlds.articulated import ArticulatedBody
from armwise.worlds.bodies import (
    Point,
    Segment,
    box,
    planar_chain,
    rod,
    sphere,
)
from armwise.worlds.body_protocol import Body
from armwise.worlds.constraints import (
    CircleCurve,
    Constraint,
    Hinge,
    Orientation,
    PointToCurve,
    PointToLine,
    PointToNail,
    PointToPlane,
    PointToPoint,
    PointVelocity,
    Weld,
)
from armwise.worlds.forces import (
    Drag,
    Force,
    JointLimit,
    JointMotor,
    PointForce,
    Spring,
    Torque,
)
from armwise.worlds.methods import (
    DampedLeastSquares,
    ForceMethod,
    Pseudoinverse,
    SingularValueDropping,
    Yielding,
)
from armwise.worlds.rigid import RigidBody
from armwise.worlds.run import Run
from armwise.worlds.simulation import simulate
from armwise.worlds.world import EARTH, World

# Bodies and points.

Vector = tuple[float, float, float]

_POSE_KEYS = ("name", "kind", "position", "rpy", "rpy_deg")
_SPEED_KEYS = ("velocity", "angular_velocity")


def read_body(row: TomlTable, folder: Path) -> Body:
    """Read one [[body]]; files it names are looked for in `folder` first."""
    kind = row.text("kind", "rigid")
    if kind == "rigid":
        return _rigid(row)
    if kind in ("articulated", "chain"):
        return _articulated(row, folder)
    raise row.error(f'has the unknown kind "{kind}". Known: rigid, articulated, chain.')


def read_point(row: TomlTable, key: str) -> Point:
    """Read a point { body = …, at = […], link = … }."""
    table = row.table(key).only("body", "at", "link")
    if "body" not in table.values:
        raise row.error(f'needs a point {{ body = "…", at = [x, y, z] }} for "{key}".')
    link = table.text("link", "-")
    position = vector(table, "at", (0.0, 0.0, 0.0))
    return Point(table.text("body", "-"), position, None if link == "-" else link)


def read_end(row: TomlTable, key: str) -> Point | Vector:
    """Read a point, or a position [x, y, z] in the world."""
    if isinstance(row.values.get(key), dict):
        return read_point(row, key)
    if key not in row.values:
        raise row.error(f'has no "{key}": give a point or a position [x, y, z].')
    return vector(row, key, (0.0, 0.0, 0.0))


def vector(row: TomlTable, key: str, default: Vector) -> Vector:
    """Read three numbers."""
    x, y, z = row.vector(key, default)
    return x, y, z


def _rigid(row: TomlTable) -> RigidBody:
    row.only(*_POSE_KEYS, "segment", *_SPEED_KEYS)
    return _free(row, row.text("name", "body"), "segment")


def _free(row: TomlTable, name: str, key: str) -> RigidBody:
    """Read the segments, the pose and the velocities of something that moves."""
    segments = [_segment(part) for part in row.tables(key)]
    if not segments:
        raise row.error(f"has no [[body.{key}]]: a rigid body is made of segments.")
    zero = (0.0, 0.0, 0.0)
    return RigidBody.from_segments(
        name,
        segments,
        _pose(row),
        vector(row, "velocity", zero),
        vector(row, "angular_velocity", zero),
    )


def _segment(part: TomlTable) -> Segment:
    kind = part.text("kind", "rod")
    zero = (0.0, 0.0, 0.0)
    if kind == "rod":
        part.only("kind", "mass", "from", "to", "radius")
        ends = vector(part, "from", zero), vector(part, "to", zero)
        # Judgement: 2 cm, visible in drawings and negligible beside a rod's length.
        return rod(part.number("mass"), *ends, part.number("radius", 0.02))
    if kind == "box":
        part.only("kind", "mass", "extents", "center")
        extents, center = vector(part, "extents", zero), vector(part, "center", zero)
        return box(part.number("mass"), extents, center)
    if kind == "sphere":
        part.only("kind", "mass", "radius", "center")
        center = vector(part, "center", zero)
        return sphere(part.number("mass"), part.number("radius"), center)
    raise part.error(f'has the unknown kind "{kind}". Known: rod, box, sphere.')


def _articulated(row: TomlTable, folder: Path) -> ArticulatedBody:
    floats = "base" in row.values
    keys = (*_POSE_KEYS, *_SPEED_KEYS, "q", "qd", "base")
    if row.text("kind", "articulated") == "chain":
        row.only(*keys, "links", "length", "mass", "radius", "viscous")
        arm = planar_chain(
            int(row.number("links")),
            _one_or_more(row, "length"),
            _one_or_more(row, "mass"),
            row.number("radius", 0.03),
            row.number("viscous", 0.0),
        )
    else:
        row.only(*keys, "arm")
        name = row.text("arm", "-")
        file = folder / name
        # Beside the scenario first, then bundled arms by name.
        arm = load_arm(file if file.exists() else name)
    if not floats and any(key in row.values for key in _SPEED_KEYS):
        raise row.error("has a velocity, but its base stands: give it a [[body.base]].")
    return ArticulatedBody(
        row.text("name", arm.name),
        arm,
        np.eye(4) if floats else _pose(row),
        _numbers(row, "q"),
        _numbers(row, "qd"),
        _free(row, arm.base, "base") if floats else None,
    )


def _one_or_more(row: TomlTable, key: str) -> float | tuple[float, ...]:
    if isinstance(row.values.get(key), list):
        return _numbers(row, key)
    return row.number(key, 1.0)


def _numbers(row: TomlTable, key: str) -> tuple[float, ...]:
    values: Any = row.values.get(key, [])
    if not isinstance(values, list):
        raise row.error(f'needs a list of numbers for "{key}", not {values!r}.')
    return row.vector(key, (0.0,) * len(values))


def _pose(row: TomlTable) -> np.ndarray:
    zero = (0.0, 0.0, 0.0)
    degrees = row.vector("rpy_deg", zero)
    if "rpy" in row.values and "rpy_deg" in row.values:
        raise row.error('has both "rpy" and "rpy_deg"; keep one.')
    angles = row.vector("rpy", tuple(np.radians(degrees).tolist()))
    return pose(rotation_from_rpy(angles), row.vector("position", zero))


# Constraints.

_COMMON = ("name", "kind", "frequency", "max_force", "max_deviation")
_ZERO = (0.0, 0.0, 0.0)


def read_constraint(row: TomlTable) -> Constraint:
    """Read one [[constraint]]."""
    kind = row.text("kind", "nail")
    if kind not in _CONSTRAINT_READERS:
        raise row.error(
            f'has the unknown kind "{kind}". Known: {", ".join(_CONSTRAINT_READERS)}.'
        )
    if "name" not in row.values:
        raise row.error("has no name: the log and the ledger need one.")
    return _CONSTRAINT_READERS[kind](row)


def _strength(row: TomlTable) -> tuple[float, float, float]:
    return (
        # As in `constraints`: 5 to 10 suits steps of 1 ms.
        row.number("frequency", 10.0),
        row.number("max_force", inf),
        row.number("max_deviation", inf),
    )


def _name(row: TomlTable) -> str:
    return row.text("name", "-")


def _target(row: TomlTable, key: str) -> Vector | Motion:
    """Read a position that stays, or one carried by a sinusoid in `motion`."""
    if "motion" not in row.values:
        return vector(row, key, _ZERO)
    motion = row.table("motion").only(
        "center", "amplitude", "omega", "phase", "duration"
    )
    return Sinusoid(
        vector(motion, "center", _ZERO),  # type: ignore[arg-type]
        vector(motion, "amplitude", _ZERO),  # type: ignore[arg-type]
        vector(motion, "omega", _ZERO),  # type: ignore[arg-type]
        # In [s], eleven days: longer than any run, since a sinusoid need not end.
        motion.number("duration", 1e6),
        vector(motion, "phase", _ZERO),  # type: ignore[arg-type]
    )


def _nail(row: TomlTable) -> Constraint:
    row.only(*_COMMON, "point", "at", "motion")
    return PointToNail(
        _name(row), read_point(row, "point"), _target(row, "at"), *_strength(row)
    )


def _pin(row: TomlTable) -> Constraint:
    row.only(*_COMMON, "a", "b")
    a, b = read_point(row, "a"), read_point(row, "b")
    return PointToPoint(_name(row), a, b, *_strength(row))


def _line(row: TomlTable) -> Constraint:
    row.only(*_COMMON, "point", "through", "along", "motion")
    return PointToLine(
        _name(row),
        read_point(row, "point"),
        _target(row, "through"),
        vector(row, "along", (1.0, 0.0, 0.0)),
        *_strength(row),
    )


def _plane(row: TomlTable) -> Constraint:
    row.only(*_COMMON, "point", "through", "normal", "motion")
    return PointToPlane(
        _name(row),
        read_point(row, "point"),
        _target(row, "through"),
        vector(row, "normal", (0.0, 0.0, 1.0)),
        *_strength(row),
    )


def _circle(row: TomlTable) -> Constraint:
    row.only(*_COMMON, "point", "center", "normal", "radius")
    curve = CircleCurve(
        vector(row, "center", _ZERO),
        vector(row, "normal", (0.0, 1.0, 0.0)),
        row.number("radius"),
    )
    return PointToCurve(_name(row), read_point(row, "point"), curve, *_strength(row))


def _velocity(row: TomlTable) -> Constraint:
    row.only(*_COMMON, "point", "velocity", "along", "motion")
    along = (vector(row, "along", _ZERO),) if "along" in row.values else ()
    return PointVelocity(
        _name(row),
        read_point(row, "point"),
        _target(row, "velocity"),
        along,
        *_strength(row),
    )


def _hinge(row: TomlTable) -> Constraint:
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


def _weld(row: TomlTable) -> Constraint:
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


def _orientation(row: TomlTable) -> Constraint:
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


_CONSTRAINT_READERS: dict[str, Callable[[TomlTable], Constraint]] = {
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


# Forces.


def read_force(row: TomlTable) -> Force:
    """Read one [[force]]."""
    kind = row.text("kind", "-")
    if kind not in _FORCE_READERS:
        raise row.error(f'has the kind "{kind}". Known: {", ".join(_FORCE_READERS)}.')
    if "name" not in row.values:
        raise row.error("has no name: the ledger needs one.")
    return _FORCE_READERS[kind](row)


def _spring(row: TomlTable) -> Force:
    row.only("name", "kind", "a", "b", "stiffness", "rest_length", "damping")
    return Spring(
        _name(row),
        read_point(row, "a"),
        read_end(row, "b"),
        row.number("stiffness"),
        row.number("rest_length", 0.0),
        row.number("damping", 0.0),
    )


def _drag(row: TomlTable) -> Force:
    row.only("name", "kind", "point", "linear", "quadratic")
    point = read_point(row, "point")
    return Drag(
        _name(row), point, row.number("linear", 0.0), row.number("quadratic", 0.0)
    )


def _push(row: TomlTable) -> Force:
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


def _motor(row: TomlTable) -> Force:
    row.only("name", "kind", "body", "joint", "effort")
    return JointMotor(
        _name(row), row.text("body", "-"), row.text("joint", "-"), row.number("effort")
    )


def _torque(row: TomlTable) -> Force:
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


def _limit(row: TomlTable) -> Force:
    keys = ("name", "kind", "body", "joint", "stiffness", "damping", "lower", "upper")
    row.only(*keys)
    return JointLimit(
        _name(row),
        row.text("body", "-"),
        row.text("joint", "-"),
        # Judgement: 1e3 N m/rad gives a few degrees under the weight of an arm, and
        # stays within what a step of 1 ms integrates.
        row.number("stiffness", 1e3),
        row.number("damping", 10.0),
        row.number("lower") if "lower" in row.values else None,
        row.number("upper") if "upper" in row.values else None,
    )


_FORCE_READERS: dict[str, Callable[[TomlTable], Force]] = {
    "spring": _spring,
    "drag": _drag,
    "push": _push,
    "motor": _motor,
    "torque": _torque,
    "limit": _limit,
}


# Scenario.

_Chosen = TypeVar("_Chosen")

INTEGRATORS: dict[str, type[Integrator]] = {
    "rk4": RungeKutta4,
    "cash-karp": CashKarp,
    "semi-implicit": SemiImplicit,
}
METHODS: dict[str, type[ForceMethod]] = {
    "singular-value-dropping": SingularValueDropping,
    "yielding": Yielding,
    "damped-least-squares": DampedLeastSquares,
    "pseudoinverse": Pseudoinverse,
}


@dataclass(frozen=True, eq=False)
class Scenario:
    """A world and how to run it.

    Attributes:
        world: The world.
        duration, step: In [s].
        integrator, method: How it is run.
        record_every: Keep every so many-th state.
    """

    world: World
    duration: float = 10.0
    step: float = 1e-3
    integrator: Integrator = field(default_factory=RungeKutta4)
    method: ForceMethod = field(default_factory=SingularValueDropping)
    record_every: int = 1

    def run(self) -> Run:
        """Simulate it."""
        return simulate(
            self.world,
            self.duration,
            step=self.step,
            integrator=self.integrator,
            method=self.method,
            record_every=self.record_every,
        )


def read_world(path: str | Path) -> Scenario:
    """Read a world and how to run it from a TOML file.

    Raises:
        ArmwiseError: If the file cannot be used; file, table and key are named.
    """
    file = Path(path)
    table = read_toml(file).only(
        "name", "gravity", "duration", "step", "integrator", "method",
        "record_every", "body", "constraint", "force",
    )  # fmt: skip
    try:
        bodies = tuple(read_body(row, file.parent) for row in table.tables("body"))
        world = World(
            bodies,
            tuple(read_constraint(row) for row in table.tables("constraint")),
            tuple(read_force(row) for row in table.tables("force")),
            table.vector("gravity", EARTH),  # type: ignore[arg-type]
            table.text("name", file.stem),
        )
    except ArmwiseError as problem:
        # Messages of TOML tables name the file themselves; those of the world do not.
        if str(file) in str(problem):
            raise
        raise ArgumentError(f"{file}: {problem}") from problem
    limits = {"duration": 10.0, "step": 1e-3, "record_every": 1.0}
    numbers = {key: table.number(key, default) for key, default in limits.items()}
    for key, number in numbers.items():
        if number <= 0.0:
            raise table.error(f'needs a positive "{key}", not {number:g}.')
    return Scenario(
        world,
        numbers["duration"],
        numbers["step"],
        _choose(table, "integrator", "rk4", INTEGRATORS),
        _choose(table, "method", "singular-value-dropping", METHODS),
        int(numbers["record_every"]),
    )


def _choose(
    table: TomlTable, key: str, default: str, choices: dict[str, type[_Chosen]]
) -> _Chosen:
    name = table.text(key, default)
    if name not in choices:
        raise table.error(
            f'has the unknown {key} "{name}". Known: {", ".join(choices)}.'
        )
    return choices[name]()
