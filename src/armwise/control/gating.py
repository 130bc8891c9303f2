"""Soft partitions of joint space: who speaks where (`mitchell1997` Eq. 3.13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Gating:
    """Normalised Gaussians g_i(q) = exp(−‖q − c_i‖²/2σ²)/Z, which add up to one.

    Attributes:
        centers: c_i, one row per expert, in [rad] or [m].
        width: σ in [rad] or [m]; small widths make hard borders.
    """

    centers: Float[np.ndarray, "experts dof"]
    width: float

    def __post_init__(self) -> None:
        centers = np.atleast_2d(np.asarray(self.centers, dtype=float))
        object.__setattr__(self, "centers", centers)
        if not (self.width > 0 and np.all(np.isfinite(centers))):
            raise ArgumentError("Gating needs finite centres and a positive width.")

    @classmethod
    def over(
        cls, lower: ArrayLike, upper: ArrayLike, experts: int, overlap: float = 0.5
    ) -> Gating:
        """Spread any number of experts evenly over a box of joint space.

        The box is halved along its longest side until each part has one expert.

        Args:
            lower, upper: Corners of the box in [rad] or [m].
            experts: How many.
            overlap: Width σ as a share of a part's mean side.
        """
        low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        if experts < 1 or low.shape != high.shape or np.any(high <= low):
            raise ArgumentError(
                "Gating needs at least one expert and a box with lower < upper."
            )
        centers = np.array(_halve(low, high, experts))
        side = float((np.prod(high - low) / experts) ** (1.0 / low.size))
        return cls(centers, overlap * side)

    @property
    def experts(self) -> int:
        """Number of experts."""
        return int(self.centers.shape[0])

    def weights(self, q: Float[np.ndarray, "... dof"]) -> Float[np.ndarray, "... g"]:
        """How far each expert is responsible at q; the last axis adds up to one."""
        if self.experts == 1:
            return np.ones((*q.shape[:-1], 1))
        away = q[..., None, :] - self.centers
        exponent: np.ndarray = np.einsum("...i,...i->...", away, away)
        exponent *= -0.5 / self.width**2
        # Far from every centre all would underflow; the nearest one sets the scale.
        exponent -= exponent.max(axis=-1, keepdims=True)
        np.exp(exponent, out=exponent)
        exponent /= exponent.sum(axis=-1, keepdims=True)
        return exponent


def _halve(low: np.ndarray, high: np.ndarray, count: int) -> list[np.ndarray]:
    if count == 1:
        return [0.5 * (low + high)]
    first = count // 2
    axis = int(np.argmax(high - low))
    border = low[axis] + (high - low)[axis] * first / count
    middle_high, middle_low = high.copy(), low.copy()
    middle_high[axis] = middle_low[axis] = border
    return [
        *_halve(low, middle_high, first),
        *_halve(middle_low, high, count - first),
    ]
