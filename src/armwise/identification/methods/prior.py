"""Prior-weighted: what the drawing says, corrected by what the motion says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armwise.errors import ArgumentError
from armwise.identification.methods.weighted import WeightedLeastSquares
from armwise.identification.problem import Problem
from armwise.identification.solution import Solution, solve_system, stack


@dataclass(frozen=True)
class PriorWeighted:
    """Add the arm's own parameters as measurements of limited trust.

    Attributes:
        relative_std: How far a parameter of the description may be off, as a fraction.
        absolute_std: The same as a number, for parameters that are near zero.
    """

    relative_std: float = 0.3
    absolute_std: float = 0.05

    def __post_init__(self) -> None:
        if not (self.relative_std >= 0 and self.absolute_std > 0):
            raise ArgumentError("The standard deviations of a prior must be positive.")

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        first = WeightedLeastSquares().solve(problem)
        spread = np.hypot(self.relative_std * problem.prior, self.absolute_std)
        K = problem.base.matrix
        covariance = (K * (spread * problem.is_estimated) ** 2) @ K.T
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        rows = np.column_stack([root, root @ problem.prior_base])
        system = np.vstack([stack(problem.systems(), first.torque_std), rows])
        return solve_system(system, problem.prior_base, first.torque_std)
