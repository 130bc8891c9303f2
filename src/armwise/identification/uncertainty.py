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

from armwise.identification.columns import Block, Columns
from armwise.identification.prediction import base_to_parameters, block_errors
from armwise.identification.problem import Problem
from armwise.identification.solution import Solution
from armwise.identification.validation import Tally, Validation

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
    sums = Stretches(sum(len(samples) for samples in problem.data), columns.count)
    tally = Tally(columns.arm.dof)
    for block in columns.blocks(problem.data):
        parts = sums.parts(block.rows.stop - block.rows.start)
        errors = block_errors(columns, block, weights)
        tally.add(block.samples.tau[block.rows], errors)
        if solution.scores is None:
            _add_scores(columns, block, errors / solution.torque_std**2, parts, sums)
    scores = solution.scores
    if scores is None:
        scores = sums.values @ columns.user[:, list(problem.base.indices)]
    return Review(_sandwich(scores, solution), tally.result())


def _add_scores(
    columns: Columns,
    block: Block,
    errors: np.ndarray,
    parts: list[tuple[int, slice]],
    sums: Stretches,
) -> None:
    for i, support in enumerate(columns.support):
        matrix, error = block.joints[i][:-1], errors[:, i]
        for row, part in parts:
            sums.values[row, support] += matrix[:, part] @ error[part]


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
