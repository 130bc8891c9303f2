"""How far a relation between points is from holding, and how that changes."""

from __future__ import annotations

from dataclasses import dataclass

from armwise.programs.scalars import Number, sign
from armwise.worlds.constraints import Relation
from armwise.worlds.moving import Moving, PointMotion
from armwise.worlds.vectors import Array, dot, norm, product, symbols, zeros

CURVE_RATE = 50.0
"""How fast, in [1/s], a place on a curve returns to the nearest one."""


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
        slip: Rate of the place on the curve, if there is one.
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
    return rate * (2.0 * frequency) + value * frequency**2


def _velocity(
    relation: Relation, G: Array, points: PointMotion, carried: PointMotion | None
) -> Deviation:
    wanted = carried.velocity if carried else symbols(relation.target)
    change = carried.turning if carried else zeros(3)
    value = product(G, points.velocity - wanted)
    return Deviation(
        G,
        value,
        value * relation.frequency,
        product(G, points.turning - change),
        value,
        product(G, wanted),
    )


def _on_curve(relation: Relation, p: PointMotion, s: Number) -> Deviation:
    """Hold p across the curve at its nearest point; along it, s follows.

    From (p − c)·c′ = 0 follows ṡ = c′·ṗ / (c′·c′ − (p − c)·c″); a small pull keeps
    s there. Across the curve the acceleration of c is c″ṡ².
    """
    assert relation.curve is not None
    c, tangent, bend = (symbols(x) for x in relation.curve.at(s))
    gap = p.position - c
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
