"""The last digits: all samples, every joint weighed by what is left of its torque."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.descent import Prior, descend
from armwise.calibration.point import Point
from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector
from armwise.calibration.uncertainty import torque_errors
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Bool

_ROUNDS = 12
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
    for _ in range(_ROUNDS):
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
