"""Straight lines with bell-shaped speed (`mitchell1997` Eq. 3.40–3.43)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
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
class Sigmoid:
    """From one posture to another along σ̇ = λ σ (1 − σ), q = start + σ (end − start).

    It begins at σ = sigma0 and ends at 1 − sigma0, so it lasts 2 ln(1/sigma0 − 1) / λ;
    the fastest moment is halfway, at λ/4 (end − start).

    Attributes:
        start, end: Postures in [rad] or [m].
        rate: λ in [1/s].
        sigma0: How much of the way is already behind at t = 0, and left at the end.
    """

    start: Float[np.ndarray, " dof"]
    end: Float[np.ndarray, " dof"]
    rate: float
    sigma0: float = 1e-3

    def __post_init__(self) -> None:
        start = joint_vector(self.start, "start")
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", joint_vector(self.end, "end", start.size))
        object.__setattr__(self, "rate", require_positive(self.rate, "rate"))
        if not 0.0 < self.sigma0 < 0.5:
            raise ArgumentError(
                f"sigma0 must lie between 0 and 0.5, not {self.sigma0!r}."
            )

    @classmethod
    def lasting(
        cls, start: ArrayLike, end: ArrayLike, duration: float, sigma0: float = 1e-3
    ) -> Sigmoid:
        """Choose λ so that the motion lasts this long in [s]."""
        duration = require_positive(duration, "duration")
        rate = 2.0 * np.log(1.0 / sigma0 - 1.0) / duration
        return cls(np.asarray(start), np.asarray(end), float(rate), sigma0)

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.start.size

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        return float(2.0 * np.log(1.0 / self.sigma0 - 1.0) / self.rate)

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        since_half = times[..., None] - 0.5 * self.duration
        sigma = 1.0 / (1.0 + np.exp(-self.rate * since_half))
        way = self.end - self.start
        bell = self.rate * sigma * (1.0 - sigma)
        q = self.start + sigma * way
        qdd = self.rate * bell * (1.0 - 2.0 * sigma) * way
        return at_rest_outside(q, bell * way, qdd, moving)
