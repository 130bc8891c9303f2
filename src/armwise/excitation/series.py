"""Fourier series that begin and end at rest, as a linear map from free numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.excitation.bounds import Bounds
from armwise.motions import Fourier

if TYPE_CHECKING:
    from jaxtyping import Float

FEWEST, TYPICAL, MOST = 6, 10, 25
"""Fewest, typical and most harmonics: fewer leave parameters correlated, more cost time
and add hardly any information."""

# Judgement: a stiffer structure than an ordinary arm's would bear more.
FASTEST_HZ = 3.0
"""Highest frequency planned: structures ring and filters cut not far above it."""


@dataclass(frozen=True, eq=False)
class Basis:
    """What each coefficient adds to q, q̇ and q̈ at some instants.

    Attributes:
        q, qd, qdd: One row per instant; columns: 1, sines, cosines.
    """

    q: Float[np.ndarray, "times coefficients"]
    qd: Float[np.ndarray, "times coefficients"]
    qdd: Float[np.ndarray, "times coefficients"]

    def states(self, coefficients: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return q, q̇, q̈ of every joint, (times, dof) each."""
        parts = (self.q, self.qd, self.qdd)
        return tuple(np.ascontiguousarray(part @ coefficients) for part in parts)

    def gather(self, slopes: tuple[np.ndarray, ...]) -> np.ndarray:
        """Carry gradients by q, q̇, q̈ back to the coefficients."""
        by_q, by_qd, by_qdd = slopes
        gathered: np.ndarray = self.q.T @ by_q + self.qd.T @ by_qd + self.qdd.T @ by_qdd
        return gathered


@dataclass(frozen=True, eq=False)
class RestingSeries:
    """All series of one period that begin and end at rest without acceleration.

    q̇(0) = 0 and q̈(0) = 0 are linear in the amplitudes; the free numbers z of a joint
    are coordinates of what they leave, in units in which 1 is as far as the joint's
    limits allow.

    Attributes:
        bounds: Limits that set those units.
        period: How long one period lasts in [s].
        harmonics: Number of harmonics K.
    """

    bounds: Bounds
    period: float
    harmonics: int

    @cached_property
    def omega(self) -> Float[np.ndarray, " harmonics"]:
        """Angular frequency of each harmonic in [rad/s]."""
        return 2.0 * np.pi / self.period * np.arange(1, self.harmonics + 1)

    @property
    def free(self) -> int:
        """Free numbers per joint: the mean and two fewer than the amplitudes."""
        return 2 * self.harmonics - 1

    @cached_property
    def maps(self) -> Float[np.ndarray, "dof coefficients free"]:
        """Free numbers → coefficients (mean, sines, cosines), one matrix per joint."""
        K = self.harmonics
        maps = np.zeros((self.bounds.dof, 2 * K + 1, self.free))
        for j, reach in enumerate(self._reach()):
            maps[j, 0, 0] = self.bounds.half_range[j]
            # Amplitudes are reach · N z: Σ ω a = (ω reach)ᵀ N z vanishes for all z, and
            # q̇(0) with it. The cosines likewise, with ω² for q̈(0).
            maps[j, 1 : K + 1, 1:K] = reach[:, None] * _complement(self.omega * reach)
            squared = self.omega**2 * reach
            maps[j, K + 1 :, K:] = reach[:, None] * _complement(squared)
        return maps

    def _reach(self) -> Float[np.ndarray, "dof harmonics"]:
        """Largest amplitude of each harmonic alone, within all limits."""
        b = self.bounds
        fast = b.velocity[:, None] / self.omega
        hard = b.acceleration[:, None] / self.omega**2
        return np.minimum(np.minimum(b.half_range[:, None], fast), hard)

    def coefficients(self, z: np.ndarray) -> Float[np.ndarray, "coefficients dof"]:
        """Return mean, sines and cosines of each joint for free numbers (dof, free)."""
        coefficients: np.ndarray = np.einsum("jcf,jf->cj", self.maps, z)
        coefficients[0] += self.bounds.middle
        return coefficients

    def pull_back(self, slopes: np.ndarray) -> Float[np.ndarray, "dof free"]:
        """Carry a gradient by the coefficients back to the free numbers."""
        pulled: np.ndarray = np.einsum("jcf,cj->jf", self.maps, slopes)
        return pulled

    def basis(self, times: np.ndarray) -> Basis:
        """Return what the coefficients do at these times in [s]."""
        angle = times[:, None] * self.omega
        s, c, w = np.sin(angle), np.cos(angle), self.omega
        one, none = np.ones((len(times), 1)), np.zeros((len(times), 1))
        return Basis(
            np.hstack([one, s, c]),
            np.hstack([none, w * c, -w * s]),
            np.hstack([none, -(w**2) * s, -(w**2) * c]),
        )

    def motion(self, z: np.ndarray) -> Fourier:
        """Return the motion of free numbers z."""
        mean, *rows = self.coefficients(z)
        table = np.array(rows).T
        K = self.harmonics
        return Fourier(mean, table[:, :K], table[:, K:], 1.0 / self.period)


def choose_periods(bounds: Bounds, duration: float) -> int:
    """Repeat what is too long for the harmonics to reach the speeds allowed."""
    return max(1, round(duration * min(_corner_hz(bounds), FASTEST_HZ) / MOST))


def choose_harmonics(bounds: Bounds, period: float) -> int:
    """Take harmonics to an octave above where acceleration, not speed, is short."""
    harmonics = max(min(2.0 * _corner_hz(bounds), FASTEST_HZ) * period, TYPICAL)
    most = np.clip(FASTEST_HZ * period, FEWEST, MOST)
    return int(min(np.ceil(harmonics), most))


def _corner_hz(bounds: Bounds) -> float:
    """Frequency above which acceleration limits the fastest joint, not speed."""
    return float(np.max(bounds.acceleration / bounds.velocity)) / (2.0 * np.pi)


def _complement(normal: np.ndarray) -> Float[np.ndarray, "size size-1"]:
    """Orthonormal columns that span what is perpendicular to a vector."""
    # The remaining columns of a full Q are the orthogonal complement.
    full, _ = np.linalg.qr(normal[:, None], mode="complete")
    return np.asarray(full[:, 1:])
