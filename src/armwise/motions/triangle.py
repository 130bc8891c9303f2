"""Triangular waves with a period of each joint's own (`astley1996`)."""

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
class Triangle:
    """Constant speed up and down between two positions of each joint.

    Corners are sharp (acceleration zero everywhere, undefined at the corner) unless
    `rounding` gives each corner a parabola.

    Attributes:
        center: Middle positions in [rad] or [m].
        amplitude: Distance from the middle to the corners of the sharp wave.
        period: Time of one cycle of each joint in [s].
        duration: How long it lasts in [s].
        phase: Part of a cycle already gone at t = 0; 0 is in the middle, rising.
        rounding: Time in [s] from the beginning of a parabola to its corner.
    """

    center: Float[np.ndarray, " dof"]
    amplitude: Float[np.ndarray, " dof"]
    period: Float[np.ndarray, " dof"]
    duration: float
    phase: Float[np.ndarray, " dof"] | float = 0.0
    rounding: float = 0.0

    def __post_init__(self) -> None:
        center = joint_vector(self.center, "center")
        object.__setattr__(self, "center", center)
        for name in ("amplitude", "period", "phase"):
            values = joint_vector(getattr(self, name), name, center.size)
            object.__setattr__(self, name, values)
        duration = require_positive(self.duration, "duration")
        object.__setattr__(self, "duration", duration)
        if np.any(self.period <= 0):
            raise ArgumentError("Every period must be positive.")
        if not 0.0 <= self.rounding <= self.period.min() / 4.0:
            raise ArgumentError(
                "rounding must lie between 0 and a quarter of the shortest period "
                f"({self.period.min() / 4.0:g} s), not {self.rounding:g} s."
            )

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.center.size

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        cycles = times[..., None] / self.period + self.phase
        # Time since the nearest corner: the upper one is a quarter cycle in.
        half = np.floor(2.0 * cycles)
        side = 1.0 - 2.0 * np.mod(half, 2.0)
        since = (cycles - 0.5 * half - 0.25) * self.period
        speed = side * 4.0 * self.amplitude / self.period
        q = self.center + side * self.amplitude - speed * np.abs(since)
        qd, qdd = -speed * np.sign(since), np.zeros_like(q)
        if self.rounding > 0.0:
            b = self.rounding
            near = np.abs(since) < b
            q = np.where(near, q - speed * 0.5 * (b - np.abs(since)) ** 2 / b, q)
            qd = np.where(near, -speed * since / b, qd)
            qdd = np.where(near, -speed / b, qdd)
        return at_rest_outside(q, qd, qdd, moving)
