"""Poses, Jacobians and energies over scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE
from armwise.dynamics.newton_euler import cross_joints, momentum_regressor
from armwise.dynamics.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    clean,
    cross,
    dot,
    mul,
    scale,
    total,
    turn,
    vadd,
    vector,
    vsub,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.dynamics.skeleton import Skeleton

Pose = tuple[tuple[Vector, Vector, Vector], Vector]
"""Columns of the rotation, and the position, in base axes."""


def link_poses(skeleton: Skeleton, q: Sequence[Scalar]) -> list[Pose]:
    """T_base_internal of every link."""
    poses: list[Pose] = []
    for i, crossing in enumerate(cross_joints(skeleton, q)):
        segment = skeleton.segments[i]
        if segment.parent == BASE:
            columns, origin = constant_pose(np.linalg.inv(segment.from_base))
        else:
            columns, origin = poses[segment.parent]
        units: tuple[Vector, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
        turned = tuple(_combine(columns, crossing.to_parent(e)) for e in units)
        position = vadd(origin, _combine(columns, crossing.position))
        poses.append((turned, position))  # type: ignore[arg-type]
    return poses


def place_pose(pose: Pose, T: np.ndarray) -> Pose:
    """Compose a pose with a constant one on its right."""
    columns, origin = pose
    turned = tuple(_combine(columns, vector(T[:3, k])) for k in range(3))
    return turned, vadd(origin, _combine(columns, vector(T[:3, 3])))  # type: ignore[return-value]


def constant_pose(T: np.ndarray) -> Pose:
    """Turn a 4×4 matrix into a pose of floats."""
    # Exact zeros and ones let the tracer drop products.
    T = clean(T)
    return (vector(T[:3, 0]), vector(T[:3, 1]), vector(T[:3, 2])), vector(T[:3, 3])


def pose_matrix(pose: Pose) -> list[list[Scalar]]:
    """Write a pose as a 4×4 matrix."""
    columns, origin = pose
    rows = [[*(c[k] for c in columns), origin[k]] for k in range(3)]
    return [*rows, [0.0, 0.0, 0.0, 1.0]]


def jacobian(
    skeleton: Skeleton, q: Sequence[Scalar], link: int, T: np.ndarray
) -> list[list[Scalar]]:
    """6×n Jacobian of a frame on a link: velocity of its origin, then angular."""
    size = skeleton.size
    columns: list[tuple[Vector, Vector]] = [(ZERO, ZERO)] * size
    if link != BASE:
        poses = link_poses(skeleton, q)
        tip = place_pose(poses[link], T)[1]
        for i in skeleton.ancestors(link):
            axes, origin = poses[i]
            z = axes[2]
            revolute = skeleton.segments[i].is_revolute
            columns[i] = (cross(z, vsub(tip, origin)), z) if revolute else (z, ZERO)
    return [
        *[[column[0][k] for column in columns] for k in range(3)],
        *[[column[1][k] for column in columns] for k in range(3)],
    ]


def kinetic_energy(
    skeleton: Skeleton,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    bodies: Sequence[Sequence[Scalar]],
) -> Scalar:
    """½ q̇ᵀ M q̇ in [J], from the momentum."""
    # p = M q̇ without M: T = ½ pᵀ q̇ needs one pass over the links.
    rows = momentum_regressor(skeleton, q, qd)
    momenta = [
        total(*[mul(y, p) for link, b in zip(row, bodies, strict=True)
                for y, p in zip(link, b, strict=True)])
        for row in rows
    ]  # fmt: skip
    return mul(0.5, total(*[mul(p, v) for p, v in zip(momenta, qd, strict=True)]))


def potential_energy(
    skeleton: Skeleton, q: Sequence[Scalar], bodies: Sequence[Sequence[Scalar]]
) -> Scalar:
    """Height of the masses against gravity in [J], zero at the base's origin."""
    terms: list[Scalar] = []
    for i, (pose, body) in enumerate(zip(link_poses(skeleton, q), bodies, strict=True)):
        # Only segments on the base know gravity, in their own axes.
        root = skeleton.segments[skeleton.ancestors(i)[-1]]
        up = turn(np.linalg.inv(root.from_base)[:3, :3], vector(-root.gravity))
        moment = _combine(pose[0], (body[1], body[2], body[3]))
        height = tuple(mul(body[0], x) for x in pose[1])
        terms += [mul(u, x) for u, x in zip(up, vadd(moment, height), strict=True)]
    return total(*terms)


def moment_rates(
    skeleton: Skeleton,
    q: Sequence[Scalar],
    moments: Sequence[Sequence[Scalar]],
    axes: Float[np.ndarray, "axes 3"],
) -> list[list[Scalar]]:
    """Return how fast Σ m r moves along axes of the base, per joint's unit speed.

    Args:
        skeleton: Internal frames.
        q: Joint positions.
        moments: Of every link m and m r, r in its internal frame.
        axes: Unit vectors.
    """
    poses = link_poses(skeleton, q)
    masses: list[Scalar] = [moment[0] for moment in moments]
    sums = [
        vadd(_combine(pose[0], (m[1], m[2], m[3])), scale(m[0], pose[1]))
        for pose, m in zip(poses, moments, strict=True)
    ]
    rates: list[list[Scalar]] = [[0.0] * skeleton.size for _ in axes]
    for i in reversed(range(skeleton.size)):
        z, origin = poses[i][0][2], poses[i][1]
        moved = (
            cross(z, vsub(sums[i], scale(masses[i], origin)))
            if skeleton.segments[i].is_revolute
            else scale(masses[i], z)
        )
        for k, axis in enumerate(axes):
            rates[k][i] = dot(vector(axis), moved)
        parent = skeleton.segments[i].parent
        if parent != BASE:
            sums[parent] = vadd(sums[parent], sums[i])
            masses[parent] = add(masses[parent], masses[i])
    return rates


def _combine(columns: Sequence[Vector], v: Vector) -> Vector:
    """Rotation, given by its columns, times v."""
    rows = [[mul(c[k], x) for c, x in zip(columns, v, strict=True)] for k in range(3)]
    return total(*rows[0]), total(*rows[1]), total(*rows[2])
