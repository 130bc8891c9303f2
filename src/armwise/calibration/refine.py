"""Refinement of a calibration: Levenberg-Marquardt, weights from residuals, covariance.

`descend` minimises the projected residual from one starting point; `refine` repeats it
on all samples, each joint weighted by its own residual; `covariance_of` says how far to
trust the result, by a delete-a-stretch jackknife.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.variable_projection import (
    ProjectedProblem,
    Projector,
    SensorPoint,
)
from armwise.regression import STRETCHES, jackknife_covariance

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float

    from armwise.recordings import Samples

_MOST_STEPS = 60
"""Steps of one descent. Ten to twenty are enough near a solution; a descent that needs
more is in a flat region that another start will reach better."""

_LONGEST_STEP = 0.5
"""Longest step of an offset in [rad], and of a gain relative to itself: half a radian
is where a cosine's linearisation is off by an eighth."""

_MOST_WEIGHTINGS = 12
"""Rounds of weighting joints by their own residuals; about four are needed."""


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """Prior of the unknowns: normal about a point, with standard deviations `std`."""

    point: SensorPoint
    std: Float[np.ndarray, " unknowns"]

    def residual(self, point: SensorPoint) -> Float[np.ndarray, " unknowns"]:
        """Difference of a point from its mean, in standard deviations."""
        difference = point.difference(self.point)
        return np.asarray(difference[difference.size - self.std.size :] / self.std)


def descend(
    projector: Projector,
    start: SensorPoint,
    is_sought: Bool[np.ndarray, " unknowns"],
    prior: GaussianPrior | None = None,
    tolerance: float = 1e-9,
    is_outside: Callable[[SensorPoint], bool] | None = None,
) -> ProjectedProblem:
    """Minimise the projected cost by Levenberg-Marquardt from a starting point.

    Args:
        projector: Poses the problem at each point.
        start: Where to begin.
        is_sought: Which unknowns to move.
        prior: Prior of the unknowns.
        tolerance: Relative decrease of the cost at which it has converged.
        is_outside: Ends the descent as soon as it is true of a point.
    """
    now, damping = projector.at(start), 1e-3
    cost = now.cost + _prior_cost(prior, start)
    for _ in range(_MOST_STEPS):
        step = _step(now, damping, is_sought, prior)
        point = now.point.moved(step)
        cost_there = projector.cost(point) + _prior_cost(prior, point)
        # Damping falls by 5 where the linearisation fits, and rises by 6 where it does
        # not: unequal, so that the two cannot alternate for ever.
        if cost_there < cost:
            decrease = (cost - cost_there) / cost
            now, cost = projector.at(point), cost_there
            damping = max(damping * 0.2, 1e-9)
            if is_outside is not None and is_outside(point):
                break
            # A small decrease under strong damping only says that steps are short.
            if decrease < tolerance and damping < 1e-4:
                break
        else:
            damping *= 6.0
            if damping > 1e6 or np.max(np.abs(step)) < 1e-10:
                break
    return now


def _prior_cost(prior: GaussianPrior | None, point: SensorPoint) -> float:
    return 0.0 if prior is None else float(np.sum(prior.residual(point) ** 2))


def _step(
    now: ProjectedProblem,
    damping: float,
    is_sought: np.ndarray,
    prior: GaussianPrior | None,
) -> np.ndarray:
    """Damped Gauss-Newton step, columns scaled to one (Marquardt's scaling)."""
    J, r = now.jacobian, now.residual
    if prior is not None:
        J = np.vstack([J, np.diag(1.0 / prior.std)])
        r = np.concatenate([r, -prior.residual(now.point)])
    J = J[:, is_sought]
    size = np.linalg.norm(J, axis=0)
    size[size == 0.0] = 1.0
    scaled = np.vstack([J / size, np.sqrt(damping) * np.eye(size.size)])
    target = np.concatenate([r, np.zeros(size.size)])
    step = np.zeros(is_sought.size)
    step[is_sought] = np.linalg.lstsq(scaled, target, rcond=None)[0] / size
    longest = float(np.max(np.abs(step), initial=0.0))
    return step if longest <= _LONGEST_STEP else step * (_LONGEST_STEP / longest)


