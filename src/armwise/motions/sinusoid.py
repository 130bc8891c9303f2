"""One cosine per joint, among them `mitchell1997`'s Eq. 3.38 and 3.39."""

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
class Sinusoid:
    """q = center + amplitude cos(ω t + phase), each joint with its own numbers.

    Attributes:
        center: Middle positions in [rad] or [m].
        amplitude: In [rad] or [m]; its sign counts.
        omega: Angular frequencies ω in [rad/s].
        duration: How long it lasts in [s].
        phase: In [rad].
    """

    center: Float[np.ndarray, " dof"]
    amplitude: Float[np.ndarray, " dof"]
    omega: Float[np.ndarray, " dof"]
    duration: float
    phase: Float[np.ndarray, " dof"] | float = 0.0

    def __post_init__(self) -> None:
        center = joint_vector(self.center, "center")
        object.__setattr__(self, "center", center)
        for name in ("amplitude", "omega", "phase"):
            values = joint_vector(getattr(self, name), name, center.size)
            object.__setattr__(self, name, values)
        duration = require_positive(self.duration, "duration")
        object.__setattr__(self, "duration", duration)

    @classmethod
    def rising(
        cls, alpha: ArrayLike, beta: ArrayLike, omega: ArrayLike, duration: float
    ) -> Sinusoid:
        """Every joint as α + β (1 − cos ω t): from rest at α (Eq. 3.38)."""
        alpha, beta = np.atleast_1d(alpha), np.atleast_1d(beta)
        return cls(alpha + beta, -beta, np.asarray(omega), duration)

    @classmethod
    def mitchell(
        cls,
        alpha: ArrayLike = (0.0, 0.0),
        beta: ArrayLike = (1.33, 0.75),
        omega: ArrayLike = (0.75 * np.pi, 2.0 * np.pi),
        duration: float = 10.0,
    ) -> Sinusoid:
        """`mitchell1997`'s task: α1 + β1 (1 − cos ω1 t) and α2 + β2 cos ω2 t."""
        alpha = np.asarray(alpha, dtype=float)
        lift = np.array([1.0, 0.0]) * beta
        sign = np.array([-1.0, 1.0]) * beta
        return cls(alpha + lift, sign, np.asarray(omega), duration)

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.center.size

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        angle = times[..., None] * self.omega + self.phase
        swing = self.amplitude * np.cos(angle)
        qd = -self.amplitude * self.omega * np.sin(angle)
        qdd = -(self.omega**2) * swing
        return at_rest_outside(self.center + swing, qd, qdd, moving)
