"""Generalised least squares with coloured noise whose spectrum is estimated too.

The model is target = Y φ + bias + noise, the noise of every channel coloured: drift of
the zero at low frequencies, differentiated encoder noise at high ones. In cosine
coefficients (`noise_spectrum`) its covariance is diagonal, so that generalised least
squares is weighted least squares, which `regression` solves; parameters and spectrum
are estimated in turn until neither changes (feasible generalised least squares).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from armwise.errors import NotIdentifiable
from armwise.loads.noise_spectrum import (
    Coefficients,
    NoiseModel,
    RegressionRows,
    cosine_coefficients,
    fit_noise,
    flat_noise,
    small_sample_covariance,
)
from armwise.regression import solve_system

if TYPE_CHECKING:
    from jaxtyping import Float


Bias = Literal["segment", "common", "none"]
"""Which zeros of the sensor are unknown: one in each segment, one that is common to all
segments, or none."""

WORST_CONDITION = 1e6
"""Condition number of the weighted regressor, columns scaled to one, above which the
parameters are not separable: an error of one part in a million in the model would
change the result by its own size."""

_SMALLEST_COLUMN = 1e-9
"""Columns smaller than this beside the largest are rounding: the rows do not depend on
that parameter."""

_DECISIVE_LOG_LIKELIHOOD = 10.0
"""Gain in log-likelihood for which drift is allowed from the start: a likelihood ratio
of e¹⁰ = 22,000. The two results are not nested, so no test has a level here; a smaller
gain arises by chance from where the iteration stopped."""

_SMALLEST_VARIANCE_FRACTION = 0.05
"""Smallest 1 − leverage to divide by: a coefficient that the fit absorbs almost wholly
has hardly a residual, and says nothing of the noise."""

_CONVERGED = 0.02
"""Change of every parameter, in standard deviations, at which the iteration ends."""


@dataclass(frozen=True, eq=False)
class LoadSolution:
    """Parameters of a load with covariance, sensor zeros and noise.

    Attributes:
        values: The parameters; NaN where the rows do not depend on one.
        covariance: Of the values, small-sample corrected; NaN likewise.
        degrees_of_freedom: Of each value's standard deviation, for Student's t.
        noise: Spectrum of the residuals.
        bias, bias_std: Per segment and channel, in the channels' units.
        condition_number: Of the weighted regressor, columns scaled to one.
    """

    values: Float[np.ndarray, " parameters"]
    covariance: Float[np.ndarray, "parameters parameters"]
    degrees_of_freedom: Float[np.ndarray, " parameters"]
    noise: NoiseModel
    bias: Float[np.ndarray, "segments channels"]
    bias_std: Float[np.ndarray, "segments channels"]
    condition_number: float


def solve_generalized(
    rows: RegressionRows,
    bias: Bias = "segment",
    has_drift: bool = True,
    iterations: int = 8,
    start: NoiseModel | None = None,
) -> LoadSolution:
    """Estimate the parameters and the spectrum of the noise together.

    Minimises Σ |target − Y φ|² / S(f) over all frequencies, S re-estimated from the
    residuals until nothing changes. Standard deviations include the cost of estimating
    S (Kenward and Roger 1997).

    Args:
        rows: The regression.
        bias, has_drift: Which zeros are unknown, and whether they drift.
        iterations: Rounds of parameters and spectrum in turn, at most twice as many.
        start: Spectrum of nearly the same rows, to begin with.

    Raises:
        NotIdentifiable: If columns of the regressor depend on each other.
    """
    width = rows.regressor.shape[2]
    if bias == "common":
        rows = rows.with_columns(common_bias(len(rows), len(rows.channels)))
    data = cosine_coefficients(rows, has_means=bias != "segment")
    used = nonzero_columns(data.regressor)
    regressor = data.regressor[:, :, used]
    prior = None if rows.prior_std is None else rows.prior_std[used]
    if start is None:
        noise = _likeliest_noise(regressor, data, has_drift, iterations, prior)
    else:
        begin = _variance(start, data, prior)
        noise = _alternate(regressor, data, 0, has_drift, iterations, prior, begin)[1]
    variance = _variance(noise, data, prior)
    fit = weighted_fit(regressor, data.target, np.sqrt(variance), prior)
    covariance, freedom = small_sample_covariance(
        regressor, data, variance, fit.covariance
    )
    values, full = with_unused(fit.values, used), with_unused(covariance, used)
    offsets, offsets_std = _biases(rows, bias, width, values, full, noise)
    return LoadSolution(
        values=values[:width],
        covariance=full[:width, :width],
        degrees_of_freedom=with_unused(freedom, used)[:width],
        noise=noise,
        bias=offsets,
        bias_std=offsets_std,
        condition_number=fit.condition_number,
    )


def scatter_of_stretches(
    rows: RegressionRows, solution: LoadSolution, bias: Bias, stretches: int
) -> Float[np.ndarray, " parameters"]:
    """Standard deviations by what the parameters would be without each stretch of time.

    The delete-a-group jackknife: it sees what is no noise, such as friction that no
    column describes, as far as that differs from stretch to stretch. The noise stays as
    it was found.

    Args:
        rows: The regression.
        solution: Its solution.
        bias: Which zeros are unknown.
        stretches: How many, of the same length.
    """
    without = []
    for part in np.array_split(np.arange(len(rows)), stretches):
        regressor, target = rows.regressor.copy(), rows.target.copy()
        regressor[part], target[part] = 0.0, 0.0
        data = cosine_coefficients(
            replace(rows, regressor=regressor, target=target),
            has_means=bias != "segment",
        )
        used = np.isfinite(solution.values)
        prior = None if rows.prior_std is None else rows.prior_std[used]
        std = np.sqrt(_variance(solution.noise, data, prior))
        fit = weighted_fit(data.regressor[:, :, used], data.target, std, prior)
        without.append(with_unused(fit.values, used))
    scatter = np.sum((np.array(without) - solution.values) ** 2, axis=0)
    # Tukey's factor: estimates without a stretch scatter that much less.
    spread: np.ndarray = np.sqrt(scatter * (stretches - 1) / stretches)
    return spread


# Judgement: five digits, more than any torque has.
_SMALLEST_NOISE = 1e-5
"""Noise of a channel at least, as a fraction of what the largest one measures: in a
short log many unknowns, each with a prior, explain all of it, and noise would be taken
for none."""


def _variance(
    noise: NoiseModel, data: Coefficients, prior: np.ndarray | None
) -> Float[np.ndarray, "rows channels"]:
    """Variance of the noise of every row."""
    variance = noise.variance(data)
    if prior is None:
        return variance
    size = max(data.size**2, float(np.mean(data.target**2, axis=0).max()))
    least = _SMALLEST_NOISE**2 * size
    return np.asarray(np.maximum(variance, least))


def _likeliest_noise(
    regressor: np.ndarray,
    data: Coefficients,
    has_drift: bool,
    iterations: int,
    prior: np.ndarray | None,
) -> NoiseModel:
    """Estimate parameters and noise in turn, with drift allowed late or at once.

    A wrong load leaves a smooth residual that looks like drift, and drift explains
    away a wrong load: the two can lock. So drift is allowed only after some
    iterations, unless allowing it at once ends at a far higher likelihood.
    """
    late = _alternate(regressor, data, iterations // 2, has_drift, iterations, prior)
    if not has_drift:
        return late[1]
    soon = _alternate(regressor, data, 1, has_drift, iterations, prior)
    return soon[1] if soon[0] > late[0] + _DECISIVE_LOG_LIKELIHOOD else late[1]


def _alternate(
    regressor: np.ndarray,
    data: Coefficients,
    without_drift: int,
    has_drift: bool,
    iterations: int,
    prior: np.ndarray | None,
    variance: np.ndarray | None = None,
) -> tuple[float, NoiseModel]:
    """Return the final log-likelihood, and the noise there."""
    if variance is None:
        # White noise weights all frequencies alike, as plain least squares.
        variance = flat_noise(data)
    values, noise = np.zeros(regressor.shape[2]), None
    for step in range(2 * iterations):
        fit = weighted_fit(regressor, data.target, np.sqrt(variance), prior)
        residual = data.target - regressor @ fit.values
        # A residual of leverage h has the variance (1 − h) S: undo the shrinkage, or
        # every iteration would take the noise for smaller than the one before.
        freedom = np.maximum(1.0 - fit.leverage, _SMALLEST_VARIANCE_FRACTION)
        drifts = has_drift and step >= without_drift
        noise = fit_noise(data, residual**2 / freedom, drifts, noise)
        variance = _variance(noise, data, prior)
        change = np.abs(fit.values - values) / np.sqrt(np.diag(fit.covariance))
        values = fit.values
        if change.max() < _CONVERGED and drifts == has_drift:
            break
    residual = data.target - regressor @ values
    likelihood = -0.5 * float(np.sum(np.log(variance) + residual**2 / variance))
    assert noise is not None
    return likelihood, noise


class WeightedFit(NamedTuple):
    """Weighted least squares of one set of rows.

    Attributes:
        values, covariance: Of the parameters, for rows with the given noise.
        leverage: How far each row determines its own prediction, 0 to 1.
        condition_number: Of the weighted regressor, columns scaled to one.
    """

    values: Float[np.ndarray, " parameters"]
    covariance: Float[np.ndarray, "parameters parameters"]
    leverage: Float[np.ndarray, "rows channels"]
    condition_number: float


def weighted_fit(
    regressor: Float[np.ndarray, "rows channels parameters"],
    target: Float[np.ndarray, "rows channels"],
    std: Float[np.ndarray, "*rows channels"],
    prior_std: Float[np.ndarray, " parameters"] | None = None,
) -> WeightedFit:
    """Minimise ‖(target − Y φ) / σ‖² through the R factor of the whitened rows.

    Args:
        regressor, target: Y and what it explains.
        std: Noise σ of the rows, or of the channels.
        prior_std: What is known of every φ before, about zero: one more row each.

    Raises:
        NotIdentifiable: If columns of the regressor depend on each other.
    """
    width = regressor.shape[2]
    rows = np.concatenate([regressor, target[..., None]], axis=2) / std[..., None]
    measured = rows.reshape(-1, width + 1)
    system = measured
    if prior_std is not None:
        pull = np.column_stack([np.diag(1.0 / prior_std), np.zeros(width)])
        system = np.concatenate([measured, pull[np.isfinite(prior_std)]])
    solution = solve_system(system, np.zeros(width), np.ones(1))
    condition = solution.condition_number
    # Nuisance unknowns with a prior may be alike: the prior separates them, and only
    # digits are lost.
    if condition > (WORST_CONDITION if prior_std is None else 1e3 * WORST_CONDITION):
        raise NotIdentifiable(
            f"The motion does not separate {width} parameters (condition number "
            f"{condition:.1e}). Turn the load about every axis, in other directions "
            "against gravity, or ask for less with method=StaticPoses()."
        )
    # H⁻¹ = G Gᵀ, and leverage is the diagonal of Y H⁻¹ Yᵀ.
    root = solution.inverse_root
    leverage = np.sum((measured[:, :-1] @ root) ** 2, axis=1).reshape(target.shape)
    return WeightedFit(solution.values, solution.covariance, leverage, condition)


def nonzero_columns(
    regressor: Float[np.ndarray, "rows channels parameters"],
) -> np.ndarray:
    """Which parameters the rows depend on at all."""
    size = np.linalg.norm(regressor.reshape(-1, regressor.shape[2]), axis=0)
    return np.asarray(size > _SMALLEST_COLUMN * max(float(size.max()), 1e-300))


def with_unused(values: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Spread a vector or matrix over all parameters, NaN where one is not used."""
    full = np.full((used.size,) * values.ndim, np.nan)
    full[np.ix_(*[used] * values.ndim)] = values
    return full


