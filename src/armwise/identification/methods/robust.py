"""Reweighted least squares: robust against outliers, and recursive with forgetting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.identification.validation import residuals
from armwise.regression import (
    Accumulator,
    Solution,
    StretchScores,
    solve_system,
    stack,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.problem import Problem


_HUBER = 1.345
"""Residual, in standard deviations, from which on Huber's weight falls: 95 % efficient
on Gaussian noise."""

_BISQUARE = 4.685
"""Residual at which Tukey's bisquare weight reaches zero: the same efficiency."""

_MAD_TO_STD = 1.4826
"""Standard deviation over median absolute deviation, of a Gaussian."""


@dataclass(frozen=True)
class Robust:
    """Iteratively reweighted least squares.

    Attributes:
        loss: "huber" bounds the pull of an outlier, "bisquare" lets it go.
        iterations: At most so many passes over the data.
        tolerance: Stop when β moves by less than this fraction of its standard error.
    """

    loss: Literal["huber", "bisquare"] = "huber"
    # Judgement: a bound on passes over the data; and 5 % of a standard error cannot be
    # seen in an interval.
    iterations: int = 12
    tolerance: float = 0.05

    def __post_init__(self) -> None:
        if self.loss not in ("huber", "bisquare"):
            raise ArgumentError(f'loss is "huber" or "bisquare", not {self.loss!r}.')

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        solution = WeightedLeastSquares().solve(problem)
        for _ in range(self.iterations):
            errors = residuals(problem, solution.values)
            # Renewed in every round: the first residuals are those of a fit that
            # outliers bent.
            std = _spread(errors)
            # Rows are multiplied by the root, squares by the weight itself.
            weights = [np.sqrt(self._weight(e / std)) for e in errors]
            system = stack(problem.systems(problem.accumulate(weights)), std)
            new = solve_system(system, problem.prior_base, std)
            moved = np.abs(new.values - solution.values)
            finite = np.isfinite(np.diag(new.covariance))
            error = np.sqrt(np.where(finite, np.diag(new.covariance), 1.0))
            solution = new
            if np.all(moved <= self.tolerance * error):
                break
        return solution

    def _weight(self, u: np.ndarray) -> np.ndarray:
        size = np.abs(u)
        if self.loss == "huber":
            # ψ(u)/u of each loss; at zero it is one.
            return np.minimum(1.0, _HUBER / np.maximum(size, 1e-300))
        return np.where(size < _BISQUARE, (1 - (u / _BISQUARE) ** 2) ** 2, 0.0)


def _spread(errors: list[np.ndarray]) -> np.ndarray:
    """Standard deviation of each joint from the median, which outliers cannot move."""
    joined = np.concatenate(errors)
    # Up to half of the samples may be outliers (breakdown point ½).
    spread = _MAD_TO_STD * np.median(np.abs(joined - np.median(joined, axis=0)), axis=0)
    return np.maximum(spread, 1e-12)


@dataclass(frozen=True)
class Recursive:
    """Weighted least squares in which samples lose weight as they age.

    Attributes:
        forgetting: Weight that a sample keeps from each sample to the next; one
            forgets nothing.
    """

    # A memory of 1/(1 − 0.9999) = 10⁴ samples: ten seconds at 1 kHz. Judgement.
    forgetting: float = 0.9999

    def __post_init__(self) -> None:
        if not 0 < self.forgetting <= 1:
            raise ArgumentError(
                f"forgetting must lie in (0, 1], not {self.forgetting}."
            )

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        accumulator = Accumulator(problem.columns)
        for block in problem.columns.blocks(problem.data):
            width = block.rows.stop - block.rows.start
            # A block ages at once; within it, samples weigh alike to 0.9999^1000 = 0.9.
            accumulator.forget(self.forgetting**width)
            accumulator.add_block(block)
        accumulator.settle()
        aged = replace(problem, accumulator=accumulator)
        solution = WeightedLeastSquares().solve(aged)
        return replace(solution, scores=self._scores(problem, solution))

    def _scores(
        self, problem: Problem, solution: Solution
    ) -> Float[np.ndarray, "stretches base"]:
        """Gradient of the cost over stretches, each sample by its weight."""
        columns = problem.columns
        weights = problem.column_weights(solution.values)
        total = sum(len(samples) for samples in problem.data)
        sums = StretchScores(total, columns.count)
        age = total
        for block in columns.blocks(problem.data):
            width = block.rows.stop - block.rows.start
            parts = sums.parts(width)
            age -= width
            weight = self.forgetting ** np.arange(age + width - 1, age - 1, -1)
            for support, matrix, std in zip(
                columns.support, block.joints, solution.torque_std, strict=True
            ):
                error = weight * (matrix[-1] - weights[support] @ matrix[:-1]) / std**2
                for row, part in parts:
                    sums.values[row, support] += matrix[:-1, part] @ error[part]
        return sums.values @ problem.leaders
