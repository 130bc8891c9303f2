"""Curves in the world that a point can be made to follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from armwise.errors import ArgumentError
from armwise.programs.scalars import Number, cos, sin
from armwise.worlds.bodies import vector_of


class Curve(Protocol):
    """A smooth curve c(s): its place and its first two derivatives by s."""

    def at(self, s: Number) -> tuple[list[Number], list[Number], list[Number]]:
        """Return c(s), c′(s) and c″(s), symbolic or numeric."""
        ...

    def samples(self) -> np.ndarray:
        """Return values of s among which the search for the nearest point starts."""
        ...


@dataclass(frozen=True)
class CircleCurve:
    """A circle: c(s) = centre + radius (u cos s + w sin s), s in [rad]."""

    center: tuple[float, float, float]
    normal: tuple[float, float, float]
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", vector_of(self.center, "A circle's centre"))
        normal = np.asarray(vector_of(self.normal, "A circle's normal"))
        if not (np.linalg.norm(normal) > 0 and self.radius > 0):
            raise ArgumentError("A circle needs a normal and a radius that are not 0.")
        unit = normal / np.linalg.norm(normal)
        object.__setattr__(self, "normal", tuple(unit.tolist()))

    def at(self, s: Number) -> tuple[list[Number], list[Number], list[Number]]:
        """Return c(s), c′(s) and c″(s)."""
        u, w = normals_of(self.normal)
        c, d = cos(s) * self.radius, sin(s) * self.radius
        out = [c * a + d * b for a, b in zip(u, w, strict=True)]
        along = [c * b - d * a for a, b in zip(u, w, strict=True)]
        place = [o + x for o, x in zip(self.center, out, strict=True)]
        return place, along, [-x for x in out]

    def samples(self) -> np.ndarray:
        """Return angles all around in [rad]."""
        return np.linspace(-np.pi, np.pi, 721)


@dataclass(frozen=True)
class PolynomialCurve:
    """c(s) = Σ_k coefficients[k] s^k; rows are powers, columns x, y, z in [m].

    Attributes:
        coefficients: Lowest power first; two rows make a straight line.
        span: Smallest and largest s to begin from.
    """

    coefficients: tuple[tuple[float, float, float], ...]
    span: tuple[float, float] = (-1.0, 1.0)

    def __post_init__(self) -> None:
        rows = tuple(vector_of(row, "A curve's row") for row in self.coefficients)
        if len(rows) < 2:
            raise ArgumentError("A polynomial curve needs at least two rows.")
        object.__setattr__(self, "coefficients", rows)

    def at(self, s: Number) -> tuple[list[Number], list[Number], list[Number]]:
        """Return c(s), c′(s) and c″(s), by Horner's rule."""
        zero: list[Number] = [0.0, 0.0, 0.0]
        c, first, second = list(zero), list(zero), list(zero)
        for row in reversed(self.coefficients):
            second = [x * s + 2.0 * d for x, d in zip(second, first, strict=True)]
            first = [x * s + d for x, d in zip(first, c, strict=True)]
            c = [x * s + a for x, a in zip(c, row, strict=True)]
        return c, first, second

    def samples(self) -> np.ndarray:
        """Return values of s over the span."""
        return np.linspace(*self.span, 721)


def nearest(curve: Curve, point: Sequence[float]) -> float:
    """Return the s whose c(s) is nearest to a point [m], by search then Newton."""
    p = np.asarray(point, dtype=float)

    def distance(s: float) -> float:
        return float(np.linalg.norm(p - np.asarray(curve.at(s)[0], dtype=float)))

    s = float(min(curve.samples(), key=distance))
    for _ in range(50):
        c, d, e = (np.asarray(x, dtype=float) for x in curve.at(s))
        slope = d @ d - (p - c) @ e
        step = float((p - c) @ d / slope) if slope > 0 else 0.0
        s += step
        if abs(step) < 1e-15:
            break
    return s


def normals_of(
    axis: Sequence[float],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return two unit vectors that make a right-handed frame with a unit axis."""
    z = np.asarray(axis, dtype=float)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    y = np.cross(z, x)
    return tuple((x + 0.0).tolist()), tuple((y + 0.0).tolist())
