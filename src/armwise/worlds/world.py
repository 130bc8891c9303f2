"""World: bodies, constraints and applied forces, checked for consistency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.worlds.articulated import ArticulatedBody
from armwise.worlds.bodies import Point, vector_of
from armwise.worlds.body_protocol import Body
from armwise.worlds.constraints import Constraint, Relation
from armwise.worlds.forces import (
    Drag,
    Force,
    JointLimit,
    JointMotor,
    Named,
    PointForce,
    Spring,
    Torque,
)
from armwise.worlds.rigid import RigidBody

EARTH = (0.0, 0.0, -9.81)
"""Free fall in [m/s²]."""


@dataclass(frozen=True, eq=False)
class World:
    """Bodies under constraints and forces, at the moment the simulation starts.

    Attributes:
        bodies: Rigid and articulated bodies and your own, with their starting state.
        constraints: What holds points together.
        forces: Springs, motors, drag, stops.
        gravity: Free fall in [m/s²], for every body.
        name: For messages and files.
    """

    bodies: tuple[Body, ...]
    constraints: tuple[Constraint, ...] = ()
    forces: tuple[Force, ...] = ()
    gravity: tuple[float, float, float] = EARTH
    name: str = "world"

    def __post_init__(self) -> None:
        for field in ("bodies", "constraints", "forces"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        object.__setattr__(self, "gravity", vector_of(self.gravity, "Gravity"))
        if not self.bodies:
            raise ArgumentError(f"{self.name} has no bodies: give at least one.")
        for body in self.bodies:
            if not (isinstance(body, Body) and isinstance(body.name, str)):
                raise ArgumentError(
                    f"{body!r} is no body of {self.name}: give a RigidBody, an "
                    "ArticulatedBody, or one with a name that inherits from Body."
                )
        _require_unique(self.bodies, "bodies", self.name)
        _require_unique(
            (*self.relations, *self.forces), "constraints or forces", self.name
        )
        for relation in self.relations:
            for point in relation.points:
                self.locate(point, f"The constraint {relation.name!r}")
        for force in self.forces:
            _check_force(self, force)
        _check_overlap(self.relations)

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """Every constraint in terms of points."""
        return tuple(one for held in self.constraints for one in held.relations())

    def body(self, name: str, who: str = "Something") -> Body:
        """Return the body of this name, or say that `who` asked for a missing one."""
        for body in self.bodies:
            if body.name == name:
                return body
        names = ", ".join(body.name for body in self.bodies)
        raise ArgumentError(
            f"{who} names the body {name!r}, which {self.name} does not have. "
            f"It has: {names}."
        )

    def locate(self, point: Point, who: str) -> Body:
        """Return the body a point is on, or say what is wrong with the point."""
        body = self.body(point.body, who)
        body.check_point(point, who)
        return body

    def arm_of(self, name: str, joint: str, who: str) -> Arm:
        """Return the arm of an articulated body that has this joint."""
        body = self.body(name, who)
        if not isinstance(body, ArticulatedBody):
            raise ArgumentError(
                f"{who} acts on a joint, and {name!r} is a rigid body, or one of your "
                "own, without any."
            )
        body.arm.coordinate_index(joint)
        return body.arm

    def without(self, names: Iterable[str]) -> World:
        """Return the world without the constraints and forces of these names."""
        gone = set(names)
        return replace(
            self,
            constraints=tuple(x for x in self.constraints if x.name not in gone),
            forces=tuple(x for x in self.forces if x.name not in gone),
        )


def _require_unique(items: Sequence[Named], what: str, world: str) -> None:
    names: set[str] = set()
    for item in items:
        if item.name in names:
            raise ArgumentError(
                f"{world} has two {what} called {item.name!r}; rename one."
            )
        names.add(item.name)


def _check_force(world: World, force: Force) -> None:
    who = f"The {type(force).__name__.lower()} {force.name!r}"
    if isinstance(force, Spring):
        ends = [end for end in (force.a, force.b) if isinstance(end, Point)]
        for end in ends:
            world.locate(end, who)
        _require(who, force, "stiffness", "rest_length", "damping")
    elif isinstance(force, Drag | PointForce):
        world.locate(force.point, who)
        if isinstance(force, Drag):
            _require(who, force, "linear", "quadratic")
    elif isinstance(force, JointMotor | JointLimit):
        world.arm_of(force.body, force.joint, who)
        if isinstance(force, JointLimit):
            _require(who, force, "stiffness", "damping")
    elif isinstance(force, Torque):
        for name in (force.body, force.reaction):
            if name is not None and not isinstance(world.body(name, who), RigidBody):
                raise ArgumentError(
                    f"{who} turns {name!r}, which is no rigid body: on an articulated "
                    "one use a JointMotor."
                )
        _require(who, force, "viscous")


def _require(who: str, force: object, *names: str) -> None:
    for name in names:
        value = getattr(force, name)
        # Negative damping would create energy; with negative stiffness it has no
        # minimum.
        if not (np.isfinite(value) and value >= 0):
            raise ArgumentError(
                f"{who} needs a {name} that is a number and not negative, "
                f"not {value!r}."
            )


def _check_overlap(relations: Sequence[Relation]) -> None:
    """Refuse the same points held twice, alike or in contradiction."""
    first_with: dict[tuple[object, ...], Relation] = {}
    for relation in relations:
        # Curves and moving targets cannot be compared by their numbers here; if they
        # contradict, `StepMonitor` notices while the world runs.
        if relation.curve is not None or relation.is_moving:
            continue
        key = (
            relation.points,
            relation.signs,
            relation.directions,
            relation.is_velocity,
        )
        twin = first_with.setdefault(key, relation)
        if twin is relation:
            continue
        distance = float(
            np.linalg.norm(np.subtract(twin.fixed_target, relation.fixed_target))
        )
        where = " and ".join(str(point) for point in relation.points)
        # Exactly: targets that differ by rounding already pull against each other.
        if distance == 0:
            raise ArgumentError(
                f"The constraints {twin.name!r} and {relation.name!r} hold the same "
                f"thing ({where}) twice: remove one."
            )
        raise ArgumentError(
            f"The constraints {twin.name!r} and {relation.name!r} contradict each "
            f"other: they hold {where} at two positions {distance:.4g} m apart. "
            "Remove one or move its target."
        )
