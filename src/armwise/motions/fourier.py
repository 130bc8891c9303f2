"""Periodic motion as a finite Fourier series: the usual excitation."""

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
class Fourier:
    """A finite Fourier series around a posture, repeated.

    q = q0 + Σ_k sine_k sin(2π k f t) + cosine_k cos(2π k f t), k = 1 … K: the mean
    over a period is q0. It begins and ends at rest only if its coefficients say so.

    Attributes:
        q0: The mean posture in [rad] or [m].
        sine, cosine: Amplitudes in [rad] or [m], one row per joint, harmonic k in
            column k − 1.
        frequency: Base frequency f in [Hz].
        periods: How many times it is repeated.
    """

    q0: Float[np.ndarray, " dof"]
    sine: Float[np.ndarray, "dof harmonics"]
    cosine: Float[np.ndarray, "dof harmonics"]
    frequency: float
    periods: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "q0", joint_vector(self.q0, "q0"))
        for name in ("sine", "cosine"):
            object.__setattr__(self, name, _amplitudes(getattr(self, name), self, name))
        if self.sine.shape != self.cosine.shape:
            raise ArgumentError(
                f"sine and cosine need the same number of harmonics, not "
                f"{self.sine.shape[1]} and {self.cosine.shape[1]}."
            )
        for name in ("frequency", "periods"):
            object.__setattr__(self, name, require_positive(getattr(self, name), name))

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.q0.size

    @property
    def harmonics(self) -> int:
        """Number of harmonics K."""
        return int(self.sine.shape[1])

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        return self.periods / self.frequency

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        omega = 2.0 * np.pi * self.frequency * np.arange(1, self.harmonics + 1)
        angle = times[..., None] * omega
        s, c = np.sin(angle), np.cos(angle)
        sine, cosine = self.sine.T, self.cosine.T
        q = self.q0 + s @ sine + c @ cosine
        qd = (c * omega) @ sine - (s * omega) @ cosine
        qdd = -(s * omega**2) @ sine - (c * omega**2) @ cosine
        return at_rest_outside(q, qd, qdd, moving)


def _amplitudes(values: ArrayLike, motion: Fourier, name: str) -> np.ndarray:
    array = np.array(values, dtype=float)
    if array.ndim != 2 or len(array) != motion.dof or array.shape[1] == 0:
        raise ArgumentError(
            f"{name} needs one row of amplitudes for each of the {motion.dof} joints; "
            f"it has the shape {array.shape}."
        )
    if not np.all(np.isfinite(array)):
        raise ArgumentError(f"An amplitude in {name} is not finite.")
    array.setflags(write=False)
    return array
