"""What an online estimate believes before it has seen anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters
from armwise.errors import ArgumentError
from armwise.identification.load.estimate import LoadEstimate
from armwise.identification.load.uncertainty import SCALE

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

PRIOR_STD = np.array([5.0, 0.5, 0.5, 0.5, *[0.1] * 6])
"""How far a load may be from the prior before anything is known: [kg], [kg m], …."""


def six_numbers(values: ArrayLike, name: str) -> Float[np.ndarray, " 6"]:
    """Spread a pair for force and torque, or take six numbers."""
    array = np.asarray(values, dtype=float).ravel()
    six = np.repeat(array, 3) if array.size == 2 else np.broadcast_to(array, (6,))
    if not np.all(np.isfinite(six)) or np.any(six < 0):
        raise ArgumentError(f"{name} must be finite and not negative.")
    return six


def prior_belief(
    prior: InertialParameters | LoadEstimate | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of what is believed at first, scaled."""
    wide = np.diag((PRIOR_STD / SCALE) ** 2)
    if prior is None:
        return np.zeros(10), wide
    if isinstance(prior, InertialParameters):
        return prior.vector / SCALE, wide
    if not prior.is_complete:
        raise ArgumentError("A prior needs all ten parameters; this estimate has not.")
    return prior.parameters.vector / SCALE, prior.covariance / np.outer(SCALE, SCALE)