def common_bias(rows: int, channels: int) -> Float[np.ndarray, "rows channels _"]:
    """Columns of one unknown zero for every channel."""
    return np.broadcast_to(np.eye(channels), (rows, channels, channels))


def residual_bias(
    rows: RegressionRows, bias: Bias, values: Float[np.ndarray, " parameters"]
) -> Float[np.ndarray, "segments channels"]:
    """Zero of every channel: mean residual of each segment, of all, or none."""
    shape = (len(rows.starts), len(rows.channels))
    if bias == "none":
        return np.zeros(shape)
    used = np.isfinite(values)
    residual = rows.target - rows.regressor[:, :, used] @ values[used]
    if bias == "common":
        return np.tile(residual.mean(axis=0), (shape[0], 1))
    return np.stack([residual[part].mean(axis=0) for part in rows.segments])


def _biases(
    rows: RegressionRows,
    bias: Bias,
    width: int,
    values: np.ndarray,
    covariance: np.ndarray,
    noise: NoiseModel,
) -> tuple[np.ndarray, np.ndarray]:
    """Zero of the sensor, on average over each segment, and its standard deviation."""
    shape = (len(rows.starts), len(rows.channels))
    if bias == "none":
        return np.zeros(shape), np.zeros(shape)
    if bias == "common":  # it was a column of the regression
        std = np.sqrt(np.diag(covariance)[width:])
        return np.broadcast_to(values[width:], shape), np.broadcast_to(std, shape)
    used = np.isfinite(values)
    inner = covariance[np.ix_(used, used)]
    variances = []
    for part in rows.segments:
        mean = rows.regressor[part][:, :, used].mean(axis=0)
        by_values = np.einsum("cp,pq,cq->c", mean, inner, mean)
        # White noise averages out over the segment; drift is part of its mean zero.
        own = noise.strengths[:, 1] / (part.stop - part.start)
        variances.append(by_values + own)
    return residual_bias(rows, bias, values), np.sqrt(np.stack(variances))
