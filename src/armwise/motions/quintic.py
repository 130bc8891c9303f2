"""Minimum jerk from one posture to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.motions.motion import (
    MotionSample,
    at_rest_outside,
    inside,
    joint_vector,
    require_positive,
)

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Quintic:
    """The fifth-order polynomial that moves from rest to rest with least jerk.

    q = start + (10 s³ − 15 s⁴ + 6 s⁵)(end − start), s = t / duration.

    Attributes:
        start, end: Postures in [rad] or [m].
        duration: Time between them in [s].
    """

    start: Float[np.ndarray, " dof"]
    end: Float[np.ndarray, " dof"]
    duration: float

    def __post_init__(self) -> None:
        start = joint_vector(self.start, "start")
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", joint_vector(self.end, "end", start.size))
        duration = require_positive(self.duration, "duration")
        object.__setattr__(self, "duration", duration)

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.start.size

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        s = times[..., None] / self.duration
        way, rest = self.end - self.start, 1.0 - s
        # Measured from the nearer end, so that both ends are met to the last digit.
        q = np.where(s < 0.5, self.start + _path(s) * way, self.end - _path(rest) * way)
        speed = 30.0 * s**2 * rest**2 / self.duration
        acceleration = 60.0 * s * rest * (1.0 - 2.0 * s) / self.duration**2
        return at_rest_outside(q, speed * way, acceleration * way, moving)


def _path(s: np.ndarray) -> np.ndarray:
    path: np.ndarray = s**3 * (10.0 + s * (-15.0 + 6.0 * s))
    return path
