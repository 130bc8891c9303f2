"""Indirect adaptive control after Middleton and Goodwin: prediction errors teach."""

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


class Indirect(PredictingController):
    """τ = Y(q, q̇, q̈*) â with â from e = W â − F τ (`astley1996` Eq. 3.34–3.39).

    q̈* = q̈_d − K_v ė − K_p e is computed torque on the estimate; `kd_floor` s keeps
    the loop closed while the estimate is still poor.

    Args:
        parameters: What is adapted, of which arm.
        kp: K_p in [1/s²]: a number, one per joint, or a matrix.
        kd: K_v in [1/s].
        law: How errors move parameters.
        kd_floor: Plain velocity feedback beside the model in [N m s/rad]; its
            position part is K_p/K_v times as large.
        bandwidth: b of the filter F = b/(s + b) in [rad/s].
        torque_scale: Prediction error to be expected of each joint in [N m] or [N].
        initial: First estimate; zeros if not given.
        projection: What the estimate may be.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        kp: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        kd_floor: ArrayLike,
        bandwidth: float = 20.0,
        torque_scale: ArrayLike = 1.0,
        initial: Float[np.ndarray, " p"] | None = None,
        projection: Projection | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        model = AdaptiveModel(parameters, law, initial, projection)
        super().__init__(model, bandwidth, torque_scale, cutoff_hz)
        self.kp = feedback_gain(kp, "kp")
        self.kd = feedback_gain(kd, "kd")
        self.kd_floor = feedback_gain(kd_floor, "kd_floor")

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        e, ed = q - reference.q, qd - reference.qd
        push = apply_feedback(self.kd, ed) + apply_feedback(self.kp, e)
        W, filtered_torque = self.filtered.update(q, qd, self._tau)
        self.model.adaptation.compose(
            W, np.zeros_like(e), W, filtered_torque, self.model.period, (0.0, 1.0)
        )
        wanted = reference.qdd - push
        Y = self.model.select(self.model.dynamics.regressor(q, qd, wanted))
        diagonal = np.diag(self.kd) if self.kd.ndim == 2 else self.kd
        tau: np.ndarray = self.model.torque(Y)
        tau = tau - apply_feedback(self.kd_floor, push / diagonal)
        self._tau = self.model.limited(tau)
        return tau
