"""Ridge regression, as `aah1986` used it: a little pull on every parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armwise.errors import ArgumentError
from armwise.identification.methods.weighted import WeightedLeastSquares
from armwise.identification.problem import Problem
from armwise.identification.solution import Solution, solve_system, stack


@dataclass(frozen=True)
class Ridge:
    """Minimise ‖(Y β − τ)/σ‖² + d ‖β/b‖², b each column's scale.

    Attributes:
        strength: d, relative to the largest squared singular value; far below the
            smallest one it changes nothing that the data determine.
    """

    strength: float = 1e-8

    def __post_init__(self) -> None:
        if not self.strength > 0:
            raise ArgumentError(f"The ridge must be positive, not {self.strength}.")

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        first = WeightedLeastSquares().solve(problem)
        system = stack(problem.systems(), first.torque_std)
        pull = np.sqrt(self.strength) * first.singular_values[0] * np.diag(first.scale)
        rows = np.column_stack([pull, np.zeros(len(pull))])
        zero = np.zeros(len(pull))
        found = solve_system(np.vstack([system, rows]), zero, first.torque_std)
        return replace(found, notes=("Ridge pulls undetermined values to zero.",))
