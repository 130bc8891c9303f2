"""The last digits: all samples, every joint weighed by what is left of its torque."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.search_region import Domain, Point
from armwise.calibration.variable_projection import Projected, Projector
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


# Down into a valley: Levenberg and Marquardt on what no parameters explain.

_ROUNDS = 60
"""Most steps of one descent."""

_LONGEST = 0.5
"""Longest step of an offset in [rad], and of a gain relative to itself."""


@dataclass(frozen=True, eq=False)
class Prior:
    """What was believed beforehand: unknowns lie about `std` from a point."""

    point: Point
    std: Float[np.ndarray, " unknowns"]

    def residual(self, point: Point) -> Float[np.ndarray, " unknowns"]:
        """How far a point is from it, in standard deviations."""
        away = point.away(self.point)
        return np.asarray(away[away.size - self.std.size :] / self.std)


def descend(
    projector: Projector,
    start: Point,
    is_sought: Bool[np.ndarray, " unknowns"],
    prior: Prior | None = None,
    tolerance: float = 1e-9,
    domain: Domain | None = None,
) -> Projected:
    """Follow Levenberg and Marquardt down from a starting point.

    Args:
        projector: Makes the problem at each point.
        start: Where to begin.
        is_sought: Which unknowns to move.
        prior: What is believed of them.
        tolerance: Relative gain in cost below which it has arrived.
        domain: It ends outside of this, too.
    """
    now, damping = projector.at(start), 1e-3
    height = now.cost + _believed(prior, start)
    for _ in range(_ROUNDS):
        step = _step(now, damping, is_sought, prior)
        point = now.point.moved(step)
        after = projector.cost(point) + _believed(prior, point)
        if after < height:
            gained = (height - after) / height
            now, height = projector.at(point), after
            damping = max(damping * 0.2, 1e-9)
            if domain is not None and domain.defect(point) is not None:
                break
            if gained < tolerance and damping < 1e-4:
                break
        else:
            damping *= 6.0
            if damping > 1e6 or np.max(np.abs(step)) < 1e-10:
                break
    return now


def _believed(prior: Prior | None, point: Point) -> float:
    return 0.0 if prior is None else float(np.sum(prior.residual(point) ** 2))


def _step(
    now: Projected, damping: float, is_sought: np.ndarray, prior: Prior | None
) -> np.ndarray:
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
    return step if longest <= _LONGEST else step * (_LONGEST / longest)


# How far to trust a calibration: from what each stretch of motion would change.

_STRETCHES = 40
"""Stretches of a recording whose errors are taken as independent of each other."""


def torque_errors(projector: Projector, found: Projected) -> Float[np.ndarray, " dof"]:
    """What is left of each joint's torque in [N m] or [N], root mean square."""
    total = np.zeros(projector.sensed.dof)
    for Y, tau, _ in projector.blocks(found.point):
        left = tau - Y @ found.values
        total += np.sum(left**2, axis=0)
    count = projector.sliding.heard(len(projector.sensed))
    std = np.sqrt(total / np.maximum(count, 1.0)) * projector.torque_std
    usual = np.sqrt(np.mean(projector.sensed.tau**2, axis=0))
    return np.maximum(std, 1e-9 * max(float(usual.max()), 1e-12))


def covariance_of(
    projector: Projector,
    found: Projected,
    is_sought: Bool[np.ndarray, " unknowns"],
    prior: Prior,
) -> Float[np.ndarray, "unknowns unknowns"]:
    """Covariance of the unknowns; NaN for those that were not sought.

    Residuals are correlated in time (filters, model errors), so each stretch of the
    recording is left out once: H⁻¹ (Σ g̃ g̃ᵀ) H⁻¹ with g̃ = (I − H_g H⁻¹)⁻¹ g, the pull
    of a stretch on linear and other unknowns alike, and H_g its information.
    """
    kept = np.concatenate([np.ones(found.linear, dtype=bool), is_sought])
    R = found.factor[:, :-1][:, kept]
    size = np.linalg.norm(R, axis=0)
    size[size == 0.0] = 1.0
    believed = np.concatenate([np.zeros(found.linear), prior.std[is_sought] ** -2.0])
    believed = np.diag(believed / size**2)
    H = (R / size).T @ (R / size) + believed
    inverse = np.linalg.pinv(H, rcond=1e-13, hermitian=True)
    total = believed.copy()
    for pull, information in _stretches(projector, found, kept, size):
        left = np.eye(size.size) - information @ inverse
        pushed = np.linalg.lstsq(left, pull, rcond=1e-6)[0]
        total += np.outer(pushed, pushed)
    inner = inverse @ total @ inverse / np.outer(size, size)
    full = np.full((is_sought.size, is_sought.size), np.nan)
    full[np.ix_(is_sought, is_sought)] = inner[found.linear :, found.linear :]
    return full


def _stretches(
    projector: Projector, found: Projected, kept: np.ndarray, size: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield each stretch's pull Aᵀr and information AᵀA, columns scaled."""
    model, samples = projector.model(found), len(projector.sensed)
    edges = np.linspace(0, samples, min(_STRETCHES, samples) + 1).astype(int)
    parts = [slice(int(a), int(b)) for a, b in pairwise(edges)]
    for Y, tau, rows in projector.blocks(found.point, parts):
        J = projector.slopes(model, found.point, rows)
        columns = np.concatenate([Y, J], axis=2)[:, :, kept] / size
        A = columns.reshape(-1, size.size)
        r = (tau - Y @ found.values).reshape(-1)
        yield A.T @ r, A.T @ A


# The last digits: all samples, every joint weighed by what is left of its torque.

_POLISH_ROUNDS = 12
"""Most rounds of weighing joints by their own residuals; four are usual."""


def polish(
    projector: Projector,
    start: Point,
    is_free: Bool[np.ndarray, " unknowns"],
    prior: Prior,
) -> tuple[Projected, Projector]:
    """Descend on all samples, again and again with better weights.

    Args:
        projector: With all samples.
        start: Near the solution.
        is_free: Which unknowns may move.
        prior: What is believed of them.

    Returns:
        The solution, and the projector with the weights it was found with.
    """
    repeats = np.sqrt(_repeats(projector.sensed))
    now = projector.at(start)
    for _ in range(_POLISH_ROUNDS):
        before = projector.torque_std
        projector = projector.weighted(repeats * torque_errors(projector, now))
        now = descend(projector, now.point, is_free, prior)
        if np.allclose(projector.torque_std, before, rtol=1e-4):
            break
    return now, projector


def _repeats(sensed: Samples) -> float:
    """How many filtered samples say what one independent sample would."""
    bandwidth = sensed.preparation.torque_bandwidth_hz
    if bandwidth is None:
        return 1.0
    return max(1.0, sensed.rate_hz / (2.0 * bandwidth))
