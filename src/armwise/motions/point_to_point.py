"""Point-to-point motions: minimum jerk, splines, straight lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.motions.motion import (
    MotionSample,
    at_rest_outside,
    inside,
    joint_vector,
    require_positive,
)

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Quintic:
    """The fifth-order polynomial that moves from rest to rest with least jerk.

    q = start + (10 s³ − 15 s⁴ + 6 s⁵)(end − start), s = t / duration.

    Attributes:
        start, end: Postures in [rad] or [m].
        duration: Time between them in [s].
    """

    start: Float[np.ndarray, " dof"]
    end: Float[np.ndarray, " dof"]
    duration: float

    def __post_init__(self) -> None:
        start = joint_vector(self.start, "start")
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", joint_vector(self.end, "end", start.size))
        duration = require_positive(self.duration, "duration")
        object.__setattr__(self, "duration", duration)

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.start.size

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        s = times[..., None] / self.duration
        way, remaining = self.end - self.start, 1.0 - s
        # Measured from the nearer end, so that both ends are met to the last digit.
        q = np.where(
            s < 0.5, self.start + _path(s) * way, self.end - _path(remaining) * way
        )
        speed = 30.0 * s**2 * remaining**2 / self.duration
        acceleration = 60.0 * s * remaining * (1.0 - 2.0 * s) / self.duration**2
        return at_rest_outside(q, speed * way, acceleration * way, moving)


def _path(s: np.ndarray) -> np.ndarray:
    path: np.ndarray = s**3 * (10.0 + s * (-15.0 + 6.0 * s))
    return path


# Piecewise polynomials: seventh order, and splines through points.


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Polynomials joined end to end, each in the time since its own beginning.

    Attributes:
        knots: Times in [s] where the pieces begin and the last one ends; the
            first is 0.
        coefficients: c[piece, power, joint], lowest power first.
    """

    knots: Float[np.ndarray, " knots"]
    coefficients: Float[np.ndarray, "pieces powers dof"]

    def __post_init__(self) -> None:
        knots = np.array(self.knots, dtype=float)
        coefficients = np.array(self.coefficients, dtype=float)
        _check(knots, coefficients)
        knots.setflags(write=False)
        coefficients.setflags(write=False)
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "coefficients", coefficients)

    @classmethod
    def seventh_order(
        cls, start: ArrayLike, end: ArrayLike, duration: float
    ) -> Polynomial:
        """From rest to rest with no acceleration and no jerk at either end."""
        return cls.through([0.0, duration], [start, end], order=7)

    @classmethod
    def through(
        cls,
        times: ArrayLike,
        points: ArrayLike | Sequence[ArrayLike],
        order: int = 5,
        start_derivatives: ArrayLike | None = None,
        end_derivatives: ArrayLike | None = None,
    ) -> Polynomial:
        """Pass through points at given times with the smoothest spline of odd order.

        Of order 2k − 1: least ∫ (d^k q / dt^k)² dt of all motions through the points
        (3: acceleration, 5: jerk, 7: snap), continuous up to derivative 2k − 2.

        Args:
            times: When, in [s]; the first is 0.
            points: Where, one row per time.
            order: 1, 3, 5 or 7.
            start_derivatives: Velocity, acceleration, … at the start: k − 1 rows of
                dof numbers; all zero when not given.
            end_derivatives: The same at the end.
        """
        from scipy.interpolate import make_interp_spline

        t, q = np.asarray(times, dtype=float), np.asarray(points, dtype=float)
        _check_points(t, q, order)
        count = (order - 1) // 2
        ends = tuple(
            [
                (i + 1, row)
                for i, row in enumerate(_boundary(derivatives, count, q.shape[1]))
            ]
            for derivatives in (start_derivatives, end_derivatives)
        )
        spline = make_interp_spline(t, q, k=order, bc_type=ends if count else None)
        coefficients = np.stack(
            [spline(t[:-1], nu=p) / factorial(p) for p in range(order + 1)], axis=1
        )
        return cls(t, coefficients)

    @classmethod
    def meeting(
        cls, times: ArrayLike, *derivatives: Float[np.ndarray, "points dof"]
    ) -> Polynomial:
        """Meet positions at given times, and velocities and accelerations if given.

        Positions alone give the smoothest cubic spline, at rest at its ends; with
        velocities every piece is its own cubic, with accelerations a quintic.

        Args:
            times: When, in [s]; the first is 0.
            derivatives: Positions, then velocities, then accelerations.
        """
        from scipy.interpolate import BPoly

        t = np.asarray(times, dtype=float)
        if len(derivatives) == 1:
            return cls.through(t, derivatives[0], order=3)
        boundary = np.stack(derivatives, axis=1)
        _check_points(t, boundary[:, 0], 3)
        spline = BPoly.from_derivatives(t, boundary)
        coefficients = np.stack(
            [
                spline.derivative(p)(t[:-1]) / factorial(p) if p else spline(t[:-1])
                for p in range(2 * len(derivatives))
            ],
            axis=1,
        )
        return cls(t, coefficients)

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        return float(self.knots[-1])

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return int(self.coefficients.shape[2])

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        segment = np.searchsorted(self.knots, times, side="right") - 1
        # The last instant belongs to the last segment, not to one after it.
        segment = np.clip(segment, 0, len(self.coefficients) - 1)
        since = (times - self.knots[segment])[..., None]
        coefficients = self.coefficients[segment]
        q = qd = qdd = np.zeros((*times.shape, self.dof))
        # Horner, with its two derivatives: q̈ ← q̈ x + 2 q̇, q̇ ← q̇ x + q, q ← q x + c.
        for power in reversed(range(self.coefficients.shape[1])):
            qdd = qdd * since + 2.0 * qd
            qd = qd * since + q
            q = q * since + coefficients[..., power, :]
        return at_rest_outside(q, qd, qdd, moving)


