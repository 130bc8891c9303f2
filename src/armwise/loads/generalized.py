"""Generalised least squares with the noise's own spectrum, and honest covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.errors import NotIdentifiable
from armwise.loads.noise_spectrum import (
    Coefficients,
    NoiseModel,
    Rows,
    cosine_coefficients,
    fit_noise,
    flat_noise,
    small_sample_covariance,
)

if TYPE_CHECKING:
    from jaxtyping import Float


Bias = Literal["segment", "common", "none"]
"""What is known of the sensor's zero: nothing, from segment to segment; the same all
the time; or that it is zero."""

_FAR_LIKELIER = 10.0
"""Difference of log-likelihoods that settles the matter."""

WORST_CONDITION = 1e6
"""Of the weighted regressor, columns scaled to one; beyond it nothing is certain."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters that explain the rows, and how far to trust them.

    Attributes:
        values: The parameters; NaN where the rows do not depend on one.
        covariance: Of the values, small-sample corrected; NaN likewise.
        degrees_of_freedom: Of each value's standard deviation, for Student's t.
        noise: Spectrum of what was left.
        residual: target − regressor · values − bias, row by row.
        bias, bias_std: Per segment and channel, in the channels' units.
        condition_number: Of the weighted regressor, columns scaled to one.
        information: Inverse covariance by the noise model, over all parameters.
    """

    values: Float[np.ndarray, " parameters"]
    covariance: Float[np.ndarray, "parameters parameters"]
    degrees_of_freedom: Float[np.ndarray, " parameters"]
    noise: NoiseModel
    residual: Float[np.ndarray, "rows channels"]
    bias: Float[np.ndarray, "segments channels"]
    bias_std: Float[np.ndarray, "segments channels"]
    condition_number: float
    information: Float[np.ndarray, "parameters parameters"]


def solve_generalized(
    rows: Rows, bias: Bias = "segment", has_drift: bool = True, iterations: int = 8
) -> Solution:
    """Find the parameters and the spectrum of the noise together.

    Minimises Σ |target − Y φ|² / S(f) over all frequencies, S re-estimated from the
    residuals until nothing changes. Standard deviations include what estimating S
    costs (Kenward and Roger 1997).

    Raises:
        NotIdentifiable: If columns of the regressor depend on each other.
    """
    width = rows.regressor.shape[2]
    if bias == "common":
        rows = rows.with_columns(common_bias(rows))
    coefficients = cosine_coefficients(rows, keep_means=bias != "segment")
    seen = _seen(coefficients)
    chosen = coefficients.regressor[:, :, seen]
    noise = _likeliest_noise(chosen, coefficients, has_drift, iterations)
    variance = noise.variance(coefficients)
    fit = _weighted_fit(chosen, coefficients.target, variance)
    covariance, freedom = small_sample_covariance(
        chosen, coefficients, variance, fit.covariance
    )
    return _assemble(rows, bias, width, seen, fit, covariance, freedom, noise)


def _likeliest_noise(
    regressor: np.ndarray, data: Coefficients, has_drift: bool, iterations: int
) -> NoiseModel:
    """Alternate between parameters and noise, with and without drift at first.

    A wrong load leaves a smooth error that looks like drift, and drift excuses a wrong
    load: the two can lock. So drift comes in late, unless letting it in at once ends
    far likelier.
    """
    late = _alternate(regressor, data, iterations // 2, has_drift, iterations)
    if not has_drift:
        return late[1]
    soon = _alternate(regressor, data, 1, has_drift, iterations)
    return soon[1] if soon[0] > late[0] + _FAR_LIKELIER else late[1]


def _alternate(
    regressor: np.ndarray,
    data: Coefficients,
    without_drift: int,
    has_drift: bool,
    iterations: int,
) -> tuple[float, NoiseModel]:
    """Return the log-likelihood of where it ends, and the noise there."""
    variance = flat_noise(data)
    values = np.zeros(regressor.shape[2])
    for step in range(2 * iterations):
        fit = _weighted_fit(regressor, data.target, variance)
        left = data.target - regressor @ fit.values
        power = left**2 / np.maximum(1.0 - fit.leverage, 0.05)
        drifting = has_drift and step >= without_drift
        noise = fit_noise(data, power, drifting)
        variance = noise.variance(data)
        moved = np.abs(fit.values - values) / np.sqrt(np.diag(fit.covariance))
        values = fit.values
        if moved.max() < 0.02 and drifting == has_drift:
            break
    left = data.target - regressor @ values
    return -0.5 * float(np.sum(np.log(variance) + left**2 / variance)), noise


@dataclass(frozen=True, eq=False)
class _Fit:
    values: np.ndarray
    covariance: np.ndarray
    leverage: np.ndarray
    condition_number: float
    information: np.ndarray


def _weighted_fit(
    regressor: np.ndarray, target: np.ndarray, variance: np.ndarray
) -> _Fit:
    K, C, P = regressor.shape
    root = np.sqrt(variance)
    white = (regressor / root[:, :, None]).reshape(K * C, P)
    gram = white.T @ white
    scale = np.sqrt(np.diag(gram))
    # With columns scaled to one the Gram matrix keeps enough digits, and QR costs more.
    spread, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    condition = float(np.sqrt(spread[-1] / max(spread[0], 1e-300)))
    if condition > WORST_CONDITION:
        raise NotIdentifiable(
            f"The motion does not tell {P} parameters apart (condition number "
            f"{condition:.1e}). Turn the load about every axis, in other directions "
            "against gravity, or ask for less with method=StaticPoses()."
        )
    root_inverse = vectors / np.sqrt(spread) / scale[:, None]
    turned = white @ root_inverse
    leverage = np.einsum("ij,ij->i", turned, turned).reshape(K, C)
    values = root_inverse @ (turned.T @ (target / root).reshape(K * C))
    covariance = root_inverse @ root_inverse.T
    return _Fit(values, covariance, leverage, condition, gram)


def _seen(coefficients: Coefficients) -> np.ndarray:
    """Which parameters the rows depend on at all."""
    size = np.sqrt(np.einsum("kcp,kcp->p", *2 * (coefficients.regressor,)))
    seen: np.ndarray = size > 1e-9 * max(size.max(), 1e-300)
    return seen


def common_bias(rows: Rows) -> Float[np.ndarray, "rows channels channels"]:
    """Columns of one unknown zero for every channel."""
    count = len(rows.channels)
    return np.broadcast_to(np.eye(count), (len(rows), count, count))


def _assemble(
    rows: Rows,
    bias: Bias,
    width: int,
    seen: np.ndarray,
    fit: _Fit,
    covariance: np.ndarray,
    freedom: np.ndarray,
    noise: NoiseModel,
) -> Solution:
    total = len(seen)
    values, dof = np.full(total, np.nan), np.full(total, np.nan)
    full = np.full((total, total), np.nan)
    information = np.zeros((total, total))
    values[seen], dof[seen] = fit.values, freedom
    full[np.ix_(seen, seen)] = covariance
    information[np.ix_(seen, seen)] = fit.information
    left = rows.target - rows.regressor[:, :, seen] @ fit.values
    offsets, spread = _biases(rows, bias, width, values, full, left, noise)
    if bias == "segment":
        for part, offset in zip(rows.segments, offsets, strict=True):
            left[part] -= offset
    return Solution(
        values=values[:width],
        covariance=full[:width, :width],
        degrees_of_freedom=dof[:width],
        noise=noise,
        residual=left,
        bias=offsets,
        bias_std=spread,
        condition_number=fit.condition_number,
        information=information[:width, :width],
    )


def _biases(
    rows: Rows,
    bias: Bias,
    width: int,
    values: np.ndarray,
    covariance: np.ndarray,
    left: np.ndarray,
    noise: NoiseModel,
) -> tuple[np.ndarray, np.ndarray]:
    """What the sensor's zero was, on average over each segment."""
    shape = (len(rows.starts), len(rows.channels))
    if bias == "none":
        return np.zeros(shape), np.zeros(shape)
    if bias == "common":
        std = np.sqrt(np.diag(covariance)[width:])
        return np.broadcast_to(values[width:], shape), np.broadcast_to(std, shape)
    offsets = np.stack([left[part].mean(axis=0) for part in rows.segments])
    seen = ~np.isnan(values)
    inner = covariance[np.ix_(seen, seen)]
    spreads = []
    for part in rows.segments:
        mean = rows.regressor[part][:, :, seen].mean(axis=0)
        by_values = np.einsum("cp,pq,cq->c", mean, inner, mean)
        own = noise.strengths[:, 1] / (part.stop - part.start)
        spreads.append(np.sqrt(by_values + own))
    return offsets, np.stack(spreads)
