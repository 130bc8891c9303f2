"""Evaluation of applied forces: generalised forces, power and stored energy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from armwise.programs import Number, sign
from armwise.worlds.articulated import ArticulatedBody, ArticulatedMotion
from armwise.worlds.bodies import Point
from armwise.worlds.body_protocol import (
    Array,
    Moving,
    PointMotion,
    dot,
    norm,
    product,
    symbols,
    zeros,
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
from armwise.worlds.rigid import RigidMotion

if TYPE_CHECKING:
    from armwise.worlds.constraints import Relation
    from armwise.worlds.world import World


@dataclass(frozen=True, eq=False)
class Push:
    """What one force does at one state.

    Attributes:
        loads: Generalised forces, by body.
        powers: Power into the bodies in [W], by kind of account.
        stored: Energy it stores in [J].
    """

    loads: list[tuple[str, Array]]
    powers: dict[str, Number] = field(default_factory=dict)
    stored: Number = 0.0


def push_of(
    force: Force, world: World, moving: dict[str, Moving], signal: Array | None
) -> Push:
    """Return what a force does; `signal` holds its effort if that is a function."""
    if isinstance(force, Spring):
        return _spring(force, moving)
    if isinstance(force, Drag):
        return _drag(force, moving)
    if isinstance(force, PointForce):
        value = signal if signal is not None else symbols(force.force)
        velocity = moving[force.point.body].point(force.point).velocity
        load = moving[force.point.body].apply_point_force(force.point, value)
        return Push([(force.point.body, load)], {"actuator": dot(value, velocity)})
    if isinstance(force, Torque):
        return _torque(force, moving, signal)
    if isinstance(force, JointMotor):
        return _actuator(force, world, moving, signal)
    return _joint_limit(force, world, moving)


def _ends(
    a: Point, b: Point | tuple[float, float, float], moving: dict[str, Moving]
) -> tuple[Array, Array]:
    """Return the vector from b to a and its rate."""
    one = moving[a.body].point(a)
    if isinstance(b, Point):
        other = moving[b.body].point(b)
        return one.position - other.position, one.velocity - other.velocity
    return one.position - symbols(b), one.velocity


def _spring(spring: Spring, moving: dict[str, Moving]) -> Push:
    vector, rate = _ends(spring.a, spring.b, moving)
    # Without a rest length the force is linear in the vector itself and needs no
    # direction, which at length zero does not exist.
    if spring.rest_length > 0:
        length = norm(vector)
        unit = vector / length
        stretch = length - spring.rest_length
        pull, stored = unit * (-stretch * spring.stiffness), stretch * stretch
        brake = unit * (dot(unit, rate) * -spring.damping)
    else:
        pull, stored = vector * -spring.stiffness, dot(vector, vector)
        brake = rate * -spring.damping
    powers = {"damper": dot(brake, rate)} if spring.damping > 0 else {}
    total = pull + brake
    loads = [(spring.a.body, moving[spring.a.body].apply_point_force(spring.a, total))]
    if isinstance(spring.b, Point):
        other = moving[spring.b.body].apply_point_force(spring.b, -total)
        loads.append((spring.b.body, other))
    return Push(loads, powers, stored * (0.5 * spring.stiffness))


def _drag(drag: Drag, moving: dict[str, Moving]) -> Push:
    body = moving[drag.point.body]
    velocity = body.point(drag.point).velocity
    force = velocity * -drag.linear
    if drag.quadratic > 0:
        # The tiny number keeps the square root smooth at rest.
        speed = norm(np.append(velocity, 1e-12))
        force = force - velocity * (speed * drag.quadratic)
    load = body.apply_point_force(drag.point, force)
    return Push([(drag.point.body, load)], {"drag": dot(force, velocity)})


def _torque(torque: Torque, moving: dict[str, Moving], signal: Array | None) -> Push:
    """Turn one rigid body, the other way its reaction."""
    body = moving[torque.body]
    assert isinstance(body, RigidMotion)
    axis = symbols((np.asarray(torque.axis) / np.linalg.norm(torque.axis)).tolist())
    omega = body.omega
    other = moving[torque.reaction] if torque.reaction is not None else None
    if isinstance(other, RigidMotion):
        # ω is kept in each body's own axes: through the world into this body's.
        outside = product(other.rotation, other.omega)
        omega = omega - product(body.rotation.T, outside)
    speed = dot(axis, omega)
    effort: Number = signal[0] if signal is not None else float(torque.effort)  # type: ignore[arg-type]
    total = effort - speed * torque.viscous
    # Power against the relative speed: what a motor gives both bodies together.
    powers: dict[str, Number] = {"actuator": speed * effort}
    if torque.viscous > 0:
        powers["damper"] = -speed * speed * torque.viscous
    loads = [(torque.body, body.apply_torque(axis * total))]
    if isinstance(other, RigidMotion):
        back = product(other.rotation.T, product(body.rotation, axis * total))
        loads.append((str(torque.reaction), other.apply_torque(-back)))
    return Push(loads, powers)


def _joint(
    body: str, joint: str, world: World, moving: dict[str, Moving]
) -> tuple[int, ArticulatedMotion]:
    """Return a joint's index and the arm it is on."""
    described, arm = world.body(body), moving[body]
    assert isinstance(described, ArticulatedBody)
    assert isinstance(arm, ArticulatedMotion)
    return described.arm.coordinate_index(joint), arm


def _actuator(
    actuator: JointMotor, world: World, moving: dict[str, Moving], signal: Array | None
) -> Push:
    i, arm = _joint(actuator.body, actuator.joint, world, moving)
    effort: Number = signal[0] if signal is not None else float(actuator.effort)  # type: ignore[arg-type]
    powers = {"actuator": arm.joints[1][i] * effort}
    return Push([(actuator.body, arm.joint_load(i, effort))], powers)


