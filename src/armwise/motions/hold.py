"""Staying put."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.motions.motion import (
    MotionSample,
    inside,
    joint_vector,
    require_positive,
)

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Hold:
    """One posture, held.

    Attributes:
        posture: Where in [rad] or [m].
        duration: For how long in [s].
    """

    posture: Float[np.ndarray, " dof"]
    duration: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "posture", joint_vector(self.posture, "posture"))
        duration = require_positive(self.duration, "duration")
        object.__setattr__(self, "duration", duration)

    @property
    def dof(self) -> int:
        """Number of joints it holds."""
        return self.posture.size

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, _ = inside(t, self.duration)
        q = np.tile(self.posture, (*times.shape, 1))
        return MotionSample(q, np.zeros_like(q), np.zeros_like(q))
