"""Hierarchical model of a fleet: its mean, spread, and every robot's deviation.

β_r = μ + u_r + e_r: the fleet's mean, a robot's own deviation u ~ N(0, Ω), and the
error of its estimate e ~ N(0, C_r). Mean and spread come from moments of the robots
that are alike; those that differ must not pull at them. Ω then says how much of an
apparent deviation is a robot's own (shrinkage, empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.fleets.job import ChunkSums
from armwise.identification import (
    Estimate,
    Method,
    Problem,
    Review,
    WeightedLeastSquares,
    build_estimate,
    fit_from_sums,
)
from armwise.regression import STRETCHES, Solution, jackknife, stack, triangle

if TYPE_CHECKING:
    from jaxtyping import Float


# One robot's estimate, from the sums of its chunks alone.


@dataclass(frozen=True, eq=False)
class RobotFit:
    """An estimate and what it stands on.

    Attributes:
        estimate: The estimate; its covariance is the jackknife's over stretches.
        plain_covariance: What the covariance would be if residuals were independent
            from sample to sample: too small, but of full rank.
        total: The sums of all stretches in one.
    """

    estimate: Estimate
    plain_covariance: Float[np.ndarray, "base base"]
    total: ChunkSums


def total(sums: ChunkSums) -> ChunkSums:
    """Merge all stretches into one."""
    return _merged(sums, np.array([0, len(sums.samples)]))


def coarsened(sums: ChunkSums) -> ChunkSums:
    """Merge neighbouring stretches where there are more than the jackknife needs."""
    count = len(sums.samples)
    # Below twice as many, merging would leave some stretches double and others single,
    # while the jackknife costs hardly more with all of them.
    if count <= 2 * STRETCHES:
        return sums
    return _merged(sums, np.linspace(0, count, STRETCHES + 1).astype(int))


def _merged(sums: ChunkSums, edges: np.ndarray) -> ChunkSums:
    """Merge the stretches between every two edges into one."""
    factors = tuple(
        np.stack([triangle(np.concatenate(blocks[a:b])) for a, b in pairwise(edges)])
        for blocks in sums.factors
    )
    samples, trusted, torque = (
        np.add.reduceat(values, edges[:-1])
        for values in (sums.samples, sums.trusted, sums.torque)
    )
    return ChunkSums(samples, trusted, factors, torque, sums.rows)


def fit(problem: Problem, sums: ChunkSums, method: Method | None = None) -> RobotFit:
    """Estimate an arm from stretches; the jackknife over them gives the covariance.

    Args:
        problem: What to estimate; its own data are not looked at.
        sums: The stretches.
        method: How to solve; a method that needs no samples.
    """
    solver = method or WeightedLeastSquares()
    sums = coarsened(sums)
    whole = total(sums)
    # Factors of all stretches merge into one: the fit never sees a sample.
    posed = problem.with_data((), whole.stretches(problem.columns)[0])
    solution = solver.solve(posed)
    covariance = jackknife(*_scores(posed, sums, solution), solution)
    review = Review(covariance, fit_from_sums(posed, solution.values))
    estimate = build_estimate(posed, solution, review, type(solver).__name__)
    return RobotFit(estimate, solution.covariance, whole)


def _scores(
    problem: Problem, sums: ChunkSums, solution: Solution
) -> tuple[np.ndarray, np.ndarray]:
    """Scores Yᵀ W e of every stretch, and its fraction of all information Yᵀ W Y."""
    scores, fractions = [], []
    for stretch in sums.stretches(problem.columns):
        rows = stack(problem.systems(stretch), solution.torque_std)
        A, b = rows[:, :-1], rows[:, -1]
        scores.append(A.T @ (b - A @ solution.values))
        directions = A @ solution.inverse_root
        fractions.append(directions.T @ directions)
    return np.stack(scores), np.stack(fractions)


# Hierarchical model of a fleet: its mean, spread, and every robot's deviation.

# Judgement: a cap against two sets that alternate for ever; the loop otherwise ends
# when the set repeats.
_ROUNDS = 10
"""Times robots that differ are set aside and the spread is estimated again, at most."""

# 1 / Φ⁻¹(3/4), Φ the normal distribution function.
_MAD_TO_STD = 1.4826
"""Standard deviation over median absolute deviation, of a Gaussian."""

_UNDETERMINED = 1e12
"""Variance of a parameter that a robot's logs do not determine, in units of the
fleet's: large enough to weigh nothing, small enough to invert."""

