"""One robot's estimate, from the sums of its chunks alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


def join(several: Sequence[ChunkSums]) -> ChunkSums:
    """Put the stretches of several chunks one after the other."""
    return ChunkSums(
        np.concatenate([one.samples for one in several]),
        np.concatenate([one.trusted for one in several]),
        tuple(
            np.concatenate(blocks)
            for blocks in zip(*(one.factors for one in several), strict=True)
        ),
        np.concatenate([one.torque for one in several]),
        sum(one.rows for one in several),
    )


def total(sums: ChunkSums) -> ChunkSums:
    """Merge all stretches into one."""
    return _merged(sums, np.array([0, len(sums.samples)]))


def coarsened(sums: ChunkSums) -> ChunkSums:
    """Merge neighbouring stretches where there are more than the jackknife needs."""
    count = len(sums.samples)
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
    """Scores Yᵀ W e and information Yᵀ W Y of every stretch."""
    scores, information = [], []
    for stretch in sums.stretches(problem.columns):
        rows = stack(problem.systems(stretch), solution.torque_std)
        A, b = rows[:, :-1], rows[:, -1]
        scores.append(A.T @ (b - A @ solution.values))
        information.append(A.T @ A)
    return np.stack(scores), np.stack(information)
