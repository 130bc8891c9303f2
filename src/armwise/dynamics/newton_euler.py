"""Newton–Euler: accelerations outwards, forces inwards, and their regressors.

A link's acceleration is the pair (U, a): U = [ω̇×] + [ω×][ω×] and the acceleration a
of its origin, gravity included. With the mass matrix P = [[Σ, h], [hᵀ, m]] of a link,
force and moment about its origin are the last column and the axial part of [U a] P.

The quadratic terms in q̇ are written as symmetric products of two velocities, q̇ and
q̇r. With q̇r = q̇ this is the equation of motion; with another q̇r it is
M q̈ + C(q, q̇) q̇r + g with the Christoffel C, for which Ṁ − 2C is skew: that is the
equation Slotine and Li's controllers need, from the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, INERTIAL_NAMES
from armwise.dynamics.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    cross,
    dot,
    mul,
    sub,
    total,
    turn,
    turn_back_z,
    turn_z,
    vadd,
    vector,
    weigh,
)
from armwise.programs import Scalar as Symbol
from armwise.programs import cos, sign, sin

if TYPE_CHECKING:
    from armwise.dynamics.skeleton import JointSegment, Skeleton

# Joints over scalars: how vectors and bodies cross from link to link.


@dataclass(frozen=True)
class Crossing:
    """A joint at some position: T_parent_child = [A Rz(θ), p].

    Attributes:
        segment: The joint's constants.
        cosine, sine: Of θ.
        position: p, child origin in the parent frame.
    """

    segment: JointSegment
    cosine: Scalar
    sine: Scalar
    position: Vector

    def to_parent(self, v: Vector) -> Vector:
        """Turn a vector from child axes to parent axes."""
        return turn(self.segment.turn, self.about_z(v))

    def to_child(self, v: Vector) -> Vector:
        """Turn a vector from parent axes to child axes."""
        return turn_back_z(self.cosine, self.sine, turn(self.segment.turn.T, v))

    def about_z(self, v: Vector) -> Vector:
        """Turn a vector by Rz(θ) only."""
        return turn_z(self.cosine, self.sine, v)


def cross_joints(skeleton: Skeleton, q: Sequence[Scalar]) -> list[Crossing]:
    """Set every joint to its position."""
    return [_crossing(s, x) for s, x in zip(skeleton.segments, q, strict=True)]


def _crossing(segment: JointSegment, q: Scalar) -> Crossing:
    position = vector(segment.position)
    if not segment.is_revolute:
        slide = tuple(mul(float(a), q) for a in segment.slide)
        return Crossing(segment, 1.0, 0.0, vadd(position, slide))
    angle = add(q, segment.angle)
    # Traced scalars have their own cos and sin; arrays use NumPy's.
    if isinstance(angle, Symbol):
        return Crossing(segment, cos(angle), sin(angle), position)
    return Crossing(segment, np.cos(angle), np.sin(angle), position)


# Accelerations outwards, forces inwards.

Matrix = tuple[Vector, Vector, Vector]


@dataclass(frozen=True)
class LinkMotion:
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
    base: LinkMotion | None = None,
) -> list[LinkMotion]:
    """Carry velocities and accelerations from the base to every link.

    A base that moves has its own motion, gravity included (`Skeleton.rooted_at`).
    """
    motions: list[LinkMotion] = []
    for i, crossing in enumerate(crossings):
        parent = skeleton.segments[i].parent
        if parent == BASE and base is not None:
            carrier = base
        elif parent == BASE:
            # Gravity as an upward acceleration of the base: every link's weight follows
            # without a term of its own.
            start = vector(-skeleton.segments[i].gravity) if with_gravity else ZERO
            carrier = body_motion(ZERO, ZERO, ZERO, start)
        else:
            carrier = motions[parent]
        motions.append(_next(crossing, carrier, qd[i], qdr[i], qdd[i]))
    return motions


def link_wrench(motion: LinkMotion, body: Sequence[Scalar]) -> tuple[Vector, Vector]:
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
    crossing: Crossing, carrier: LinkMotion, qd: Scalar, qdr: Scalar, qdd: Scalar
) -> LinkMotion:
    """Move from a link to the one it carries."""
    # Identity of objects: symbols have no cheap equality, and q̇r is q̇ itself.
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
    # Coriolis acceleration 2 ω × q̇ z of a slide; a revolute joint has it once, in the
    # angular acceleration.
    twice = (add(sx, sx), add(sy, sy), qdd)
    return body_motion(omega, omega_r, alpha, vadd(origin, twice))


def swept(
    omega: Vector, omega_r: Vector, qd: Scalar, qdr: Scalar
) -> tuple[Scalar, Scalar]:
    """First two entries of ω × (q̇ z), symmetric in the two velocities."""
    if omega is omega_r and qd is qdr:
        return mul(omega[1], qd), _neg(mul(omega[0], qd))
    # Symmetrised in q̇ and q̇r: C is then the one of Christoffel's symbols, with which
    # Ṁ − 2C is skew. Slotine and Li's proof needs that.
    x = mul(0.5, add(mul(omega[1], qdr), mul(omega_r[1], qd)))
    y = mul(0.5, add(mul(omega[0], qdr), mul(omega_r[0], qd)))
    return x, _neg(y)


def body_motion(
    omega: Vector, omega_r: Vector, alpha: Vector, origin: Vector
) -> LinkMotion:
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
    return LinkMotion(omega, omega_r, alpha, rates, (x, y, z), origin)


def _product(u: Vector, v: Vector, i: int, j: int) -> Scalar:
    """Symmetric product of entry i and entry j of the two velocities."""
    if u is v:
        return mul(u[i], u[j])
    if i == j:
        return mul(u[i], v[i])
    return mul(0.5, add(mul(u[i], v[j]), mul(u[j], v[i])))


def _neg(a: Scalar) -> Scalar:
    return sub(0.0, a)


# Regressors: the torque as a matrix times the inertial parameters of the links.
#
# A link's wrench is linear in its ten numbers; a joint feels its projection on the
# joint's screw, carried to that link. Row i of link j is therefore ten short products,
# and the same ten serve accelerations (torque) and velocities (momentum).

Screw = tuple[Vector, Vector]
"""Angular part, and velocity of the origin, of a unit joint velocity."""

Rows = list[list[list[Scalar]]]
"""[joint][link][ten internal columns]"""


def torque_regressor(
    skeleton: Skeleton,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    qdr: Sequence[Scalar] | None = None,
) -> Rows:
    """Columns of M q̈ + C(q, q̇) q̇r + g; with q̇r = q̇ unless given."""
    crossings = cross_joints(skeleton, q)
    motions = accelerations(skeleton, crossings, qd, qd if qdr is None else qdr, qdd)
    return _project(skeleton, crossings, motions, _joint_screws(skeleton))


def momentum_regressor(
    skeleton: Skeleton, q: Sequence[Scalar], qd: Sequence[Scalar]
) -> Rows:
    """Columns of the generalised momentum M q̇."""
    crossings = cross_joints(skeleton, q)
    twists = link_twists(skeleton, crossings, qd)
    motions = [twist_motion(twist) for twist in twists]
    return _project(skeleton, crossings, motions, _joint_screws(skeleton))


def kinetic_gradient_regressor(
    skeleton: Skeleton, q: Sequence[Scalar], qd: Sequence[Scalar]
) -> Rows:
    """Columns of ∂T/∂q, the part of d(M q̇)/dt that is not torque or gravity.

    Moving joint i moves what follows it through the velocity it is carried with, so
    ∂(velocity of link j)/∂q_i is the parent's twist crossed with the joint's screw.
    """
    crossings = cross_joints(skeleton, q)
    twists = link_twists(skeleton, crossings, qd)
    motions = [twist_motion(twist) for twist in twists]
    return _project(skeleton, crossings, motions, _swept_screws(skeleton, twists, qd))


@dataclass(frozen=True)
class Twist:
    """Angular velocity, and velocity of the origin, of a link in its own axes."""

    omega: Vector
    velocity: Vector


def _project(
    skeleton: Skeleton,
    crossings: Sequence[Crossing],
    motions: Sequence[LinkMotion],
    screw_of: Callable[[int], Screw],
) -> Rows:
    """Carry each joint's screw out to every link it moves and take the products."""
    size = skeleton.size
    rows: Rows = [
        [[0.0] * len(INERTIAL_NAMES) for _ in range(size)] for _ in range(size)
    ]
    carried: list[dict[int, Screw]] = []
    for j, crossing in enumerate(crossings):
        parent = skeleton.segments[j].parent
        below = {} if parent == BASE else carried[parent]
        # Each joint's screw is carried once per link, not once per pair from the base.
        screws = {i: carry_screw(crossing, screw) for i, screw in below.items()}
        screws[j] = screw_of(j)
        carried.append(screws)
        for i, screw in screws.items():
            rows[i][j] = _products(motions[j], screw)
    return rows


