"""Total least squares: noise in the motion as well as in the torque."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armwise.errors import ArgumentError
from armwise.identification.accumulator import triangle
from armwise.identification.methods.weighted import WeightedLeastSquares
from armwise.identification.problem import Problem
from armwise.identification.solution import Solution, stack


@dataclass(frozen=True)
class TotalLeastSquares:
    """Smallest right singular vector of [A, b], columns scaled by their noise.

    Attributes:
        regressor_noise: Noise of a column relative to its size, in units of the
            relative noise of the torque. One: motion and torque are equally uncertain.
    """

    regressor_noise: float = 0.1

    def __post_init__(self) -> None:
        if not self.regressor_noise > 0:
            raise ArgumentError("regressor_noise must be positive.")

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        first = WeightedLeastSquares().solve(problem)
        if first.rank < first.values.size:
            note = "The data do not determine every parameter: weighted least squares."
            return replace(first, notes=(note,))
        system = triangle(stack(problem.systems(), first.torque_std))
        noise = np.append(self.regressor_noise * first.scale, 0.0)
        noise[-1] = float(np.linalg.norm(system[:, -1]))
        vector = np.linalg.svd(system / noise)[2][-1] / noise
        return replace(first, values=-vector[:-1] / vector[-1])
