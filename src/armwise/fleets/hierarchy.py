"""A fleet as a family: what its robots share, how they spread, how each deviates.

β_r = μ + u_r + e_r: the fleet's mean, a robot's own deviation u ~ N(0, Ω), and the
error of its estimate e ~ N(0, C_r). Mean and spread come from moments of the robots
that are alike; those that differ must not pull at them. What the fleet knows of Ω then
tells how much of an apparent deviation is a robot's own (shrinkage, empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.fleets.robot import Fit

if TYPE_CHECKING:
    from jaxtyping import Float

_ROUNDS = 10
"""Times robots that differ are set aside and the spread is taken again, at most."""

_MAD_TO_STD = 1.4826
"""Standard deviation over median absolute deviation, of a Gaussian."""

_UNKNOWN = 1e12
"""Variance of what a robot knows nothing of, in units of the fleet's."""

_FLOOR = 1e-9
"""Least scatter of a parameter between robots, relative to its size."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Mean, spread and deviations of a fleet, in base parameters.

    Attributes:
        mean: The fleet's mean μ.
        spread: Covariance Ω of the robots' true deviations.
        noise: Covariance C of every robot's estimate, as far as it parts robots:
            errors that all of them share do not.
        differences: β_r − μ as estimated.
        is_alike: Which robots mean and spread were taken from.
    """

    mean: Float[np.ndarray, " base"]
    spread: Float[np.ndarray, "base base"]
    noise: Float[np.ndarray, "robots base base"]
    differences: Float[np.ndarray, "robots base"]
    is_alike: np.ndarray

    @property
    def covariance(self) -> Float[np.ndarray, "robots base base"]:
        """Covariance Ω + C_r of every difference, if the robot is one of the family."""
        return self.spread + self.noise

    @cached_property
    def scores(self) -> Float[np.ndarray, "robots base"]:
        """Every difference in units of its own standard deviation."""
        variances = np.diagonal(self.covariance, axis1=1, axis2=2)
        return self.differences / np.sqrt(variances)

    @property
    def freedom(self) -> int:
        """Robots behind the spread, less the one that the mean takes."""
        return int(np.sum(self.is_alike)) - 1

    @cached_property
    def mean_std(self) -> Float[np.ndarray, " base"]:
        """How well the mean is known."""
        variances = np.diagonal(self.covariance[self.is_alike], axis1=1, axis2=2)
        return 1.0 / np.sqrt(np.sum(1.0 / variances, axis=0))

    @cached_property
    def deviations(self) -> Float[np.ndarray, "robots base"]:
        """Every robot's own deviation u_r, shrunk towards the mean."""
        gain = np.linalg.solve(self.covariance, self.differences[..., None])
        return gain[..., 0] @ self.spread

    @cached_property
    def deviation_std(self) -> Float[np.ndarray, "robots base"]:
        """How far the deviations may be off."""
        gain = np.linalg.solve(self.covariance, self.spread[None])
        left = np.diag(self.spread) - np.einsum("kl,rlk->rk", self.spread, gain)
        return np.sqrt(np.maximum(left, 0.0))


def largest_score(false_alarms: float, tests: int, freedom: int) -> float:
    """Score that none of so many tests should pass, but for a chance of that size.

    Student's t, because the spread is itself an estimate; Bonferroni's share for each.
    """
    from scipy.stats import t

    if freedom < 1:
        return float("inf")
    return float(t.isf(0.5 * false_alarms / max(tests, 1), freedom))


def family(fits: Sequence[Fit], false_alarms: float) -> Hierarchy:
    """Find what robots share and how they spread.

    Args:
        fits: One for each robot.
        false_alarms: Chance of setting aside any robot of a fleet that has no defects.
    """
    values = np.array([one.estimate.base_values for one in fits])
    noise, known = _noise(fits)
    center, size = _first_guess(values, known)
    scaled = (values - center) / size
    noise = noise / np.outer(size, size)
    limit = largest_score(false_alarms, scaled.size, len(fits) - 1)
    alike = _least_unlike(scaled * known, limit)
    for _ in range(_ROUNDS):
        found = _moments(scaled, noise, known, alike)
        limit = largest_score(false_alarms, scaled.size, found.freedom)
        again = _least_unlike(found.scores, limit)
        if np.array_equal(again, alike):
            break
        alike = again
    return Hierarchy(
        center + size * found.mean,
        found.spread * np.outer(size, size),
        found.noise * np.outer(size, size),
        found.differences * size,
        found.is_alike,
    )