def _products(motion: LinkMotion, screw: Screw) -> list[Scalar]:
    """Power of a link's ten unit wrenches through a screw."""
    z, v = screw
    a = motion.acceleration
    (u11, u12, u13), (u21, u22, u23), (u31, u32, u33) = motion.rates
    sx, sy, sz = motion.squares
    # z · (h × a) = h · (a × z): the first moment's coefficients in one product.
    lever = cross(a, z)
    columns = ((u11, u21, u31), (u12, u22, u32), (u13, u23, u33))
    moments = [add(dot(u, v), lever[k]) for k, u in enumerate(columns)]
    return [
        dot(a, v),
        *moments,
        sub(mul(u21, z[2]), mul(u31, z[1])),
        total(mul(u31, z[0]), -1.0 * mul(u32, z[1]), mul(sub(sy, sx), z[2])),
        total(mul(u23, z[2]), -1.0 * mul(u21, z[0]), mul(sub(sx, sz), z[1])),
        sub(mul(u32, z[0]), mul(u12, z[2])),
        total(mul(u12, z[1]), -1.0 * mul(u13, z[2]), mul(sub(sz, sy), z[0])),
        sub(mul(u13, z[1]), mul(u23, z[0])),
    ]


def carry_screw(crossing: Crossing, screw: Screw) -> Screw:
    """Express a screw given at the parent's origin at the child's."""
    z, v = screw
    return crossing.to_child(z), crossing.to_child(vadd(v, cross(z, crossing.position)))


