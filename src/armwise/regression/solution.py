"""Linear least squares in base coordinates, and which directions it determines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.regression.jackknife import StretchScores


_SMALLEST_COLUMN = 1e-10
"""A column this small beside the largest is rounding, whatever it is multiplied by:
float64 has 16 digits, and sums over a long log lose some of them."""

RANK_TOLERANCE = 1e-9
"""Relative singular value, columns scaled to one, below which a direction counts as
undetermined: above the rounding of an R factor, below what any motion excites."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Base parameters as a method solved for them, and how they are determined.

    Attributes:
        values: The base parameters β.
        covariance: Their covariance as the method sees it, for residuals that are
            independent from sample to sample; infinite variance where undetermined.
        torque_std: Standard deviation of each joint's residual torque, in [N m].
        singular_values: Of the weighted system with columns scaled to one.
        directions: Right singular vectors, one row each, in scaled columns.
        scale: Size of each column.
        sensitivity: H⁻¹, how β moves with the gradient of the cost.
        scores: Gradient of the cost over stretches of the log, if the method has its
            own, with each stretch's information where that is known; the scatter of
            these gives the covariance.
        parameters: Standard parameters, if the method solves for them itself.
        notes: What the user should know, in words.
    """

    values: Float[np.ndarray, " base"]
    covariance: Float[np.ndarray, "base base"]
    torque_std: Float[np.ndarray, " joints"]
    singular_values: Float[np.ndarray, " base"]
    directions: Float[np.ndarray, "base base"]
    scale: Float[np.ndarray, " base"]
    sensitivity: Float[np.ndarray, "base base"]
    scores: Float[np.ndarray, "stretches base"] | StretchScores | None = None
    parameters: Float[np.ndarray, " parameters"] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def condition_number(self) -> float:
        """Largest over smallest singular value, columns scaled to one.

        Infinite where a direction is undetermined: its singular value is rounding.
        """
        s = self.singular_values
        return float(s[0] / s[-1]) if s.size and self.is_determined[-1] else np.inf

    @property
    def rank(self) -> int:
        """How many directions the data determine."""
        return int(np.sum(self.is_determined))

    @property
    def is_determined(self) -> np.ndarray:
        """Which of the directions the data determine."""
        s = self.singular_values
        return np.asarray(s > RANK_TOLERANCE * s[0]) if s.size else np.zeros(0, bool)

    @property
    def inverse_root(self) -> Float[np.ndarray, "base determined"]:
        """G with G Gᵀ = H⁻¹ over the directions that are determined."""
        some = self.is_determined
        root = self.directions[some].T / self.singular_values[some]
        return np.asarray(root / self.scale[:, None])


def few_threads() -> AbstractContextManager[object]:
    """Let one thread multiply matrices: those of an arm are small, and threads wait.

    Two take as long as one even for 32 joints (four hundred columns).
    """
    from threadpoolctl import threadpool_limits

    limited: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limited


def triangle(matrix: np.ndarray) -> Float[np.ndarray, "width width"]:
    """Return the upper triangular R of a matrix, square whatever its height."""
    width = matrix.shape[1]
    if matrix.shape[0] < width:
        matrix = np.vstack([matrix, np.zeros((width - matrix.shape[0], width))])
    # Householder's QR and not AᵀA: forming that squares the condition number, which
    # costs half of the digits.
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def stack(
    systems: Sequence[np.ndarray], torque_std: np.ndarray
) -> Float[np.ndarray, "rows base+1"]:
    """Join the joints' systems, each divided by its noise."""
    return np.vstack([s / std for s, std in zip(systems, torque_std, strict=True)])


def solve_system(
    system: Float[np.ndarray, "rows base+1"],
    prior: Float[np.ndarray, " base"],
    torque_std: Float[np.ndarray, " joints"],
    noise: float = 1.0,
) -> Solution:
    """Minimise ‖A β − b‖²; keep the prior along directions that are undetermined.

    Args:
        system: Rows [A, b], in units of the noise.
        prior: β to keep along undetermined directions.
        torque_std: Passed on.
        noise: Standard deviation of the rows.
    """
    R = triangle(system)
    A, b = R[:, :-1], R[:, -1]
    norms = np.linalg.norm(A, axis=0)
    is_zero = norms <= _SMALLEST_COLUMN * norms.max(initial=0.0)
    A = np.where(is_zero, 0.0, A)
    # Columns of kilograms and of kg m² differ by orders of magnitude; scaled to one,
    # singular values measure how alike columns are, not their units.
    scale = np.where(is_zero, 1.0, norms)
    # The SVD of the small R costs nothing beside the log and names the directions that
    # are undetermined, which QR alone would not.
    U, s, Vt = np.linalg.svd(A / scale, full_matrices=False)
    some = s > RANK_TOLERANCE * max(s[0], 1e-300) if s.size else np.zeros(0, bool)
    # Solved for the step from the prior: along undetermined directions it is zero.
    residual = b - A @ prior
    step = Vt[some].T @ ((U[:, some].T @ residual) / s[some])
    inverse = (Vt[some].T / s[some] ** 2) @ Vt[some] / np.outer(scale, scale)
    covariance = noise**2 * inverse
    # 1e-6: a parameter with less than this in an undetermined direction is determined
    # to six digits all the same.
    undetermined = np.any(np.abs(Vt[~some]) > 1e-6, axis=0) | is_zero
    covariance[undetermined, :] = 0.0
    covariance[:, undetermined] = 0.0
    covariance[undetermined, undetermined] = np.inf
    return Solution(prior + step / scale, covariance, torque_std, s, Vt, scale, inverse)


def residual_std(
    systems: Sequence[np.ndarray],
    values: np.ndarray,
    samples: float,
    floor: float = 0.0,
) -> Float[np.ndarray, " joints"]:
    """Standard deviation of each joint's residual torque in [N m]."""
    # Not samples − parameters: these are weights, and a log has many samples for every
    # parameter; intervals come from the jackknife instead.
    count = max(samples, 1.0)
    sizes = [np.linalg.norm(s[:, :-1] @ values - s[:, -1]) for s in systems]
    return np.maximum(np.array(sizes) / np.sqrt(count), floor)


def torque_size(systems: Sequence[np.ndarray], samples: float) -> np.ndarray:
    """Root mean square of each joint's right-hand side in [N m]."""
    return np.array([np.linalg.norm(s[:, -1]) for s in systems]) / np.sqrt(
        max(samples, 1)
    )
