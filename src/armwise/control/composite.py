"""Composite adaptive control: tracking and prediction errors both teach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptation import Projection
from armwise.control.adaptive_controller import PredictingController
from armwise.control.adaptive_model import AdaptiveModel
from armwise.control.gains import apply_feedback, feedback_gain
from armwise.control.parameter_set import ParameterSet
from armwise.control.update_law import UpdateLaw

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class Composite(PredictingController):
    """τ = Y â − K_D s, â' = −P (C1 Yᵀ s + C2 Wᵀ e) (`astley1996` Eq. 3.40–3.42).

    With a bounded-gain law and a motion that excites, tracking and parameter errors
    both vanish exponentially.

    Args:
        parameters: What is adapted, of which arm.
        rate: Λ in [1/s]: a number, one per joint, or a matrix.
        kd: K_D in [N m s/rad] or [N s/m].
        law: How errors move parameters.
        bandwidth: b of the filter F = b/(s + b) in [rad/s].
        torque_scale: Prediction error to be expected of each joint in [N m] or [N].
        weights: C1 and C2.
        initial: First estimate; zeros if not given.
        projection: What the estimate may be.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        rate: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        bandwidth: float = 20.0,
        torque_scale: ArrayLike = 1.0,
        weights: tuple[float, float] = (0.3, 1.0),
        initial: Float[np.ndarray, " p"] | None = None,
        projection: Projection | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        model = AdaptiveModel(parameters, law, initial, projection)
        super().__init__(model, bandwidth, torque_scale, cutoff_hz)
        self.rate = feedback_gain(rate, "rate")
        self.kd = feedback_gain(kd, "kd")
        self.weights = weights

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        qdr = reference.qd - apply_feedback(self.rate, q - reference.q)
        qddr = reference.qdd - apply_feedback(self.rate, qd - reference.qd)
        s = qd - qdr
        W, filtered_torque = self.filtered.update(q, qd, self._tau)
        Y = self.model.tracking_regressor(q, qd, qdr, qddr)
        tau: np.ndarray = self.model.torque(Y) - apply_feedback(self.kd, s)
        self.model.adaptation.compose(
            Y,
            s,
            W,
            filtered_torque,
            self.model.period,
            self.weights,
            self.model.saturated(tau),
        )
        self._tau = self.model.limited(tau)
        return tau
