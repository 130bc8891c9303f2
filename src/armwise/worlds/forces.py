"""Applied forces as data: springs, dampers, motors, drag, joint stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from armwise.worlds.bodies import Point
from armwise.worlds.constraints import Vector

Effort = float | Callable[[float, np.ndarray, np.ndarray], float]
"""A number, or a function of t, q, q̇ of its body, sampled once per step and held."""


@dataclass(frozen=True, eq=False)
class Spring:
    """A spring between two points, or a point and a position, with a damper inside.

    With a rest length it pulls and damps along its own line. Without, it pulls to
    zero length and damps the difference of velocities in every direction.

    Attributes:
        name: What the ledger calls it.
        a: One end.
        b: The other end, or a position in the world [m].
        stiffness: In [N/m].
        rest_length: In [m].
        damping: In [N s/m].
    """

    name: str
    a: Point
    b: Point | Vector
    stiffness: float
    rest_length: float = 0.0
    damping: float = 0.0


@dataclass(frozen=True, eq=False)
class Drag:
    """Resistance to the motion of a point through the surroundings.

    F = −(linear + quadratic ‖v‖) v.

    Attributes:
        name: What the ledger calls it.
        point: Where it acts.
        linear: In [N s/m].
        quadratic: In [N s²/m²].
    """

    name: str
    point: Point
    linear: float = 0.0
    quadratic: float = 0.0


@dataclass(frozen=True, eq=False)
class PointForce:
    """A force [N] in world axes at a point: constant, or a function of time [s]."""

    name: str
    point: Point
    force: Vector | Callable[[float], Vector]


@dataclass(frozen=True, eq=False)
class JointMotor:
    """A motor on a joint of an articulated body.

    Attributes:
        name: What the ledger calls it.
        body, joint: Where it acts.
        effort: Torque [N m] or force [N].
    """

    name: str
    body: str
    joint: str
    effort: Effort


@dataclass(frozen=True, eq=False)
class Torque:
    """A motor that turns a rigid body about an axis fixed in it.

    Attributes:
        name: What the ledger calls it.
        body: The body it turns.
        axis: In the body's frame.
        effort: Torque in [N m].
        reaction: The rigid body that takes the opposite torque; None: the world.
        viscous: Friction against the relative turning, in [N m s/rad].
    """

    name: str
    body: str
    axis: Vector
    effort: float | Callable[[float], float] = 0.0
    reaction: str | None = None
    viscous: float = 0.0


@dataclass(frozen=True, eq=False)
class JointLimit:
    """An elastic stop at both ends of a joint's travel.

    Attributes:
        name: What the ledger calls it.
        body, joint: Where it acts.
        stiffness: In [N m/rad] or [N/m].
        damping: In [N m s/rad] or [N s/m], while the stop is pressed.
        lower, upper: In [rad] or [m]; the arm's own limits if not given.
    """

    name: str
    body: str
    joint: str
    stiffness: float = 1e3
    # Judgement: with a stiffness of 1e3 a body of 0.025 kg m² is critically damped;
    # heavier ones bounce a little.
    damping: float = 10.0
    lower: float | None = None
    upper: float | None = None


Force = Spring | Drag | PointForce | JointMotor | Torque | JointLimit


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...