_LEAST_SCATTER = 1e-9
"""Least scatter of a parameter between robots, relative to its size: robots that are
simulated without any difference must not divide by zero."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Mean, spread and deviations of a fleet, in base parameters.

    Attributes:
        mean: The fleet's mean μ.
        spread: Covariance Ω of the robots' true deviations.
        noise: Covariance C of every robot's estimate, as far as it separates robots:
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
        """Standard deviation of the mean."""
        variances = np.diagonal(self.covariance[self.is_alike], axis1=1, axis2=2)
        return 1.0 / np.sqrt(np.sum(1.0 / variances, axis=0))

    @cached_property
    def deviations(self) -> Float[np.ndarray, "robots base"]:
        """Every robot's own deviation u_r, shrunk towards the mean."""
        # u = Ω (Ω + C)⁻¹ (β − μ), the best linear predictor (empirical Bayes).
        gain = np.linalg.solve(self.covariance, self.differences[..., None])
        return gain[..., 0] @ self.spread

    @cached_property
    def deviation_std(self) -> Float[np.ndarray, "robots base"]:
        """How far the deviations may be off."""
        gain = np.linalg.solve(self.covariance, self.spread[None])
        posterior = np.diag(self.spread) - np.einsum("kl,rlk->rk", self.spread, gain)
        # Rounding can turn a variance of zero slightly negative.
        return np.sqrt(np.maximum(posterior, 0.0))


def largest_score(false_alarms: float, tests: int, freedom: int) -> float:
    """Score that none of so many tests should pass, but for a chance of that size.

    Student's t, because the spread is itself an estimate; Bonferroni's fraction of the
    chance for each test.
    """
    from scipy.stats import t

    # One robot has nothing to differ from, and Student's t needs a degree of freedom.
    if freedom < 1:
        return float("inf")
    # One half for each tail: a robot may differ upwards or downwards.
    return float(t.isf(0.5 * false_alarms / max(tests, 1), freedom))


def fit_family(fits: Sequence[RobotFit], false_alarms: float) -> Hierarchy:
    """Estimate the mean of a fleet and how its robots spread.

    Args:
        fits: One for each robot.
        false_alarms: Chance of setting aside any robot of a fleet that has no defects.
    """
    values = np.array([one.estimate.base_values for one in fits])
    noise, is_determined = _noise(fits)
    center, size = _medians(values, is_determined)
    scaled = (values - center) / size
    noise = noise / np.outer(size, size)
    limit = largest_score(false_alarms, scaled.size, len(fits) - 1)
    # The first round goes by median and MAD alone: moments over all robots would be
    # pulled by the very ones that are to be set aside.
    alike = _alike(scaled * is_determined, limit)
    for _ in range(_ROUNDS):
        family = _moments(scaled, noise, is_determined, alike)
        limit = largest_score(false_alarms, scaled.size, family.freedom)
        now_alike = _alike(family.scores, limit)
        if np.array_equal(now_alike, alike):
            break
        alike = now_alike
    return Hierarchy(
        center + size * family.mean,
        family.spread * np.outer(size, size),
        family.noise * np.outer(size, size),
        family.differences * size,
        family.is_alike,
    )


