"""Newton–Euler: accelerations outwards, forces inwards.

A link's acceleration is the pair (U, a): U = [ω̇×] + [ω×][ω×] and the acceleration a
of its origin, gravity included. With the mass matrix P = [[Σ, h], [hᵀ, m]] of a link,
force and moment about its origin are the last column and the axial part of [U a] P.

The quadratic terms in q̇ are written as symmetric products of two velocities, q̇ and
q̇r. With q̇r = q̇ this is the equation of motion; with another q̇r it is
M q̈ + C(q, q̇) q̇r + g with the Christoffel C, for which Ṁ − 2C is skew: that is the
equation Slotine and Li's controllers need, from the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armwise.arms import BASE
from armwise.dynamics.skeleton import Segment, Skeleton
from armwise.dynamics.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    mul,
    sub,
    total,
    turn,
    vadd,
    vector,
)
from armwise.programs import Scalar as Symbol
from armwise.programs import cos, sin

# Joints over scalars: how vectors and bodies cross from link to link.


@dataclass(frozen=True)
class Crossing:
    """A joint at some position: T_parent_child = [A Rz(θ), p].

    Attributes:
        segment: The joint's constants.
        cosine, sine: Of θ.
        position: p, child origin in the parent frame.
    """

    segment: Segment
    cosine: Scalar
    sine: Scalar
    position: Vector

    def to_parent(self, v: Vector) -> Vector:
        """Turn a vector from child axes to parent axes."""
        return turn(self.segment.turn, self.about_z(v))

    def to_child(self, v: Vector) -> Vector:
        """Turn a vector from parent axes to child axes."""
        x, y, z = turn(self.segment.turn.T, v)
        c, s = self.cosine, self.sine
        return add(mul(c, x), mul(s, y)), sub(mul(c, y), mul(s, x)), z

    def about_z(self, v: Vector) -> Vector:
        """Turn a vector by Rz(θ) only."""
        c, s = self.cosine, self.sine
        return (
            sub(mul(c, v[0]), mul(s, v[1])),
            add(mul(s, v[0]), mul(c, v[1])),
            v[2],
        )


def cross_joints(skeleton: Skeleton, q: Sequence[Scalar]) -> list[Crossing]:
    """Set every joint to its position."""
    return [_crossing(s, x) for s, x in zip(skeleton.segments, q, strict=True)]


def _crossing(segment: Segment, q: Scalar) -> Crossing:
    place = vector(segment.position)
    if not segment.is_revolute:
        slide = tuple(mul(float(a), q) for a in segment.slide)
        return Crossing(segment, 1.0, 0.0, vadd(place, slide))
    angle = add(q, segment.angle)
    if isinstance(angle, Symbol):
        return Crossing(segment, cos(angle), sin(angle), place)
    return Crossing(segment, np.cos(angle), np.sin(angle), place)


# Newton–Euler: accelerations outwards, forces inwards.

Matrix = tuple[Vector, Vector, Vector]


@dataclass(frozen=True)
class Motion:
    """How a link moves, in its own axes.

    Attributes:
        omega: Angular velocity ω.
        omega_r: The same from q̇r.
        alpha: Angular acceleration ω̇.
        rates: U, rows first.
        squares: ωx², ωy², ωz² (symmetric products of ω and ω_r).
        acceleration: Acceleration a of the origin, minus free fall.
    """

    omega: Vector
    omega_r: Vector
    alpha: Vector
    rates: Matrix
    squares: Vector
    acceleration: Vector


def accelerations(
    skeleton: Skeleton,
    crossings: Sequence[Crossing],
    qd: Sequence[Scalar],
    qdr: Sequence[Scalar],
    qdd: Sequence[Scalar],
    with_gravity: bool = True,
) -> list[Motion]:
    """Carry velocities and accelerations from the base to every link."""
    motions: list[Motion] = []
    for i, crossing in enumerate(crossings):
        parent = skeleton.segments[i].parent
        if parent == BASE:
            start = vector(-skeleton.segments[i].gravity) if with_gravity else ZERO
            carrier = body_motion(ZERO, ZERO, ZERO, start)
        else:
            carrier = motions[parent]
        motions.append(_next(crossing, carrier, qd[i], qdr[i], qdd[i]))
    return motions


def link_wrench(motion: Motion, body: Sequence[Scalar]) -> tuple[Vector, Vector]:
    """Force and moment about the origin that make a link move so.

    Args:
        motion: Its motion.
        body: [m, hx, hy, hz, Σxx, Σxy, Σxz, Σyy, Σyz, Σzz].
    """
    m, h, sigma = body[0], body[1:4], body[4:]
    a = motion.acceleration
    force = tuple(
        total(*[mul(u, x) for u, x in zip(row, h, strict=True)], mul(m, a_k))
        for row, a_k in zip(motion.rates, a, strict=True)
    )
    xx, xy, xz, yy, yz, zz = sigma
    (_, u12, u13), (u21, _, u23), (u31, u32, _) = motion.rates
    sx, sy, sz = motion.squares
    moment = (
        total(mul(yy, u32), mul(xy, u31), _neg(mul(xz, u21)), mul(yz, sub(sz, sy)),
              _neg(mul(zz, u23)), mul(h[1], a[2]), _neg(mul(h[2], a[1]))),
        total(_neg(mul(xx, u31)), mul(yz, u12), _neg(mul(xy, u32)),
              mul(xz, sub(sx, sz)), mul(zz, u13), mul(h[2], a[0]),
              _neg(mul(h[0], a[2]))),
        total(mul(xx, u21), _neg(mul(yy, u12)), mul(xz, u23), _neg(mul(yz, u13)),
              mul(xy, sub(sy, sx)), mul(h[0], a[1]), _neg(mul(h[1], a[0]))),
    )  # fmt: skip
    return force, moment


def carry_wrench(
    crossing: Crossing, force: Vector, moment: Vector
) -> tuple[Vector, Vector]:
    """Express a wrench at the child's origin as one at the parent's."""
    force = crossing.to_parent(force)
    moment = crossing.to_parent(moment)
    (px, py, pz), (fx, fy, fz) = crossing.position, force
    lever = (
        sub(mul(py, fz), mul(pz, fy)),
        sub(mul(pz, fx), mul(px, fz)),
        sub(mul(px, fy), mul(py, fx)),
    )
    return force, vadd(moment, lever)


def _next(
    crossing: Crossing, carrier: Motion, qd: Scalar, qdr: Scalar, qdd: Scalar
) -> Motion:
    """Move from a link to the one it carries."""
    same = carrier.omega is carrier.omega_r and qd is qdr
    omega = crossing.to_child(carrier.omega)
    omega_r = omega if same else crossing.to_child(carrier.omega_r)
    alpha = crossing.to_child(carrier.alpha)
    reach = tuple(
        total(*[mul(u, p) for u, p in zip(row, crossing.position, strict=True)])
        for row in carrier.rates
    )
    origin = crossing.to_child(vadd(carrier.acceleration, reach))
    if crossing.segment.is_revolute:
        alpha = vadd(alpha, (*swept(omega, omega_r, qd, qdr), qdd))
        spun = (omega[0], omega[1], add(omega[2], qd))
        spun_r = spun if same else (omega_r[0], omega_r[1], add(omega_r[2], qdr))
        return body_motion(spun, spun_r, alpha, origin)
    sx, sy = swept(omega, omega_r, qd, qdr)
    twice = (add(sx, sx), add(sy, sy), qdd)
    return body_motion(omega, omega_r, alpha, vadd(origin, twice))


def swept(
    omega: Vector, omega_r: Vector, qd: Scalar, qdr: Scalar
) -> tuple[Scalar, Scalar]:
    """First two entries of ω × (q̇ z), symmetric in the two velocities."""
    if omega is omega_r and qd is qdr:
        return mul(omega[1], qd), _neg(mul(omega[0], qd))
    x = mul(0.5, add(mul(omega[1], qdr), mul(omega_r[1], qd)))
    y = mul(0.5, add(mul(omega[0], qdr), mul(omega_r[0], qd)))
    return x, _neg(y)


def body_motion(
    omega: Vector, omega_r: Vector, alpha: Vector, origin: Vector
) -> Motion:
    """Form U from angular velocity and acceleration."""
    x, y, z = (_product(omega, omega_r, k, k) for k in range(3))
    xy = _product(omega, omega_r, 0, 1)
    xz = _product(omega, omega_r, 0, 2)
    yz = _product(omega, omega_r, 1, 2)
    ax, ay, az = alpha
    rates = (
        (_neg(add(y, z)), sub(xy, az), add(xz, ay)),
        (add(xy, az), _neg(add(x, z)), sub(yz, ax)),
        (sub(xz, ay), add(yz, ax), _neg(add(x, y))),
    )
    return Motion(omega, omega_r, alpha, rates, (x, y, z), origin)


def _product(u: Vector, v: Vector, i: int, j: int) -> Scalar:
    """Symmetric product of entry i and entry j of the two velocities."""
    if u is v:
        return mul(u[i], u[j])
    if i == j:
        return mul(u[i], v[i])
    return mul(0.5, add(mul(u[i], v[j]), mul(u[j], v[i])))


def _neg(a: Scalar) -> Scalar:
    return sub(0.0, a)


__all__ = [
    "Motion",
    "accelerations",
    "body_motion",
    "carry_wrench",
    "link_wrench",
    "swept",
]
