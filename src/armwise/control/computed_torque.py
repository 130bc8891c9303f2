"""Computed torque: the model's dynamics cancelled on line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.control.gains import apply_feedback, feedback_gain
from armwise.control.model import dynamics_of
from armwise.control.robust import RobustTerm
from armwise.control.velocity import VelocitySource
from armwise.dynamics import Dynamics

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class ComputedTorque:
    """τ = n̂(q, q̇, q̈*), q̈* = q̈_d + K_v (q̇_d − q̇) + K_p (q_d − q) (App. A, 5–6).

    Args:
        model: The arm it believes in.
        kp: K_p in [1/s²]: a number, one per joint, or a matrix.
        kd: K_v in [1/s].
        robust: An additional bounded push, if any, on s = ė + (K_p/K_v) e.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        model: Arm | Dynamics,
        kp: ArrayLike,
        kd: ArrayLike,
        robust: RobustTerm | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        self.model = dynamics_of(model)
        self.kp = feedback_gain(kp, "kp")
        self.kd = feedback_gain(kd, "kd")
        self.robust = robust
        self._velocity = VelocitySource(cutoff_hz)

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        self._velocity.reset(period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        e, ed = reference.q - q, reference.qd - qd
        spring = apply_feedback(self.kp, e)
        wanted = reference.qdd + apply_feedback(self.kd, ed) + spring
        tau: np.ndarray = self.model.inverse_dynamics(q, qd, wanted)
        if self.robust is not None:
            diagonal = np.diag(self.kd) if self.kd.ndim == 2 else self.kd
            tau = tau + self.robust.torque(-ed - spring / diagonal)
        return tau

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self._velocity.restore(state)