def _joint_screws(skeleton: Skeleton) -> Callable[[int], Screw]:
    axis: Vector = (0.0, 0.0, 1.0)

    def screw(i: int) -> Screw:
        return (axis, ZERO) if skeleton.segments[i].is_revolute else (ZERO, axis)

    return screw


def _swept_screws(
    skeleton: Skeleton, twists: Sequence[Twist], qd: Sequence[Scalar]
) -> Callable[[int], Screw]:
    """Parent's twist × joint's screw; the joint's own velocity adds nothing to it."""

    def screw(i: int) -> Screw:
        (wx, wy, _), (vx, vy, _) = twists[i].omega, twists[i].velocity
        turned = (wy, sub(0.0, wx), 0.0)
        if not skeleton.segments[i].is_revolute:
            return ZERO, turned
        return turned, (vy, sub(0.0, vx), 0.0)

    return screw


def link_twists(
    skeleton: Skeleton, crossings: Sequence[Crossing], qd: Sequence[Scalar]
) -> list[Twist]:
    """Angular velocity and velocity of the origin of every link, in its own axes."""
    twists: list[Twist] = []
    for i, crossing in enumerate(crossings):
        parent = skeleton.segments[i].parent
        below = (ZERO, ZERO) if parent == BASE else (
            twists[parent].omega, twists[parent].velocity)  # fmt: skip
        w, v = carry_screw(crossing, below)
        if crossing.segment.is_revolute:
            w = (w[0], w[1], add(w[2], qd[i]))
        else:
            v = (v[0], v[1], add(v[2], qd[i]))
        twists.append(Twist(w, v))
    return twists


def twist_motion(twist: Twist) -> LinkMotion:
    """Let velocities stand where accelerations do: U = [ω×], a = v."""
    x, y, z = twist.omega
    rates = (
        (0.0, sub(0.0, z), y),
        (z, 0.0, sub(0.0, x)),
        (sub(0.0, y), x, 0.0),
    )
    return LinkMotion(twist.omega, twist.omega, ZERO, rates, ZERO, twist.velocity)


def drive_columns(
    rows: np.ndarray,
    qd: Sequence[Scalar],
    qdr: Sequence[Scalar],
    qdd: Sequence[Scalar],
) -> list[list[Scalar]]:
    """Torques of unit rotor inertia, viscous, Coulomb friction and offset.

    Args:
        rows: What each motor sees of the coordinates.
        qd: Velocity, whose sign Coulomb friction opposes.
        qdr: Velocity that viscous friction acts on.
        qdd: Acceleration.
    """
    columns = []
    for row in rows:
        speed = weigh(row, qd)
        # sign(0) = 0: Coulomb friction of a joint at rest is left out.
        turning = np.sign(speed) if isinstance(speed, np.ndarray) else sign(speed)
        for unit in (weigh(row, qdd), weigh(row, qdr), turning, 1.0):
            columns.append([mul(float(w), unit) for w in row])
    return columns
