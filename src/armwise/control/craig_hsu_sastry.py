"""Adaptive computed torque of Craig, Hsu and Sastry, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptation import Projection
from armwise.control.adaptive_controller import AdaptiveController
from armwise.control.adaptive_model import AdaptiveModel
from armwise.control.gains import apply_feedback, feedback_gain
from armwise.control.parameter_set import ParameterSet
from armwise.control.update_law import UpdateLaw

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class CraigHsuSastry(AdaptiveController):
    """τ = M̂ (q̈_d + K_v ė + K_p e) + ĉ, â' = Γ Yᵀ(q, q̇, q̈) M̂⁻¹ (ė + Ψ e), e = q_d − q.

    It needs accelerations, differenced here from velocities, and the inverse of the
    estimated mass matrix, so the first estimate must be roughly right; where M̂ is
    too close to singular it does not learn.

    Args:
        parameters: What is adapted, of which arm.
        kp: K_p in [1/s²]: a number, one per joint, or a matrix.
        kd: K_v in [1/s].
        law: How errors move parameters.
        initial: First estimate.
        mixing: Ψ in [1/s]; half of K_v is safe.
        projection: What the estimate may be.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        kp: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        initial: Float[np.ndarray, " p"],
        mixing: float,
        projection: Projection | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        model = AdaptiveModel(parameters, law, initial, projection)
        super().__init__(model, cutoff_hz)
        self.kp = feedback_gain(kp, "kp")
        self.kd = feedback_gain(kd, "kd")
        feedback_gain(mixing, "mixing")
        self.mixing = mixing
        self._last_qd: np.ndarray | None = None

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        super().reset(batch, period)
        self._last_qd = None

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        e, ed = reference.q - q, reference.qd - qd
        wanted = reference.qdd + apply_feedback(self.kd, ed)
        wanted = wanted + apply_feedback(self.kp, e)
        dynamics = self.model.dynamics
        if self._last_qd is not None:
            qdd = (qd - self._last_qd) / self.model.period
            Y = self.model.select(dynamics.regressor(q, qd, qdd))
            self._learn(q, Y, ed + self.mixing * e)
        self._last_qd = np.array(qd)
        return self.model.torque(self.model.select(dynamics.regressor(q, qd, wanted)))

    def _learn(self, q: np.ndarray, Y: np.ndarray, error: np.ndarray) -> None:
        M = self._mass_matrix(q)
        poor = np.linalg.cond(M) > 1e6
        M[poor] = np.eye(M.shape[-1])
        # The law moves against its error; this rule has e = q_d − q.
        s = -np.linalg.solve(np.swapaxes(M, -1, -2), error[..., None])[..., 0]
        self.model.adaptation.track(Y, s, self.model.period, poor)

    def _mass_matrix(self, q: np.ndarray) -> Float[np.ndarray, "batch dof dof"]:
        """M̂ from the estimate: column j is what a unit acceleration of joint j adds."""
        n = q.shape[-1]
        posture = np.repeat(q[:, None, :], n + 1, axis=1)
        still = np.zeros_like(posture)
        qdd = np.concatenate([np.zeros((1, n)), np.eye(n)])
        qdd = np.broadcast_to(qdd, posture.shape).copy()
        Y = self.model.select(self.model.dynamics.regressor(posture, still, qdd))
        tau: np.ndarray = (Y @ self.estimate[:, None, :, None])[..., 0]
        return np.swapaxes(tau[:, 1:] - tau[:, :1], -1, -2)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        own = {} if self._last_qd is None else {"last_qd": self._last_qd.copy()}
        return own | super().to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        super().restore(state)
        self._last_qd = np.array(state["last_qd"]) if "last_qd" in state else None