def _check(knots: np.ndarray, coefficients: np.ndarray) -> None:
    if knots.ndim != 1 or knots.size < 2 or coefficients.ndim != 3:
        raise ArgumentError(
            "A polynomial needs at least two knots and coefficients with the axes "
            f"(piece, power, joint), not {coefficients.shape}."
        )
    if len(coefficients) != knots.size - 1:
        raise ArgumentError(
            f"{knots.size} knots bound {knots.size - 1} pieces, but coefficients "
            f"for {len(coefficients)} were given."
        )
    if knots[0] != 0.0 or np.any(np.diff(knots) <= 0) or not np.isfinite(knots[-1]):
        raise ArgumentError("Times must begin at 0 and increase.")
    if not np.all(np.isfinite(coefficients)):
        raise ArgumentError("A coefficient of the polynomial is not finite.")


def _check_points(t: np.ndarray, q: np.ndarray, order: int) -> None:
    if order not in (1, 3, 5, 7):
        raise ArgumentError(f"The order must be 1, 3, 5 or 7, not {order}.")
    if t.ndim != 1 or q.ndim != 2 or len(t) != len(q) or t.size < 2:
        raise ArgumentError(
            "Give at least two times and one row of joint positions for each: "
            f"found {t.shape} times and points of shape {q.shape}."
        )
    if t[0] != 0.0 or np.any(np.diff(t) <= 0) or not np.all(np.isfinite(t)):
        raise ArgumentError("Times must begin at 0 and increase.")
    if not np.all(np.isfinite(q)):
        raise ArgumentError("A point of the motion is not finite.")


def _boundary(derivatives: ArrayLike | None, count: int, dof: int) -> np.ndarray:
    if derivatives is None:
        return np.zeros((count, dof))
    rows = np.asarray(derivatives, dtype=float)
    if rows.shape != (count, dof) or not np.all(np.isfinite(rows)):
        raise ArgumentError(
            f"This order takes {count} finite boundary derivatives of {dof} joints "
            f"at each end, not an array of shape {rows.shape}."
        )
    return rows


# Straight lines with bell-shaped speed (`mitchell1997` Eq. 3.40–3.43).


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """From one posture to another along σ̇ = λ σ (1 − σ), q = start + σ (end − start).

    It begins at σ = sigma0 and ends at 1 − sigma0, so it lasts 2 ln(1/sigma0 − 1) / λ;
    the fastest moment is halfway, at λ/4 (end − start).

    Attributes:
        start, end: Postures in [rad] or [m].
        rate: λ in [1/s].
        sigma0: How much of the way is already behind at t = 0, and left at the end.
    """

    start: Float[np.ndarray, " dof"]
    end: Float[np.ndarray, " dof"]
    rate: float
    sigma0: float = 1e-3

    def __post_init__(self) -> None:
        start = joint_vector(self.start, "start")
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", joint_vector(self.end, "end", start.size))
        object.__setattr__(self, "rate", require_positive(self.rate, "rate"))
        if not 0.0 < self.sigma0 < 0.5:
            raise ArgumentError(
                f"sigma0 must lie between 0 and 0.5, not {self.sigma0!r}."
            )

    @classmethod
    def lasting(
        cls, start: ArrayLike, end: ArrayLike, duration: float, sigma0: float = 1e-3
    ) -> Sigmoid:
        """Choose λ so that the motion lasts this long in [s]."""
        duration = require_positive(duration, "duration")
        rate = 2.0 * np.log(1.0 / sigma0 - 1.0) / duration
        return cls(np.asarray(start), np.asarray(end), float(rate), sigma0)

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.start.size

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        return float(2.0 * np.log(1.0 / self.sigma0 - 1.0) / self.rate)

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        since_half = times[..., None] - 0.5 * self.duration
        sigma = 1.0 / (1.0 + np.exp(-self.rate * since_half))
        way = self.end - self.start
        bell = self.rate * sigma * (1.0 - sigma)
        q = self.start + sigma * way
        qdd = self.rate * bell * (1.0 - 2.0 * sigma) * way
        return at_rest_outside(q, bell * way, qdd, moving)
