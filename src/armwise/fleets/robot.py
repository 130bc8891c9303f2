"""One robot's estimate, from the sums of its pieces alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.fleets.job import Part
from armwise.identification import (
    STRETCHES,
    Estimate,
    Method,
    Problem,
    Review,
    Validation,
    WeightedLeastSquares,
    build_estimate,
    jackknife,
)
from armwise.regression import Accumulator, Solution, triangle

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimate and what it stands on.

    Attributes:
        estimate: The estimate; its covariance is the scatter between stretches.
        plain_covariance: What the covariance would be if residuals were independent
            from sample to sample: too small, but of full rank.
        total: The sums of all stretches in one, itself a part of one stretch.
    """

    estimate: Estimate
    plain_covariance: Float[np.ndarray, "base base"]
    total: Part


def joined(parts: Sequence[Part]) -> Part:
    """Put the stretches of several parts one after the other."""
    return Part(
        np.concatenate([part.samples for part in parts]),
        np.concatenate([part.trusted for part in parts]),
        tuple(
            np.concatenate(blocks)
            for blocks in zip(*(part.factors for part in parts), strict=True)
        ),
        np.concatenate([part.torque for part in parts]),
        sum(part.rows for part in parts),
    )


def total(part: Part) -> Part:
    """Merge all stretches into one."""
    return _merged(part, np.array([0, len(part.samples)]))


def coarsened(part: Part) -> Part:
    """Merge neighbouring stretches where there are more than doubt needs."""
    count = len(part.samples)
    if count <= 2 * STRETCHES:
        return part
    return _merged(part, np.linspace(0, count, STRETCHES + 1).astype(int))


def _merged(part: Part, edges: np.ndarray) -> Part:
    """Merge the stretches between every two edges into one."""
    factors = tuple(
        np.stack([triangle(np.concatenate(blocks[a:b])) for a, b in pairwise(edges)])
        for blocks in part.factors
    )
    samples, trusted, torque = (
        np.add.reduceat(sums, edges[:-1])
        for sums in (part.samples, part.trusted, part.torque)
    )
    return Part(samples, trusted, factors, torque, part.rows)


def fit(problem: Problem, part: Part, method: Method | None = None) -> Fit:
    """Estimate an arm from stretches; their scatter gives the covariance.

    Args:
        problem: What to find; its own data are not looked at.
        part: The stretches.
        method: How to weigh the evidence; one that needs no samples.
    """
    chosen = method or WeightedLeastSquares()
    part = coarsened(part)
    whole = total(part)
    posed = problem.with_data((), _accumulators(problem, whole)[0])
    solution = chosen.solve(posed)
    covariance = jackknife(*_told(posed, part, solution), solution)
    review = Review(covariance, _explained(posed, whole, solution))
    estimate = build_estimate(posed, solution, review, type(chosen).__name__)
    return Fit(estimate, solution.covariance, whole)


def _accumulators(problem: Problem, part: Part) -> list[Accumulator]:
    """See every stretch as the accumulator it is."""
    factors = zip(*part.factors, strict=True)
    pairs = zip(part.samples.tolist(), factors, strict=True)
    return [Accumulator(problem.columns, count, list(R)) for count, R in pairs]


def _told(
    problem: Problem, part: Part, solution: Solution
) -> tuple[np.ndarray, np.ndarray]:
    """Scores Yᵀ W e and information Yᵀ W Y of every stretch."""
    scores, information = [], []
    for accumulator in _accumulators(problem, part):
        systems = problem.systems(accumulator)
        pairs = zip(systems, solution.torque_std, strict=True)
        rows = np.vstack([system / std for system, std in pairs])
        A, b = rows[:, :-1], rows[:, -1]
        scores.append(A.T @ (b - A @ solution.values))
        information.append(A.T @ A)
    return np.stack(scores), np.stack(information)


def _explained(problem: Problem, whole: Part, solution: Solution) -> Validation:
    """How well trusted rows are explained; whiteness would need the rows themselves."""
    count = np.maximum(whole.trusted[0], 1.0)
    systems = problem.systems()
    errors = [np.sum((s[:, :-1] @ solution.values - s[:, -1]) ** 2) for s in systems]
    squares = np.array([np.sum(blocks[0][:, -1] ** 2) for blocks in whole.factors])
    spread = squares - whole.torque[0] ** 2 / count
    return Validation(
        relative_error=np.sqrt(errors / np.where(squares > 0, squares, 1.0)),
        rmse=np.sqrt(np.array(errors) / count),
        r2=1.0 - errors / np.where(spread > 0, spread, 1.0),
        whiteness=np.full(len(errors), np.nan),
        samples=int(whole.samples[0]),
    )
