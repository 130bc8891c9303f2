"""Mass matrix and gravity by compound links: all that a joint carries, as one body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.arms import BASE
from armwise.dynamics.joints import Crossing, cross_joints
from armwise.dynamics.newton_euler import carry_wrench
from armwise.dynamics.skeleton import Skeleton
from armwise.dynamics.vectors import (
    Scalar,
    Vector,
    add,
    mul,
    sub,
    turn,
    vadd,
    vector,
)

Body = list[Scalar]
"""[m, hx, hy, hz, Σxx, Σxy, Σxz, Σyy, Σyz, Σzz]"""


def compound_bodies(
    skeleton: Skeleton,
    crossings: Sequence[Crossing],
    bodies: Sequence[Sequence[Scalar]],
) -> list[Body]:
    """Weld to every link what it carries."""
    compounds = [list(body) for body in bodies]
    for i in reversed(range(skeleton.size)):
        parent = skeleton.segments[i].parent
        if parent != BASE:
            carried = carry_body(crossings[i], compounds[i])
            compounds[parent] = [
                add(a, b) for a, b in zip(compounds[parent], carried, strict=True)
            ]
    return compounds


def mass_matrix(
    skeleton: Skeleton, q: Sequence[Scalar], bodies: Sequence[Sequence[Scalar]]
) -> list[list[Scalar]]:
    """M of the joints: how the compound of joint j pushes on the joints below it."""
    crossings = cross_joints(skeleton, q)
    compounds = compound_bodies(skeleton, crossings, bodies)
    size = skeleton.size
    matrix: list[list[Scalar]] = [[0.0] * size for _ in range(size)]
    for j in range(size):
        force, moment = unit_wrench(skeleton.segments[j].is_revolute, compounds[j])
        i = j
        while i != BASE:
            along = moment if skeleton.segments[i].is_revolute else force
            matrix[i][j] = matrix[j][i] = along[2]
            if skeleton.segments[i].parent != BASE:
                force, moment = carry_wrench(crossings[i], force, moment)
            i = skeleton.segments[i].parent
    return matrix


def unit_wrench(is_revolute: bool, body: Body) -> tuple[Vector, Vector]:
    """Force and moment that accelerate a body at rest by one about (along) its z."""
    m, hx, hy, _, xx, _, xz, yy, yz, _ = body
    if is_revolute:
        return (sub(0.0, hy), hx, 0.0), (sub(0.0, xz), sub(0.0, yz), add(xx, yy))
    return (0.0, 0.0, m), (hy, sub(0.0, hx), 0.0)


def gravity_torque(
    skeleton: Skeleton, q: Sequence[Scalar], bodies: Sequence[Sequence[Scalar]]
) -> list[Scalar]:
    """Torque that holds the arm against gravity."""
    crossings = cross_joints(skeleton, q)
    compounds = compound_bodies(skeleton, crossings, bodies)
    lifts: list[Vector] = []
    torques: list[Scalar] = []
    for i, segment in enumerate(skeleton.segments):
        up = (
            vector(-segment.gravity)
            if segment.parent == BASE
            else lifts[segment.parent]
        )
        lifts.append(crossings[i].to_child(up))
        m, hx, hy = compounds[i][:3]
        x, y, z = lifts[i]
        held = sub(mul(hx, y), mul(hy, x)) if segment.is_revolute else mul(m, z)
        torques.append(held)
    return torques


def carry_body(crossing: Crossing, body: Body) -> Body:
    """Express a body given in the child frame in the parent frame."""
    h = crossing.to_parent((body[1], body[2], body[3]))
    spun = _spin(crossing.cosine, crossing.sine, body[4:])
    sigma = _turn_moments(crossing.segment.turn, spun)
    return _shift(crossing.position, [body[0], *h, *sigma])


def _spin(c: Scalar, s: Scalar, sigma: Sequence[Scalar]) -> list[Scalar]:
    """Rz Σ Rzᵀ, with the squares of c and s eliminated by c² + s² = 1."""
    xx, xy, xz, yy, yz, zz = sigma
    t = sub(mul(c, sub(xx, yy)), mul(s, add(xy, xy)))
    ct = mul(c, t)
    return [
        add(yy, ct),
        add(xy, mul(s, t)),
        sub(mul(c, xz), mul(s, yz)),
        sub(xx, ct),
        add(mul(s, xz), mul(c, yz)),
        zz,
    ]


def _turn_moments(matrix: np.ndarray, sigma: Sequence[Scalar]) -> list[Scalar]:
    """A Σ Aᵀ for a constant rotation A."""
    if matrix[0, 0] == 1.0:  # a turn about x is a spin with the axes renamed
        xx, xy, xz, yy, yz, zz = sigma
        c, s = float(matrix[1, 1]), float(matrix[2, 1])
        yy, yz, xy, zz, xz, xx = _spin(c, s, [yy, yz, xy, zz, xz, xx])
        return [xx, xy, xz, yy, yz, zz]
    xx, xy, xz, yy, yz, zz = sigma
    columns = [turn(matrix, v) for v in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))]
    rows = [turn(matrix, tuple(c[k] for c in columns)) for k in range(3)]
    return [rows[0][0], rows[0][1], rows[0][2], rows[1][1], rows[1][2], rows[2][2]]


def _shift(p: Vector, body: Body) -> Body:
    """Move the origin: the child's origin lies at p in the parent frame."""
    m, h = body[0], (body[1], body[2], body[3])
    g = vadd(h, (mul(0.5 * m, p[0]), mul(0.5 * m, p[1]), mul(0.5 * m, p[2])))
    moved = vadd(h, (mul(m, p[0]), mul(m, p[1]), mul(m, p[2])))
    sigma = list(body[4:])
    for k, (i, j) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
        if i == j:
            twice = mul(p[i], g[i])
            sigma[k] = add(sigma[k], add(twice, twice))
        else:
            sigma[k] = add(sigma[k], add(mul(p[i], g[j]), mul(p[j], g[i])))
    return [m, *moved, *sigma]
