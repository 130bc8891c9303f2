"""Mixture compensators: adaptive feedforward without a model (`mitchell1997` ch. 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptation import (
    LEAK_RATE,
    UpdateLaw,
    outside_dead_band,
    require_positive_definite,
)
from armwise.control.feedback import (
    VelocitySource,
    apply_feedback,
    feedback_gain,
    restored,
    sliding_reference,
)
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


# Soft partitions of joint space (`mitchell1997` Eq. 3.13).


@dataclass(frozen=True, eq=False)
class Gating:
    """Normalised Gaussians g_i(q) = exp(−‖q − c_i‖²/2σ²)/Z, which add up to one.

    Attributes:
        centers: c_i, one row per expert, in [rad] or [m].
        width: σ in [rad] or [m]; small widths make hard borders.
    """

    centers: Float[np.ndarray, "experts dof"]
    width: float

    def __post_init__(self) -> None:
        centers = np.atleast_2d(np.asarray(self.centers, dtype=float))
        object.__setattr__(self, "centers", centers)
        if not (self.width > 0 and np.all(np.isfinite(centers))):
            raise ArgumentError("Gating needs finite centres and a positive width.")

    @classmethod
    def over(
        cls, lower: ArrayLike, upper: ArrayLike, experts: int, overlap: float = 0.5
    ) -> Gating:
        """Spread any number of experts evenly over a box of joint space.

        The box is halved along its longest side until each part has one expert.

        Args:
            lower, upper: Corners of the box in [rad] or [m].
            experts: How many.
            overlap: Width σ as a fraction of a part's mean side.
        """
        low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        if experts < 1 or low.shape != high.shape or np.any(high <= low):
            raise ArgumentError(
                "Gating needs at least one expert and a box with lower < upper."
            )
        centers = np.array(_halve(low, high, experts))
        side = float((np.prod(high - low) / experts) ** (1.0 / low.size))
        return cls(centers, overlap * side)

    @property
    def experts(self) -> int:
        """Number of experts."""
        return int(self.centers.shape[0])

    def weights(self, q: Float[np.ndarray, "... dof"]) -> Float[np.ndarray, "... g"]:
        """How far each expert is responsible at q; the last axis adds up to one."""
        # One expert is a plain linear compensator: no exponentials.
        if self.experts == 1:
            return np.ones((*q.shape[:-1], 1))
        away = q[..., None, :] - self.centers
        exponent: np.ndarray = np.einsum("...i,...i->...", away, away)
        exponent *= -0.5 / self.width**2
        # Far from every centre all would underflow; the nearest one sets the scale.
        exponent -= exponent.max(axis=-1, keepdims=True)
        np.exp(exponent, out=exponent)
        exponent /= exponent.sum(axis=-1, keepdims=True)
        return exponent


def _halve(low: np.ndarray, high: np.ndarray, count: int) -> list[np.ndarray]:
    if count == 1:
        return [0.5 * (low + high)]
    first = count // 2
    axis = int(np.argmax(high - low))
    # Proportional to the experts on each side, so that parts stay equal.
    border = low[axis] + (high - low)[axis] * first / count
    middle_high, middle_low = high.copy(), low.copy()
    middle_high[axis] = middle_low[axis] = border
    return [
        *_halve(low, middle_high, first),
        *_halve(middle_low, high, count - first),
    ]


# Compensators (`mitchell1997` ch. 3).

_LARGEST_WEIGHT = 1e6
"""Weights in [kg m²] and [N m s/rad] beyond this are a runaway, no learning."""

# Judgement: feedback is designed for the arm it moves, so that what its experts should
# learn is of its own order; twice this reach, the default, is ten times that.
_REACH = 5.0
"""Weights from which on they leak back, in multiples of the law's reach and of what the
feedback itself does: K_d/Λ with accelerations, K_d with speeds, K_d Λ at rest. Experts
far beyond it answer an error of speed before K_d does, which no loop survives."""


class MixtureCompensator:
    """τ = −K_d s + Σ g_i(q) (A_i q̈_r + B_i q̇_r + c_i): linear experts, softly switched.

    With Φ = [g_1 φ, g_2 φ, …], φ = (q̈_r, q̇_r, 1), the torque is −K_d s + W Φ. The
    gradient rule is Ẇ = −η s Φᵀ; the recursive one Ẇ = −s (P Φ)ᵀ, Ṗ = −P Φ Φᵀ P.
    Weights far beyond the feedback's own size leak back (switching σ-modification, as
    in `Adaptation`): what no expert explains, friction or noise, would else drive them
    until the loop is unstable.

    Args:
        gating: Where each expert speaks.
        rate: Λ in [1/s], s = ė + Λ e.
        kd: K_d in [N m s/rad].
        law: The gradient rule (η is its gain) or least squares (P starts at its gain),
            without forgetting.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
        static: Whether experts have a constant c_i too (§3.4.2): without it nothing
            holds an arm at rest against gravity.
    """

    def __init__(
        self,
        gating: Gating,
        rate: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        cutoff_hz: float = 60.0,
        static: bool = False,
    ) -> None:
        self.static = static
        self.gating = gating
        self.rate = feedback_gain(rate, "rate")
        self.kd = feedback_gain(kd, "kd")
        # An expert that is seldom asked has forgotten everything but its own gain: what
        # friction and noise then teach it is negative inertia, and the arm runs away
        # (10 to 30 minutes of the two-link arm of studies.endurance).
        if law.forgetting:
            raise ArgumentError(
                "Experts must not forget: what is seldom visited would be learnt anew "
                "from noise, until the arm runs away. Take the gradient rule or least "
                "squares."
            )
        self.law = law
        self._velocity = VelocitySource(cutoff_hz)
        self._period = 0.0
        self.weights = np.zeros((0, 0, 0))
        self.gain = np.zeros(())
        self.stopped = np.zeros(0, dtype=bool)
        self._largest = self._reach()

    def _reach(self) -> Float[np.ndarray, "dof features"]:
        """Size of each weight from which on it leaks back."""
        dof = self.gating.centers.shape[1]

        def strength(gain: np.ndarray) -> np.ndarray:
            own = np.diag(gain) if gain.ndim == 2 else gain
            return np.broadcast_to(np.abs(own), (dof,))

        kd, rate = strength(self.kd), np.maximum(strength(self.rate), 1e-12)
        local = [kd / rate] * dof + [kd] * dof + [kd * rate] * self.static
        reach = _REACH * self.law.reach
        return np.asarray(reach * np.tile(np.stack(local, axis=1), self.gating.experts))

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        dof = self.gating.centers.shape[1]
        size = (2 * dof + self.static) * self.gating.experts
        self._period = period
        self._velocity.reset(period)
        self.weights = np.zeros((batch, dof, size))
        self.gain = self.law.initial_gain(size, (batch,))
        self.stopped = np.zeros(batch, dtype=bool)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        qdr, qddr = sliding_reference(self.rate, reference, q, qd)
        s = qd - qdr
        features = self._features(q, qdr, qddr)
        tau: np.ndarray = (self.weights @ features[..., None])[..., 0]
        tau -= apply_feedback(self.kd, s)
        self._learn(features, s)
        return tau

    def _features(
        self, q: np.ndarray, qdr: np.ndarray, qddr: np.ndarray
    ) -> Float[np.ndarray, "batch features"]:
        parts = [qddr, qdr] + ([np.ones((*q.shape[:-1], 1))] if self.static else [])
        local = np.concatenate(parts, axis=-1)
        g = self.gating.weights(q)
        spread: np.ndarray = g[..., :, None] * local[..., None, :]
        return spread.reshape(q.shape[0], -1)

    def _learn(self, features: np.ndarray, s: np.ndarray) -> None:
        s = outside_dead_band(s, self.law.dead_band) * -self._period
        if self.gain.ndim < 2:
            direction = self.gain * features
        else:
            direction = (self.gain @ features[..., None])[..., 0]
        moved = self.weights + s[..., :, None] * direction[..., None, :]
        beyond = np.abs(self.weights) / self._largest - 1.0
        if beyond.max(initial=0.0) > 0.0:
            leak = np.clip(beyond, 0.0, 1.0) * (LEAK_RATE * self._period)
            moved -= leak * self.weights
        if self.law.adapts_gain:
            self.gain = self.law.next_gain(
                self.gain, features[..., None, :], self._period
            )
        # One comparison catches both NaN and a runaway.
        if not np.abs(moved).max() <= _LARGEST_WEIGHT:
            bad = ~(np.abs(moved).max(axis=(-2, -1)) <= _LARGEST_WEIGHT)
            self.stopped |= bad
            moved = np.where(bad[:, None, None], self.weights, moved)
        self.weights = moved

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        own = {"weights": self.weights, "gain": self.gain, "stopped": self.stopped}
        return {k: v.copy() for k, v in own.items()} | self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        weights = restored(state, "weights", self.weights.shape, _LARGEST_WEIGHT)
        gain = restored(state, "gain", self.gain.shape, np.finfo(float).max)
        require_positive_definite(gain)
        stopped = restored(state, "stopped", self.stopped.shape).astype(bool)
        self._velocity.restore(state, weights.shape[:2])
        self.weights, self.gain, self.stopped = weights, gain, stopped
