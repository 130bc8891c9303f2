"""Regressors: the torque as a matrix times the inertial parameters of the links.

A link's wrench is linear in its ten numbers; a joint feels its projection on the
joint's screw, carried to that link. Row i of link j is therefore ten short products,
and the same ten serve accelerations (torque) and velocities (momentum).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from armwise.arms import BASE
from armwise.dynamics.newton_euler import Crossing, Motion, accelerations, cross_joints
from armwise.dynamics.skeleton import Skeleton
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
    vadd,
)

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
    motions: Sequence[Motion],
    screw_of: Callable[[int], Screw],
) -> Rows:
    """Carry each joint's screw out to every link it moves and take the products."""
    size = skeleton.size
    rows: Rows = [[[0.0] * 10 for _ in range(size)] for _ in range(size)]
    carried: list[dict[int, Screw]] = []
    for j, crossing in enumerate(crossings):
        parent = skeleton.segments[j].parent
        below = {} if parent == BASE else carried[parent]
        screws = {i: carry_screw(crossing, screw) for i, screw in below.items()}
        screws[j] = screw_of(j)
        carried.append(screws)
        for i, screw in screws.items():
            rows[i][j] = _products(motions[j], screw)
    return rows


def _products(motion: Motion, screw: Screw) -> list[Scalar]:
    """Power of a link's ten unit wrenches through a screw."""
    z, v = screw
    a = motion.acceleration
    (u11, u12, u13), (u21, u22, u23), (u31, u32, u33) = motion.rates
    sx, sy, sz = motion.squares
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


def twist_motion(twist: Twist) -> Motion:
    """Let velocities stand where accelerations do: U = [ω×], a = v."""
    x, y, z = twist.omega
    rates = (
        (0.0, sub(0.0, z), y),
        (z, 0.0, sub(0.0, x)),
        (sub(0.0, y), x, 0.0),
    )
    return Motion(twist.omega, twist.omega, ZERO, rates, ZERO, twist.velocity)
