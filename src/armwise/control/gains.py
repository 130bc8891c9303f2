"""Feedback gains: checked once, applied to batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


def feedback_gain(value: ArrayLike, name: str) -> Float[np.ndarray, "*shape"]:
    """Return a gain as a number, one per joint, or a matrix; refuse useless ones.

    Raises:
        ArgumentError: Unless it is finite, symmetric and positive definite.
    """
    gain = np.array(value, dtype=float)
    if gain.ndim > 2 or gain.size == 0 or not np.all(np.isfinite(gain)):
        raise ArgumentError(
            f"{name} must be finite: a number, one per joint, or a matrix."
        )
    if gain.ndim == 2 and (
        gain.shape[0] != gain.shape[1] or not np.allclose(gain, gain.T)
    ):
        raise ArgumentError(f"{name} must be a symmetric matrix.")
    lowest = np.linalg.eigvalsh(gain)[0] if gain.ndim == 2 else gain.min()
    if gain.ndim == 0 and not lowest > 0.0:
        raise ArgumentError(f"{name} must be positive, not {float(gain):.4g}.")
    if not lowest > 0.0:
        raise ArgumentError(
            f"{name} must be positive definite; its smallest eigenvalue is "
            f"{lowest:.4g}."
        )
    gain.setflags(write=False)
    return gain


def apply_feedback(
    gain: Float[np.ndarray, "*shape"], error: Float[np.ndarray, "... dof"]
) -> Float[np.ndarray, "... dof"]:
    """K e for a K from `feedback_gain` (symmetric, so e Kᵀ = e K)."""
    product: np.ndarray = gain * error if gain.ndim < 2 else error @ gain
    return product