def refine(
    projector: Projector,
    start: SensorPoint,
    is_free: Bool[np.ndarray, " unknowns"],
    prior: GaussianPrior,
) -> tuple[ProjectedProblem, Projector]:
    """Descend on all samples, weights and solution in turn (iterated reweighting).

    Args:
        projector: With all samples.
        start: Near the solution.
        is_free: Which unknowns may move.
        prior: Prior of the unknowns.

    Returns:
        The solution, and the projector with the weights it was computed with.
    """
    repeats = np.sqrt(independent_repeats(projector.sensed))
    now = projector.at(start)
    for _ in range(_MOST_WEIGHTINGS):
        before = projector.torque_std
        projector = projector.weighted(repeats * projector.residual_std(now))
        now = descend(projector, now.point, is_free, prior)
        if np.allclose(projector.torque_std, before, rtol=1e-4):
            break
    return now, projector


def independent_repeats(sensed: Samples) -> float:
    """Filtered samples per independent one: sampling rate over Nyquist's rate.

    Without it the prior would weigh too little beside samples that repeat each other.
    """
    bandwidth = sensed.preparation.torque_bandwidth_hz
    if bandwidth is None:
        return 1.0
    return max(1.0, sensed.rate_hz / (2.0 * bandwidth))


def covariance_of(
    projector: Projector,
    solution: ProjectedProblem,
    is_sought: Bool[np.ndarray, " unknowns"],
    prior: GaussianPrior,
    stretches: int = STRETCHES,
) -> Float[np.ndarray, "unknowns unknowns"]:
    """Covariance of the unknowns; NaN for those that were not sought.

    Residuals are correlated in time (filters, model errors): the delete-a-stretch
    jackknife of `regression`, applied to the linearised problem of linear and other
    unknowns together. The prior is one more independent source of information, whose
    pull has a variance of its own: it adds H⁻¹ P H⁻¹, P the prior's information.

    Args:
        projector: With the weights of the solution.
        solution: The refined solution.
        is_sought: Which unknowns were estimated.
        prior: Prior of the unknowns.
        stretches: How many are deleted in turn.
    """
    is_kept = np.concatenate([np.ones(solution.linear, dtype=bool), is_sought])
    R = solution.factor[:, :-1][:, is_kept]
    size = np.linalg.norm(R, axis=0)
    size[size == 0.0] = 1.0
    precision = [np.zeros(solution.linear), prior.std[is_sought] ** -2.0]
    prior_information = np.diag(np.concatenate(precision) / size**2)
    root = _inverse_root((R / size).T @ (R / size) + prior_information)
    scores, information = _stretch_sums(projector, solution, is_kept, size, stretches)
    scaled = jackknife_covariance(scores, root.T @ information @ root, root)
    prior_pull = root @ root.T @ prior_information
    scaled += prior_pull @ root @ root.T
    inner = scaled / np.outer(size, size)
    full = np.full((is_sought.size, is_sought.size), np.nan)
    full[np.ix_(is_sought, is_sought)] = inner[solution.linear :, solution.linear :]
    return full


def _inverse_root(H: np.ndarray) -> Float[np.ndarray, "unknowns determined"]:
    """G with G Gᵀ = H⁻¹, without the directions that nothing determines."""
    values, vectors = np.linalg.eigh(H)
    # Normal equations resolve 1e-13 of the largest eigenvalue, columns scaled to one.
    is_determined = values > 1e-13 * values.max()
    return np.asarray(vectors[:, is_determined] / np.sqrt(values[is_determined]))


def _stretch_sums(
    projector: Projector,
    solution: ProjectedProblem,
    is_kept: np.ndarray,
    size: np.ndarray,
    stretches: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores Aᵀr and information AᵀA of each stretch, columns scaled."""
    parameters, samples = projector.model(solution), len(projector.sensed)
    edges = np.linspace(0, samples, min(stretches, samples) + 1).astype(int)
    parts = [slice(int(a), int(b)) for a, b in pairwise(edges)]
    scores, information = [], []
    for Y, tau, rows in projector.blocks(solution.point, parts):
        J = projector.slopes(parameters, solution.point, rows)
        columns = np.concatenate([Y, J], axis=2)[:, :, is_kept] / size
        A = columns.reshape(-1, size.size)
        scores.append(A.T @ (tau - Y @ solution.values).reshape(-1))
        information.append(A.T @ A)
    return np.array(scores), np.array(information)
