"""Down into a valley: Levenberg and Marquardt on what no parameters explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.domain import Domain
from armwise.calibration.point import Point
from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

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
