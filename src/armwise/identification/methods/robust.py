"""Robust: samples that nothing explains lose their vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.identification.methods.weighted import WeightedLeastSquares
from armwise.identification.prediction import residuals
from armwise.identification.problem import Problem
from armwise.identification.solution import Solution, solve_system, stack

_HUBER = 1.345
_BISQUARE = 4.685


@dataclass(frozen=True)
class Robust:
    """Iteratively reweighted least squares.

    Attributes:
        loss: "huber" bounds the pull of an outlier, "bisquare" lets it go.
        iterations: At most so many passes over the data.
        tolerance: Stop when β moves by less than this fraction of its standard error.
    """

    loss: Literal["huber", "bisquare"] = "huber"
    iterations: int = 12
    tolerance: float = 0.05

    def __post_init__(self) -> None:
        if self.loss not in ("huber", "bisquare"):
            raise ArgumentError(f'loss is "huber" or "bisquare", not {self.loss!r}.')

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        found = WeightedLeastSquares().solve(problem)
        for _ in range(self.iterations):
            errors = residuals(problem, found.values)
            std = _spread(errors)
            weights = [np.sqrt(self._weight(e / std)) for e in errors]
            system = stack(problem.systems(problem.accumulate(weights)), std)
            new = solve_system(system, problem.prior_base, std)
            moved = np.abs(new.values - found.values)
            finite = np.isfinite(np.diag(new.covariance))
            error = np.sqrt(np.where(finite, np.diag(new.covariance), 1.0))
            found = new
            if np.all(moved <= self.tolerance * error):
                break
        return found

    def _weight(self, u: np.ndarray) -> np.ndarray:
        size = np.abs(u)
        if self.loss == "huber":
            return np.minimum(1.0, _HUBER / np.maximum(size, 1e-300))
        return np.where(size < _BISQUARE, (1 - (u / _BISQUARE) ** 2) ** 2, 0.0)


def _spread(errors: list[np.ndarray]) -> np.ndarray:
    """Standard deviation of each joint from the median, which outliers cannot move."""
    joined = np.concatenate(errors)
    spread = 1.4826 * np.median(np.abs(joined - np.median(joined, axis=0)), axis=0)
    return np.maximum(spread, 1e-12)