def _joint_limit(limit: JointLimit, world: World, moving: dict[str, Moving]) -> Push:
    """Press back, with stiffness and damping, while past either end."""
    i, arm = _joint(limit.body, limit.joint, world, moving)
    q, qd = (x[i] for x in arm.joints)
    described = world.body(limit.body)
    assert isinstance(described, ArticulatedBody)
    own = {"lower": described.arm.limits("lower")[i]}
    own["upper"] = described.arm.limits("upper")[i]
    effort: Number = 0.0
    stored: Number = 0.0
    braking: Number = 0.0
    for side, outward in (("lower", -1.0), ("upper", 1.0)):
        bound = getattr(limit, side)
        end = float(own[side] if bound is None else bound)
        if not np.isfinite(end):
            continue
        past = (q - end) * outward
        # A branch as arithmetic: traced programs have no conditions.
        pressed = (sign(past) + 1.0) * 0.5
        depth = past * pressed
        brake = qd * pressed * -limit.damping
        effort = effort - depth * (outward * limit.stiffness) + brake
        stored = stored + depth * depth * (0.5 * limit.stiffness)
        braking = braking + brake * qd
    powers = {"damper": braking} if limit.damping > 0 else {}
    return Push([(limit.body, arm.joint_load(i, effort))], powers, stored)


# Deviation of relations between points, and its derivatives.

# Judgement: several times a constraint's default frequency of 10, and far inside the
# stability of a 1 ms step.
CURVE_RATE = 50.0
"""How fast, in [1/s], a bead's curve parameter returns to the nearest point."""


@dataclass(frozen=True, eq=False)
class Deviation:
    """A relation at one state.

    Attributes:
        directions: Rows of G.
        value: D.
        pull: 2λḊ + λ²D, or λD for a velocity.
        turning: D̈ at no acceleration of the coordinates (Ḋ for a velocity).
        error: The part of the points' velocity that violates the relation.
        carrier: The part that its moving target gives.
        slip: Rate of the curve's parameter, if there is one.
    """

    directions: Array
    value: Array
    pull: Array
    turning: Array
    error: Array
    carrier: Array
    slip: Number = 0.0


def deviation_of(
    relation: Relation,
    moving: dict[str, Moving],
    carried: PointMotion | None,
    s: Number | None,
) -> Deviation:
    """Return the deviation of a relation, its target `carried` or on a curve at s."""
    points = _sum(relation, moving)
    if relation.curve is not None:
        assert s is not None
        return _on_curve(relation, points, s)
    G = symbols(relation.directions)
    if relation.is_velocity:
        return _velocity(relation, G, points, carried)
    n = carried or PointMotion(symbols(relation.target), zeros(3), zeros(3))
    value = product(G, points.position - n.position)
    rate = product(G, points.velocity - n.velocity)
    turning = product(G, points.turning - n.turning)
    return Deviation(
        G, value, _pull(relation, value, rate), turning, rate, product(G, n.velocity)
    )


def _sum(relation: Relation, moving: dict[str, Moving]) -> PointMotion:
    """Return Σ sᵢ pᵢ and its motion."""
    total = PointMotion(zeros(3), zeros(3), zeros(3))
    for point, weight in zip(relation.points, relation.signs, strict=True):
        one = moving[point.body].point(point)
        total = PointMotion(*(x + y * weight for x, y in zip(total, one, strict=True)))
    return total


def _pull(relation: Relation, value: Array, rate: Array) -> Array:
    frequency = relation.frequency
    # Baumgarte stabilisation, critically damped: the fastest return without overshoot.
    return rate * (2.0 * frequency) + value * frequency**2


def _velocity(
    relation: Relation, G: Array, points: PointMotion, carried: PointMotion | None
) -> Deviation:
    target = carried.velocity if carried else symbols(relation.target)
    change = carried.turning if carried else zeros(3)
    value = product(G, points.velocity - target)
    return Deviation(
        G,
        value,
        value * relation.frequency,
        product(G, points.turning - change),
        value,
        product(G, target),
    )


def _on_curve(relation: Relation, p: PointMotion, s: Number) -> Deviation:
    """Hold p across the curve at its nearest point; along it, s follows.

    From (p − c)·c′ = 0 follows ṡ = c′·ṗ / (c′·c′ − (p − c)·c″); a small pull keeps
    s there. Across the curve the acceleration of c is c″ṡ².
    """
    assert relation.curve is not None
    c, tangent, bend = (symbols(x) for x in relation.curve.at(s))
    gap = p.position - c
    # Positive while the point is nearer than the centre of curvature; beyond, the
    # nearest point is no longer unique.
    slope = dot(tangent, tangent) - dot(gap, bend)
    follow = dot(tangent, p.velocity) / slope
    slip = follow + dot(gap, tangent) / slope * CURVE_RATE
    G = _across(tangent / norm(tangent))
    value = product(G, gap)
    rate = product(G, p.velocity - tangent * follow)
    turning = product(G, p.turning - bend * (follow * follow))
    return Deviation(
        G, value, _pull(relation, value, rate), turning, rate, zeros(2), slip
    )


def _across(t: Array) -> Array:
    """Return two unit vectors across a unit vector, smooth but where t_z flips."""
    # Duff et al. 2017: the sign of t_z picks the branch that cannot divide by zero.
    side = sign(sign(t[2]) + 0.5)
    a = -1.0 / (side + t[2])
    b = t[0] * t[1] * a
    first = symbols([side * t[0] * t[0] * a + 1.0, side * b, -side * t[0]])
    second = symbols([b, side + t[1] * t[1] * a, -t[1]])
    return symbols([first.tolist(), second.tolist()])
