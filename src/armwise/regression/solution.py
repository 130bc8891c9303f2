"""Linear systems in base coordinates: solved with honesty about what they determine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


_SILENT = 1e-10
"""A column this small beside the largest is rounding, whatever it is multiplied by."""

RANK_TOLERANCE = 1e-9
"""Relative singular value, columns scaled to one, below which nothing is known."""


@dataclass(frozen=True, eq=False)
class Solution:
    """What a method found.

    Attributes:
        values: The base parameters β.
        covariance: Their covariance as the method sees it, for residuals that are
            independent from sample to sample; infinite variance where nothing is known.
        torque_std: Standard deviation of each joint's residual torque, in [N m].
        singular_values: Of the weighted system with columns scaled to one.
        directions: Right singular vectors, one row each, in scaled columns.
        scale: Size of each column.
        sensitivity: H⁻¹, how β moves with the gradient of the cost.
        scores: Gradient of the cost over stretches of the log, if the method has its
            own; the scatter of these gives the covariance.
        parameters: Standard parameters, if the method finds them itself.
        notes: What the user should know, in words.
    """

    values: Float[np.ndarray, " base"]
    covariance: Float[np.ndarray, "base base"]
    torque_std: Float[np.ndarray, " joints"]
    singular_values: Float[np.ndarray, " base"]
    directions: Float[np.ndarray, "base base"]
    scale: Float[np.ndarray, " base"]
    sensitivity: Float[np.ndarray, "base base"]
    scores: Float[np.ndarray, "stretches base"] | None = None
    parameters: Float[np.ndarray, " parameters"] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def condition_number(self) -> float:
        """Largest over smallest singular value, columns scaled to one."""
        s = self.singular_values
        return float(s[0] / s[-1]) if s.size and s[-1] > 0 else float("inf")

    @property
    def rank(self) -> int:
        """How many directions the data determine."""
        s = self.singular_values
        return int(np.sum(s > RANK_TOLERANCE * s[0])) if s.size else 0


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
    """Minimise ‖A β − b‖²; keep the prior where the data say nothing.

    Args:
        system: Rows [A, b], in units of the noise.
        prior: β to keep along undetermined directions.
        torque_std: Passed on.
        noise: Standard deviation of the rows.
    """
    from armwise.regression.accumulator import triangle

    R = triangle(system)
    A, b = R[:, :-1], R[:, -1]
    norms = np.linalg.norm(A, axis=0)
    silent = norms <= _SILENT * norms.max(initial=0.0)
    A = np.where(silent, 0.0, A)
    scale = np.where(silent, 1.0, norms)
    U, s, Vt = np.linalg.svd(A / scale, full_matrices=False)
    known = s > RANK_TOLERANCE * max(s[0], 1e-300) if s.size else np.zeros(0, bool)
    residual = b - A @ prior
    step = Vt[known].T @ ((U[:, known].T @ residual) / s[known])
    inverse = (Vt[known].T / s[known] ** 2) @ Vt[known] / np.outer(scale, scale)
    covariance = noise**2 * inverse
    blind = np.any(np.abs(Vt[~known]) > 1e-6, axis=0) | silent
    covariance[blind, :] = 0.0
    covariance[:, blind] = 0.0
    covariance[blind, blind] = np.inf
    return Solution(prior + step / scale, covariance, torque_std, s, Vt, scale, inverse)


def residual_std(
    systems: Sequence[np.ndarray],
    values: np.ndarray,
    samples: float,
    floor: float = 0.0,
) -> Float[np.ndarray, " joints"]:
    """Standard deviation of each joint's residual torque in [N m]."""
    count = max(samples, 1.0)
    sizes = [np.linalg.norm(s[:, :-1] @ values - s[:, -1]) for s in systems]
    return np.maximum(np.array(sizes) / np.sqrt(count), floor)


def torque_size(systems: Sequence[np.ndarray], samples: float) -> np.ndarray:
    """Root mean square of each joint's right-hand side in [N m]."""
    return np.array([np.linalg.norm(s[:, -1]) for s in systems]) / np.sqrt(
        max(samples, 1)
    )
