"""Three-vectors and rotations over scalars of any kind: symbols, numbers or arrays.

Structural zeros are the float 0.0; they cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Scalar = Any
"""A symbol, a float, or an array of samples."""

Vector = tuple[Scalar, Scalar, Scalar]

ZERO: Vector = (0.0, 0.0, 0.0)

# Judgement: a tenth of a nanometre, and more than the 5e-12 of angles that are written
# with eleven decimals.
NOISE = 1e-10
"""Below this, a length [m] or a direction cosine is rounding, not geometry."""


def add(a: Scalar, b: Scalar) -> Scalar:
    """Return a + b."""
    if type(a) is float and a == 0.0:
        return b
    if type(b) is float and b == 0.0:
        return a
    return a + b


def sub(a: Scalar, b: Scalar) -> Scalar:
    """Return a − b."""
    if type(b) is float and b == 0.0:
        return a
    if type(a) is float and a == 0.0:
        return -b
    return a - b


def mul(a: Scalar, b: Scalar) -> Scalar:
    """Return a · b."""
    if type(a) is float:
        if a == 0.0:
            return 0.0
        if a == 1.0:
            return b
    if type(b) is float:
        if b == 0.0:
            return 0.0
        if b == 1.0:
            return a
    return a * b


def total(*terms: Scalar) -> Scalar:
    """Return the sum of the terms."""
    result: Scalar = 0.0
    for term in terms:
        result = add(result, term)
    return result


def weigh(weights: np.ndarray, x: Sequence[Scalar]) -> Scalar:
    """Return Σ wᵢ xᵢ with constant weights."""
    return total(*[mul(float(w), v) for w, v in zip(weights, x, strict=True)])


def vadd(u: Vector, v: Vector) -> Vector:
    """Return u + v."""
    return add(u[0], v[0]), add(u[1], v[1]), add(u[2], v[2])


def vsub(u: Vector, v: Vector) -> Vector:
    """Return u − v."""
    return sub(u[0], v[0]), sub(u[1], v[1]), sub(u[2], v[2])


def scale(a: Scalar, v: Vector) -> Vector:
    """Return a · v."""
    return mul(a, v[0]), mul(a, v[1]), mul(a, v[2])


def dot(u: Vector, v: Vector) -> Scalar:
    """Return u · v."""
    return total(mul(u[0], v[0]), mul(u[1], v[1]), mul(u[2], v[2]))


def cross(u: Vector, v: Vector) -> Vector:
    """Return u × v."""
    return (
        sub(mul(u[1], v[2]), mul(u[2], v[1])),
        sub(mul(u[2], v[0]), mul(u[0], v[2])),
        sub(mul(u[0], v[1]), mul(u[1], v[0])),
    )


def vector(values: np.ndarray) -> Vector:
    """Turn three numbers into a vector of floats."""
    return float(values[0]), float(values[1]), float(values[2])


def turn(matrix: np.ndarray, v: Vector) -> Vector:
    """Return a constant rotation times v."""
    rows = [[mul(float(r), x) for r, x in zip(row, v, strict=True)] for row in matrix]
    return total(*rows[0]), total(*rows[1]), total(*rows[2])


def turn_z(cosine: Scalar, sine: Scalar, v: Vector) -> Vector:
    """Return Rz(θ) v."""
    x, y, z = v
    return (
        sub(mul(cosine, x), mul(sine, y)),
        add(mul(sine, x), mul(cosine, y)),
        z,
    )


def turn_back_z(cosine: Scalar, sine: Scalar, v: Vector) -> Vector:
    """Return Rz(θ)ᵀ v."""
    x, y, z = v
    return (
        add(mul(cosine, x), mul(sine, y)),
        sub(mul(cosine, y), mul(sine, x)),
        z,
    )


def clean(x: np.ndarray) -> np.ndarray:
    """Round entries that rounding noise keeps from 0 or ±1.

    Rotations read from a URDF carry noise of 2e-16, which would cost traced programs
    a seventh more operations.
    """
    nearest = np.round(x)
    exact = (np.abs(nearest) <= 1) & (np.abs(x - nearest) < NOISE)
    return np.where(exact, nearest + 0.0, x)