def _noise(fits: Sequence[RobotFit]) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of every estimate, and which parameters its logs determine at all.

    The jackknife says how much larger variances are than if residuals were independent,
    but of few stretches it has too low a rank. So the correlations are those of the
    textbook, and the variances grow by the fleet's median factor.
    """
    plain = np.array([one.plain_covariance for one in fits])
    jackknifed = np.array([np.diag(one.estimate.base_covariance) for one in fits])
    own = np.diagonal(plain, axis1=1, axis2=2)
    is_determined = np.isfinite(own) & np.isfinite(jackknifed) & (own > 0)
    ratios = np.where(is_determined, jackknifed, 1.0) / np.where(
        is_determined, own, 1.0
    )
    # The median over robots: one robot's jackknife alone is too noisy to divide by.
    growth = np.sqrt(np.median(ratios, axis=0))
    pairs = is_determined[:, :, None] & is_determined[:, None, :]
    return np.where(pairs, plain, 0.0) * np.outer(growth, growth), is_determined


def _medians(
    values: np.ndarray, is_determined: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Median of every parameter, and its scatter by the median absolute deviation."""
    center, scatter = np.zeros((2, values.shape[1]))
    for k in np.flatnonzero(is_determined.any(axis=0)):
        estimates = values[is_determined[:, k], k]
        center[k] = np.median(estimates)
        scatter[k] = np.median(np.abs(estimates - center[k]))
    # Relative to the largest parameter: one that is zero in all robots, such as a
    # symmetric product of inertia, has no size of its own.
    floor = _LEAST_SCATTER * np.maximum(np.abs(center), np.abs(center).max())
    return center, np.maximum(_MAD_TO_STD * scatter, floor)


def _alike(scores: np.ndarray, limit: float) -> np.ndarray:
    """Robots without a score beyond the limit; half of the fleet at the least."""
    worst = np.max(np.abs(scores), axis=1)
    # The median as a floor gives the breakdown point of one half that median and MAD
    # have: no set of outliers can vote out the majority.
    alike: np.ndarray = worst <= max(limit, float(np.median(worst)))
    return alike


def _moments(
    values: np.ndarray,
    noise: np.ndarray,
    is_determined: np.ndarray,
    alike: np.ndarray,
) -> Hierarchy:
    """Mean and spread of the robots that are alike."""
    counted = (is_determined & alike[:, None]).astype(float)
    mean = np.sum(values * counted, axis=0) / np.maximum(counted.sum(axis=0), 1.0)
    differences = (values - mean) * is_determined
    counts = counted.T @ counted
    scatter = _shrunk(differences * counted, counts)
    mean_noise = np.einsum("rkl,r->kl", noise, alike) / np.maximum(counts, 1.0)
    # Robots cannot scatter less than their noise: what exceeds it, they share.
    own = np.sqrt(_ratio(np.diag(scatter), np.diag(mean_noise)))
    individual = noise * np.outer(own, own)
    spread = _positive(scatter - mean_noise * np.outer(own, own))
    unknown = (
        np.eye(len(mean)) * np.where(is_determined, 0.0, _UNDETERMINED)[:, None, :]
    )
    return Hierarchy(mean, spread, individual + unknown, differences, alike)


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
    # Two at least: a parameter that one robot determines has no covariance.
    n = np.maximum(counts, 2.0)
    size = np.sqrt(np.sum(differences**2, axis=0) / (np.diag(n) - 1.0))
    x = differences / np.where(size > 0, size, 1.0)
    products = x.T @ x
    variance = (x**2).T @ x**2 - products**2 / n
    off = ~np.eye(len(size), dtype=bool)
    correlation = products / (n - 1.0)
    squares = np.sum(correlation[off] ** 2)
    excess = float(np.sum((variance * n / (n - 1.0) ** 3)[off]))
    # λ* = Σ Var(r) / Σ r² over pairs minimises the expected squared error; with no
    # correlation at all, shrinking fully changes nothing.
    intensity = min(1.0, excess / squares) if squares > 0 else 1.0
    shrunk = (1.0 - intensity) * correlation
    np.fill_diagonal(shrunk, 1.0)
    return shrunk * np.outer(size, size)


def _positive(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest covariance: no variance below zero in any direction."""
    # Noise was subtracted, so eigenvalues may be negative; clipping them gives the
    # nearest positive semidefinite matrix in the Frobenius norm.
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    floor = _LEAST_SCATTER * max(float(values[-1]), _LEAST_SCATTER)
    return (vectors * np.maximum(values, floor)) @ vectors.T
