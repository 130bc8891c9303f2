"""Uncertainty that holds when residuals are correlated from sample to sample.

Filtered data repeat themselves: a thousand samples a second at a bandwidth of ten hertz
hold twenty facts, not a thousand. The scores Yᵀ W e are summed over stretches of time
long enough to be independent; their scatter, not the residuals' size, gives the
covariance (the batch-means form of a heteroscedasticity- and autocorrelation-consistent
estimate).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.columns import Block
from armwise.identification.prediction import base_to_parameters
from armwise.identification.problem import Problem
from armwise.identification.solution import Solution
from armwise.identification.validation import Validation, compare_torques

if TYPE_CHECKING:
    from jaxtyping import Float

STRETCHES = 40
"""Stretches a log is cut into."""

_FEWEST = 4
"""Fewer stretches than these say nothing of correlation."""


@dataclass(frozen=True, eq=False)
class Review:
    """One more look at the data, with the solution in hand.

    Attributes:
        covariance: Covariance of β, correlation of the residuals accounted for.
        fit: How well the data are explained.
    """

    covariance: Float[np.ndarray, "base base"]
    fit: Validation


def review(problem: Problem, solution: Solution) -> Review:
    """Predict the torques that were fitted; see how the residuals hang together."""
    columns = problem.columns
    weights = columns.user @ base_to_parameters(problem, solution.values)
    predicted = [np.empty(samples.tau.shape) for samples in problem.data]
    sums = Stretches(sum(len(samples) for samples in problem.data), columns.count)
    for number, samples in enumerate(problem.data):
        for block in columns.blocks([samples]):
            _look(problem, solution, block, weights, predicted[number], sums)
    scores = solution.scores
    if scores is None:
        scores = sums.values @ columns.user[:, list(problem.base.indices)]
    fit = compare_torques([samples.tau for samples in problem.data], predicted)
    return Review(_sandwich(scores, solution), fit)


def _look(
    problem: Problem,
    solution: Solution,
    block: Block,
    weights: np.ndarray,
    predicted: np.ndarray,
    sums: Stretches,
) -> None:
    parts = sums.parts(block.rows.stop - block.rows.start)
    for i, (support, matrix) in enumerate(
        zip(problem.columns.support, block.joints, strict=True)
    ):
        torque = weights[support] @ matrix[:-1]
        predicted[block.rows, i] = torque
        error = (matrix[-1] - torque) / solution.torque_std[i] ** 2
        for row, part in parts:
            sums.values[row, support] += matrix[:-1, part] @ error[part]


def _sandwich(
    scores: Float[np.ndarray, "stretches base"], solution: Solution
) -> Float[np.ndarray, "base base"]:
    count = len(scores)
    if count < _FEWEST:
        return solution.covariance
    scatter = scores.T @ scores * count / (count - 1)
    covariance = solution.sensitivity @ scatter @ solution.sensitivity.T
    blind = ~np.isfinite(np.diag(solution.covariance))
    covariance[blind, :] = 0.0
    covariance[:, blind] = 0.0
    covariance[blind, blind] = np.inf
    return covariance


class Stretches:
    """Sums over stretches of equal length, filled in order."""

    def __init__(self, samples: int, width: int) -> None:
        self._length = max(1, -(-samples // STRETCHES))
        self._seen = 0
        self.values = np.zeros((-(-samples // self._length), width))

    def parts(self, count: int) -> list[tuple[int, slice]]:
        """Say to which stretch the next samples belong."""
        found = []
        start = 0
        while start < count:
            row, inside = divmod(self._seen + start, self._length)
            stop = min(count, start + self._length - inside)
            found.append((row, slice(start, stop)))
            start = stop
        self._seen += count
        return found