def _noise(fits: Sequence[Fit]) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of every estimate, and which parameters each robot knows at all.

    The scatter between stretches tells how much larger variances are than if residuals
    were independent, but of few stretches it has too low a rank. So the correlations
    are those of the textbook, and the variances grow by what is usual in the fleet.
    """
    plain = np.array([one.plain_covariance for one in fits])
    told = np.array([np.diag(one.estimate.base_covariance) for one in fits])
    own = np.diagonal(plain, axis1=1, axis2=2)
    known = np.isfinite(own) & np.isfinite(told) & (own > 0)
    ratios = np.where(known, told, 1.0) / np.where(known, own, 1.0)
    growth = np.sqrt(np.median(ratios, axis=0))
    pairs = known[:, :, None] & known[:, None, :]
    return np.where(pairs, plain, 0.0) * np.outer(growth, growth), known


def _first_guess(values: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, ...]:
    """Median of every parameter, and its scatter by the median absolute deviation."""
    center, scatter = np.zeros((2, values.shape[1]))
    for k in np.flatnonzero(known.any(axis=0)):
        seen = values[known[:, k], k]
        center[k] = np.median(seen)
        scatter[k] = np.median(np.abs(seen - center[k]))
    floor = _FLOOR * np.maximum(np.abs(center), np.abs(center).max())
    return center, np.maximum(_MAD_TO_STD * scatter, floor)


def _least_unlike(scores: np.ndarray, limit: float) -> np.ndarray:
    """Robots without a score beyond the limit; half of the fleet at the least."""
    worst = np.max(np.abs(scores), axis=1)
    alike: np.ndarray = worst <= max(limit, float(np.median(worst)))
    return alike


def _moments(
    values: np.ndarray, noise: np.ndarray, known: np.ndarray, alike: np.ndarray
) -> Hierarchy:
    """Mean and spread of the robots that are alike."""
    seen = (known & alike[:, None]).astype(float)
    mean = np.sum(values * seen, axis=0) / np.maximum(seen.sum(axis=0), 1.0)
    differences = (values - mean) * known
    counts = seen.T @ seen
    scatter = _shrunk(differences * seen, counts)
    usual = np.einsum("rkl,r->kl", noise, alike) / np.maximum(counts, 1.0)
    # Robots cannot scatter less than their noise: what exceeds it, they share.
    own = np.sqrt(_ratio(np.diag(scatter), np.diag(usual)))
    parting = noise * np.outer(own, own)
    spread = _positive(scatter - usual * np.outer(own, own))
    blind = np.eye(len(mean)) * np.where(known, 0.0, _UNKNOWN)[:, None, :]
    return Hierarchy(mean, spread, parting + blind, differences, alike)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return a / b, at most one."""
    return np.minimum(above, below) / np.where(below > 0, below, 1.0)


def _shrunk(
    differences: Float[np.ndarray, "robots base"],
    counts: Float[np.ndarray, "base base"],
) -> Float[np.ndarray, "base base"]:
    """Covariance whose correlations are drawn towards none (Schäfer, Strimmer 2005).

    As many robots as parameters would leave a plain covariance without an inverse.
    """
    n = np.maximum(counts, 2.0)
    size = np.sqrt(np.sum(differences**2, axis=0) / (np.diag(n) - 1.0))
    x = differences / np.where(size > 0, size, 1.0)
    products = x.T @ x
    doubt = (x**2).T @ x**2 - products**2 / n
    off = ~np.eye(len(size), dtype=bool)
    correlation = products / (n - 1.0)
    squares = np.sum(correlation[off] ** 2)
    share = np.sum((doubt * n / (n - 1.0) ** 3)[off]) / squares if squares > 0 else 1.0
    shrunk = (1.0 - min(1.0, float(share))) * correlation
    np.fill_diagonal(shrunk, 1.0)
    return shrunk * np.outer(size, size)


def _positive(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest covariance: no variance below zero in any direction."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    floor = _FLOOR * max(float(values[-1]), _FLOOR)
    return (vectors * np.maximum(values, floor)) @ vectors.T
