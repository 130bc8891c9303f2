"""Least squares: ordinary, weighted, ridge, with a prior, and total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.errors import ArgumentError
from armwise.regression import (
    Solution,
    residual_std,
    solve_system,
    stack,
    torque_size,
    triangle,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.problem import Problem


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """Minimise ‖Y β − τ‖²: the plain estimate, best if all joints are equally noisy."""

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        systems = problem.systems()
        std = np.ones(len(systems))
        first = solve_system(stack(systems, std), problem.prior_base, std)
        spread = residual_std(systems, first.values, problem.accumulator.samples)
        # 1e-12: exact data have no spread, and weights must stay finite.
        std *= max(float(np.sqrt(np.mean(spread**2))), 1e-12)
        return solve_system(stack(systems, std), problem.prior_base, std)


# Squared it is 1e-18, below the rounding of the squares themselves.
_SMALLEST_NOISE = 1e-9
"""Noise no torque is better than, relative to the torque itself: exact data must not
get an infinite weight."""


@dataclass(frozen=True)
class WeightedLeastSquares:
    """Minimise Σ ‖(Y β − τ) / σ‖², σ of each joint found along the way.

    Attributes:
        iterations: How often σ is taken from the residuals and the fit repeated.
        torque_std: σ of each joint in [N m], if it is known.
    """

    # Judgement: feasible generalised least squares; the fit depends only weakly on the
    # weights, and a round costs one small SVD.
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
    # The first weights are the torques' own sizes, so that wrists count from the start.
    size = torque_size(systems, samples)
    floor = _SMALLEST_NOISE * np.where(size > 0, size, 1.0)
    std = np.where(size > 0, size, 1.0)
    grams = [system.T @ system for system in systems]
    for _ in range(iterations):
        values = _normal_equations(grams, std, prior)
        std = np.maximum(residual_std(systems, values, samples), floor)
    solution = solve_system(stack(systems, std), prior, std)
    std = np.maximum(residual_std(systems, solution.values, samples), floor)
    return solve_system(stack(systems, std), prior, std)


def _normal_equations(
    grams: Sequence[Float[np.ndarray, "base+1 base+1"]],
    torque_std: Float[np.ndarray, " joints"],
    prior: Float[np.ndarray, " base"],
) -> Float[np.ndarray, " base"]:
    """β to half of the digits, as weights need them, at a tenth of the time."""
    pairs = zip(grams, torque_std, strict=True)
    total = sum((gram / std**2 for gram, std in pairs), np.zeros(grams[0].shape))
    H, g = total[:-1, :-1], total[:-1, -1]
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    # 1e-12 of a column is rounding: what nothing determines stays at the prior.
    ridged = H / np.outer(scale, scale) + 1e-12 * np.eye(len(H))
    return np.asarray(prior + np.linalg.solve(ridged, (g - H @ prior) / scale) / scale)


@dataclass(frozen=True)
class Ridge:
    """Minimise ‖(Y β − τ)/σ‖² + d ‖β/b‖², b each column's scale, as `aah1986` did.

    Attributes:
        strength: d, relative to the largest squared singular value; far below the
            smallest one it changes nothing that the data determine.
    """

    # Its root is 1e-4: directions beyond a condition number of 10⁴ are damped by half
    # or more.
    strength: float = 1e-8

    def __post_init__(self) -> None:
        if not self.strength > 0:
            raise ArgumentError(f"The ridge must be positive, not {self.strength}.")

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        first = WeightedLeastSquares().solve(problem)
        system = stack(problem.systems(), first.torque_std)
        # As rows of the system rather than on AᵀA: QR keeps all digits.
        pull = np.sqrt(self.strength) * first.singular_values[0] * np.diag(first.scale)
        rows = np.column_stack([pull, np.zeros(len(pull))])
        zero = np.zeros(len(pull))
        solution = solve_system(np.vstack([system, rows]), zero, first.torque_std)
        return replace(solution, notes=("Ridge pulls undetermined values to zero.",))


@dataclass(frozen=True)
class PriorWeighted:
    """Add the arm's own parameters as measurements with a standard deviation.

    Attributes:
        relative_std: How far a parameter of the description may be off, as a fraction.
        absolute_std: The same as a number, for parameters that are near zero.
    """

    # Judgement: descriptions from CAD lack cables, motors and gears. The absolute part
    # is in kg, kg m, kg m² and N m alike.
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
        # Whitened by the Cholesky factor, the prior is so many more rows of the system.
        # K has full row rank, hence this is positive definite.
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        rows = np.column_stack([root, root @ problem.prior_base])
        system = np.vstack([stack(problem.systems(), first.torque_std), rows])
        return solve_system(system, problem.prior_base, first.torque_std)


@dataclass(frozen=True)
class TotalLeastSquares:
    """Smallest right singular vector of [A, b], columns scaled by their noise.

    Attributes:
        regressor_noise: Noise of a column relative to its size, in units of the
            relative noise of the torque. One: motion and torque are equally uncertain.
    """

    # Judgement: motion is ten times as certain as torque.
    regressor_noise: float = 0.1

    def __post_init__(self) -> None:
        if not self.regressor_noise > 0:
            raise ArgumentError("regressor_noise must be positive.")

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        first = WeightedLeastSquares().solve(problem)
        # The smallest singular vector would be the undetermined direction, not the
        # solution.
        if first.rank < first.values.size:
            note = "The data do not determine every parameter: weighted least squares."
            return replace(first, notes=(note,))
        system = triangle(stack(problem.systems(), first.torque_std))
        # Scaled by their noise, the errors of all columns are alike (Golub, Van Loan).
        noise = np.append(self.regressor_noise * first.scale, 0.0)
        noise[-1] = float(np.linalg.norm(system[:, -1]))
        # Of R, not of all rows: the right singular vectors are the same.
        vector = np.linalg.svd(system / noise)[2][-1] / noise
        return replace(first, values=-vector[:-1] / vector[-1])


class Method(Protocol):
    """A method of identification: solves a problem for its base parameters."""

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        ...
