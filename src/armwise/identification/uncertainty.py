"""Uncertainty that holds when residuals are correlated from sample to sample.

Filtered data repeat themselves: a thousand samples a second at a bandwidth of ten hertz
hold twenty facts, not a thousand. The scores Yᵀ W e are summed over stretches of time
long enough to be independent; their scatter, not the residuals' size, gives the
covariance: what β would have been without each stretch in turn (the delete-a-group
jackknife, or CR3 of cluster-robust statistics). It holds for few stretches, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.problem import Problem
from armwise.identification.validation import (
    Tally,
    Validation,
    base_to_parameters,
    block_errors,
)
from armwise.regression import RANK_TOLERANCE, Block, Columns, Solution

if TYPE_CHECKING:
    from jaxtyping import Float

STRETCHES = 40
"""Stretches a log is cut into."""

_MOST_SHARE = 0.95
"""A stretch that holds all that is known of a direction counts as holding this much."""

_GLANCES = 32
"""Samples of a stretch that are looked at to see what it tells."""

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
            sums.add(columns, block, errors, solution.torque_std, parts)
    if solution.scores is not None:
        return Review(_sandwich(solution.scores, solution), tally.result())
    wanted = columns.user[:, list(problem.base.indices)]
    told = sums.information(columns, wanted)
    return Review(jackknife(sums.values @ wanted, told, solution), tally.result())


def jackknife(
    scores: Float[np.ndarray, "stretches base"],
    information: Float[np.ndarray, "stretches base base"],
    solution: Solution,
) -> Float[np.ndarray, "base base"]:
    """Scatter of what the estimate would be without each stretch in turn."""
    count = len(scores)
    if count < _FEWEST:
        return solution.covariance
    known = solution.singular_values > RANK_TOLERANCE * solution.singular_values[0]
    root = (solution.directions[known].T / solution.singular_values[known]) / (
        solution.scale[:, None]
    )
    shares = _MOST_SHARE * (root.T @ information @ root)
    left = np.linalg.solve(np.eye(root.shape[1]) - shares, (scores @ root)[..., None])
    steps = left[..., 0] @ root.T
    return _blinded(steps.T @ steps * (count - 1) / count, solution)


def _sandwich(
    scores: Float[np.ndarray, "stretches base"], solution: Solution
) -> Float[np.ndarray, "base base"]:
    count = len(scores)
    if count < _FEWEST:
        return solution.covariance
    scatter = scores.T @ scores * count / (count - 1)
    return _blinded(solution.sensitivity @ scatter @ solution.sensitivity.T, solution)


def _blinded(
    covariance: Float[np.ndarray, "base base"], solution: Solution
) -> Float[np.ndarray, "base base"]:
    """Keep infinite what the solution knows nothing of."""
    blind = ~np.isfinite(np.diag(solution.covariance))
    covariance[blind, :] = 0.0
    covariance[:, blind] = 0.0
    covariance[blind, blind] = np.inf
    return covariance


class Stretches:
    """Sums over stretches of equal length, filled in order."""

    def __init__(self, samples: int, width: int) -> None:
        self._length = max(1, -(-samples // STRETCHES))
        self._stride = max(1, self._length // _GLANCES)
        self._seen = 0
        count = -(-samples // self._length)
        self.values = np.zeros((count, width))
        self._told: list[np.ndarray] = []

    def add(
        self,
        columns: Columns,
        block: Block,
        errors: Float[np.ndarray, "samples dof"],
        torque_std: Float[np.ndarray, " dof"],
        parts: list[tuple[int, slice]],
    ) -> None:
        """Add the scores Yᵀ W e of a block, and roughly its information Yᵀ W Y."""
        if not self._told:
            sizes = [support.size for support in columns.support]
            self._told = [np.zeros((len(self.values), k, k)) for k in sizes]
        for i, support in enumerate(columns.support):
            matrix = block.joints[i][:-1]
            if block.trust is not None:
                matrix = matrix * block.trust[:, i]
            error = errors[:, i] / torque_std[i] ** 2
            for row, part in parts:
                self.values[row, support] += matrix[:, part] @ error[part]
                seen = matrix[:, part.start : part.stop : self._stride]
                weight = (part.stop - part.start) / (seen.shape[1] * torque_std[i] ** 2)
                self._told[i][row] += weight * (seen @ seen.T)

    def information(
        self, columns: Columns, wanted: np.ndarray
    ) -> Float[np.ndarray, "stretches base base"]:
        """Roughly what each stretch tells of the base parameters, Yᵀ W Y."""
        pairs = zip(columns.support, self._told, strict=True)
        return np.sum([wanted[s].T @ told @ wanted[s] for s, told in pairs], axis=0)

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
