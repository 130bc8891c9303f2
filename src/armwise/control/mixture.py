"""Mixture compensators: adaptive feedforward without a model (`mitchell1997` ch. 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.gains import apply_feedback, feedback_gain
from armwise.control.gating import Gating
from armwise.control.update_law import UpdateLaw, outside_dead_band
from armwise.control.velocity import VelocitySource

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class MixtureCompensator:
    """τ = −K_d s + Σ g_i(q) (A_i q̈_r + B_i q̇_r): linear experts, softly switched.

    With Φ = [g_1 φ, g_2 φ, …], φ = (q̈_r, q̇_r), the torque is −K_d s + W Φ. The
    gradient rule is Ẇ = −η s Φᵀ; the recursive one Ẇ = −s (P Φ)ᵀ, Ṗ = −P Φ Φᵀ P.

    Args:
        gating: Where each expert speaks.
        rate: Λ in [1/s], s = ė + Λ e.
        kd: K_d in [N m s/rad].
        law: The gradient rule (η is its gain) or least squares (P starts at its gain).
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        gating: Gating,
        rate: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        cutoff_hz: float = 60.0,
    ) -> None:
        self.gating = gating
        self.rate = feedback_gain(rate, "rate")
        self.kd = feedback_gain(kd, "kd")
        self.law = law
        self._velocity = VelocitySource(cutoff_hz)
        self._period = 0.0
        self.weights = np.zeros((0, 0, 0))
        self.gain = np.zeros(())
        self.stopped = np.zeros(0, dtype=bool)

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        dof = self.gating.centers.shape[1]
        size = 2 * dof * self.gating.experts
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
        e, ed = q - reference.q, qd - reference.qd
        qdr = reference.qd - apply_feedback(self.rate, e)
        qddr = reference.qdd - apply_feedback(self.rate, ed)
        s = qd - qdr
        features = self._features(q, qdr, qddr)
        tau: np.ndarray = (self.weights @ features[..., None])[..., 0]
        tau -= apply_feedback(self.kd, s)
        self._learn(features, s)
        return tau

    def _features(
        self, q: np.ndarray, qdr: np.ndarray, qddr: np.ndarray
    ) -> Float[np.ndarray, "batch features"]:
        local = np.concatenate([qddr, qdr], axis=-1)
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
        if self.law.adapts_gain:
            self.gain = self.law.next_gain(
                self.gain, features[..., None, :], self._period
            )
        if not np.abs(moved).max() <= 1e6:
            bad = ~(np.abs(moved).max(axis=(-2, -1)) <= 1e6)
            self.stopped |= bad
            moved = np.where(bad[:, None, None], self.weights, moved)
        self.weights = moved

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        own = {"weights": self.weights, "gain": self.gain, "stopped": self.stopped}
        return {k: v.copy() for k, v in own.items()} | self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self.weights = np.array(state["weights"])
        self.gain = np.array(state["gain"])
        self.stopped = np.array(state["stopped"])
        self._velocity.restore(state)
