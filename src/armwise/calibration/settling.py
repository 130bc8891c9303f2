"""How sure an adaptation is of what it has found, and when that is enough.

Under least squares with forgetting P is the inverse of the information gathered: with
prediction errors of spectral density S the parameters' covariance is S P.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.sensor_control import SensorComposite

if TYPE_CHECKING:
    from jaxtyping import Float

_WAVES = 2.5
"""Waves that must have passed before an adaptation may end."""


def covariance(controller: SensorComposite) -> Float[np.ndarray, "batch p p"]:
    """Covariance of adapted parameters, from their gain and what is left."""
    density = controller.error_density.mean(axis=-1)
    spread: np.ndarray = density[:, None, None] * controller.adaptation.gain
    return spread


def parabola_gain_std(
    coefficients: Float[np.ndarray, "batch 3"], spread: Float[np.ndarray, "batch 3 3"]
) -> Float[np.ndarray, " batch"]:
    """Relative standard deviation of α² = −2 c/m, m = a − b²/4c, of a + b q + c q²."""
    a, b, c = coefficients.T
    c = np.where(c == 0.0, 1e-300, c)
    m = a - b**2 / (4.0 * c)
    m = np.where(m == 0.0, 1e-300, m)
    slope = np.stack(
        [-0.5 / m, b / (4.0 * c * m), 0.5 / c - b**2 / (8.0 * c**2 * m)], axis=-1
    )
    std = np.sqrt(np.einsum("bi,bij,bj->b", slope, spread, slope))
    return np.where(c * m < 0.0, std, np.inf)


def direction_std(
    pairs: Float[np.ndarray, "batch dof 2"], spread: Float[np.ndarray, "batch p p"]
) -> Float[np.ndarray, "batch dof"]:
    """Standard deviation in [rad] of the steps between successive pairs' directions."""
    batch, n, _ = pairs.shape
    size = np.maximum(np.sum(pairs**2, axis=2), 1e-300)
    slope = np.zeros((batch, n, spread.shape[1]))
    for j in range(n):
        turn = np.stack([-pairs[:, j, 1], pairs[:, j, 0]], axis=-1) / size[:, j, None]
        slope[:, j, 2 * j : 2 * j + 2] = turn
        if j + 1 < n:
            slope[:, j + 1, 2 * j : 2 * j + 2] = -turn
    return np.asarray(np.sqrt(np.einsum("bji,bik,bjk->bj", slope, spread, slope)))


class Settled:
    """Ends an adaptation when what it is after is known well enough.

    Args:
        uncertainty: Standard deviations now, of every arm.
        enough: What they must come down to.
        period: Of the slowest wave in [s].
    """

    def __init__(
        self, uncertainty: Callable[[], np.ndarray], enough: float, period: float
    ) -> None:
        self._uncertainty, self._enough = uncertainty, enough
        self._earliest = _WAVES * period

    def __call__(self, t: float) -> bool:
        """Whether to end at a time since the beginning in [s]."""
        if t < self._earliest:
            return False
        return bool(np.all(self._uncertainty() < self._enough))
