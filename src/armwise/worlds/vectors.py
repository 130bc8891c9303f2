"""Vectors of scalars that may be symbolic: arrays of objects, three by three.

Arrays go on the left of a product with a symbolic scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.programs.scalars import Number, sqrt

Array = Any
"""A NumPy array of objects: numbers or symbolic scalars."""


def symbols(values: Any) -> Array:
    """Return values as an array of objects, its numbers Python floats."""
    if isinstance(values, np.ndarray):
        return values.astype(object)
    return np.array(values, dtype=object)


def zeros(*shape: int) -> Array:
    """Return exact zeros, which vanish when traced."""
    return np.full(shape, 0.0, dtype=object)


def cross(a: Array, b: Array) -> Array:
    """Return a × b."""
    return symbols(
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    )


def dot(a: Array, b: Array) -> Number:
    """Return a·b without touching structural zeros."""
    total: Number = 0.0
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total = total + x * y
    return total


def norm(a: Array) -> Number:
    """Return ‖a‖."""
    return sqrt(dot(a, a))


def product(A: Array, b: Array) -> Array:
    """Return the matrix A times the vector b."""
    return symbols([dot(row, b) for row in A])


def rotation_of(quaternion: Array) -> Array:
    """Return the rotation of a quaternion (w, x, y, z) of any length but zero."""
    w, x, y, z = quaternion.tolist()
    s = 2.0 / (w * w + x * x + y * y + z * z)
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    wx, wy, wz = w * x, w * y, w * z
    return symbols(
        [
            [1.0 - s * (yy + zz), s * (xy - wz), s * (xz + wy)],
            [s * (xy + wz), 1.0 - s * (xx + zz), s * (yz - wx)],
            [s * (xz - wy), s * (yz + wx), 1.0 - s * (xx + yy)],
        ]
    )


def quaternion_rate(quaternion: Array, omega: Array) -> Array:
    """Return q̇ = ½ q ∗ (0, ω) for an angular velocity ω in body axes (Eq. 2.44)."""
    w, v = quaternion[0], quaternion[1:]
    turned = omega * w + cross(v, omega)
    return symbols([-dot(v, omega) * 0.5, *(turned * 0.5).tolist()])


def quaternion_from_rotation(R: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (w, x, y, z), w ≥ 0, of a numeric rotation."""
    K = np.array(
        [
            [R[0, 0] + R[1, 1] + R[2, 2], 0, 0, 0],
            [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], 0, 0],
            [R[0, 2] - R[2, 0], R[1, 0] + R[0, 1], R[1, 1] - R[0, 0] - R[2, 2], 0],
            [
                R[1, 0] - R[0, 1],
                R[2, 0] + R[0, 2],
                R[2, 1] + R[1, 2],
                R[2, 2] - R[0, 0] - R[1, 1],
            ],
        ]
    )
    quaternion = np.linalg.eigh(K / 3.0)[1][:, -1]
    return np.asarray(quaternion if quaternion[0] >= 0 else -quaternion)
