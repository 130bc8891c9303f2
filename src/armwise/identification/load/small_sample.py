"""What it costs that the noise had to be estimated from the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.load.spectrum import Coefficients, shapes

if TYPE_CHECKING:
    from jaxtyping import Float


def small_sample_covariance(
    regressor: Float[np.ndarray, "frequencies channels parameters"],
    coefficients: Coefficients,
    variance: Float[np.ndarray, "frequencies channels"],
    covariance: Float[np.ndarray, "parameters parameters"],
) -> tuple[
    Float[np.ndarray, "parameters parameters"], Float[np.ndarray, " parameters"]
]:
    """Widen the covariance for the noise being estimated, and count what backs it.

    Kenward and Roger's correction is simple here: with independent coefficients every
    matrix in it is a weighted sum over frequencies.
    """
    unit = shapes(coefficients.chord)
    widening = np.zeros_like(covariance)
    spread = np.zeros(len(covariance))
    for channel in range(regressor.shape[1]):
        s, Y = variance[:, channel], regressor[:, channel]
        relative = unit / s
        doubt = np.linalg.pinv(0.5 * relative @ relative.T, rcond=1e-10)
        P = [(Y * (g / s)[:, None]).T @ Y for g in relative]
        slopes = np.stack([np.diag(covariance @ p @ covariance) for p in P])
        spread += np.einsum("jp,jl,lp->p", slopes, doubt, slopes)
        for i, gi in enumerate(relative):
            for j, gj in enumerate(relative):
                Q = (Y * (gi * gj / s)[:, None]).T @ Y
                widening += doubt[i, j] * (Q - P[i] @ covariance @ P[j])
    widened = covariance + 2.0 * covariance @ widening @ covariance
    floor = np.diag(covariance) / np.maximum(np.diag(widened), 1e-300)
    stretch = np.sqrt(np.maximum(floor, 1.0))
    freedom = 2.0 * np.diag(covariance) ** 2 / np.maximum(spread, 1e-300)
    return widened * np.outer(stretch, stretch), np.maximum(freedom, 2.0)
