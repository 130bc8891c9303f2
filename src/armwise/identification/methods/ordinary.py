"""Ordinary least squares: every joint's torque counts the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armwise.identification.problem import Problem
from armwise.identification.solution import (
    Solution,
    residual_std,
    solve_system,
    stack,
)


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """Minimise ‖Y β − τ‖²: the plain estimate, best if all joints are equally noisy."""

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        systems = problem.systems()
        std = np.ones(len(systems))
        first = solve_system(stack(systems, std), problem.prior_base, std)
        spread = residual_std(systems, first.values, problem.accumulator.samples)
        std *= max(float(np.sqrt(np.mean(spread**2))), 1e-12)
        return solve_system(stack(systems, std), problem.prior_base, std)
