"""Weighted least squares: each joint counts as much as its noise allows."""

from __future__ import annotations

from collections.abc import Sequence
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
        if self.torque_std is not None:
            std = np.asarray(self.torque_std, dtype=float)
            return solve_system(stack(systems, std), problem.prior_base, std)
        count = problem.accumulator.samples
        return solve_weighted(systems, problem.prior_base, count, self.iterations)


def solve_weighted(
    systems: Sequence[np.ndarray],
    prior: np.ndarray,
    samples: float,
    iterations: int = 4,
) -> Solution:
    """Solve the joints' systems, weighing each by its own residual.

    Args:
        systems: Rows [A, b] of every joint.
        prior: Base parameters to keep where the data say nothing.
        samples: How many samples the systems stand for.
        iterations: How often the weights are renewed.
    """
    size = torque_size(systems, samples)
    floor = _SMALLEST_NOISE * np.where(size > 0, size, 1.0)
    std = np.where(size > 0, size, 1.0)
    for _ in range(iterations + 1):
        found = solve_system(stack(systems, std), prior, std)
        std = np.maximum(residual_std(systems, found.values, samples), floor)
    return solve_system(stack(systems, std), prior, std)
