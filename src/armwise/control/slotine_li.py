"""Direct adaptive control of Slotine and Li: driven by tracking errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptation import Projection
from armwise.control.adaptive_controller import AdaptiveController
from armwise.control.adaptive_model import AdaptiveModel
from armwise.control.gains import apply_feedback, feedback_gain
from armwise.control.parameter_set import ParameterSet
from armwise.control.robust import RobustTerm
from armwise.control.update_law import UpdateLaw

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class SlotineLi(AdaptiveController):
    """τ = Y(q, q̇, q̇_r, q̈_r) â − K_D s, â' = −P Yᵀ s, s = ė + Λ e (`astley1996` 3.20).

    Neither accelerations nor the inverse of the mass matrix are needed. It learns
    nothing while a torque is at its limit.

    Args:
        parameters: What is adapted, of which arm.
        rate: Λ in [1/s]: a number, one per joint, or a matrix.
        kd: K_D in [N m s/rad] or [N s/m].
        law: How errors move parameters.
        initial: First estimate; zeros if not given.
        projection: What the estimate may be.
        robust: An additional bounded push, if any.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        rate: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        initial: Float[np.ndarray, " p"] | None = None,
        projection: Projection | None = None,
        robust: RobustTerm | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        model = AdaptiveModel(parameters, law, initial, projection)
        super().__init__(model, cutoff_hz)
        self.rate = feedback_gain(rate, "rate")
        self.kd = feedback_gain(kd, "kd")
        self.robust = robust

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        qdr = reference.qd - apply_feedback(self.rate, q - reference.q)
        qddr = reference.qdd - apply_feedback(self.rate, qd - reference.qd)
        s = qd - qdr
        Y = self.model.tracking_regressor(q, qd, qdr, qddr)
        tau: np.ndarray = self.model.torque(Y) - apply_feedback(self.kd, s)
        if self.robust is not None:
            tau += self.robust.torque(s)
        frozen = self.model.saturated(tau)
        self.model.adaptation.track(Y, s, self.model.period, frozen)
        return tau
