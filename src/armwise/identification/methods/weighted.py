"""Weighted least squares: each joint counts as much as its noise allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armwise.identification.problem import Problem
from armwise.identification.solution import (
    Solution,
    residual_std,
    solve_system,
    stack,
    torque_size,
)

_SMALLEST_NOISE = 1e-9
"""Noise no torque is better than, relative to the torque itself."""


@dataclass(frozen=True)
class WeightedLeastSquares:
    """Minimise Σ ‖(Y β − τ) / σ‖², σ of each joint found along the way.

    Attributes:
        iterations: How often σ is taken from the residuals and the fit repeated.
        torque_std: σ of each joint in [N m], if it is known.
    """

    iterations: int = 4
    torque_std: tuple[float, ...] | None = None

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        systems = problem.systems()
        count = problem.accumulator.samples
        if self.torque_std is not None:
            std = np.asarray(self.torque_std, dtype=float)
            return solve_system(stack(systems, std), problem.prior_base, std)
        size = torque_size(systems, count)
        floor = _SMALLEST_NOISE * np.where(size > 0, size, 1.0)
        std = np.where(size > 0, size, 1.0)
        for _ in range(self.iterations + 1):
            found = solve_system(stack(systems, std), problem.prior_base, std)
            std = np.maximum(residual_std(systems, found.values, count), floor)
        return solve_system(stack(systems, std), problem.prior_base, std)
