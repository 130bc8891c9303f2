"""Proportional and derivative feedback, joint by joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.gains import apply_feedback, feedback_gain
from armwise.control.velocity import VelocitySource

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class PD:
    """τ = K_p (q_d − q) + K_v (q̇_d − q̇), or − K_v q̇ without a velocity reference.

    The five analog controllers of `atkeson1986` App. A are this one with and without
    `velocity_reference`, alone and inside `Feedforward`.

    Args:
        kp: K_p in [N m/rad] or [N/m]: a number, one per joint, or a matrix.
        kd: K_v in [N m s/rad] or [N s/m].
        velocity_reference: Whether the wanted velocity is fed in.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        kp: ArrayLike,
        kd: ArrayLike,
        velocity_reference: bool = True,
        cutoff_hz: float = 60.0,
    ) -> None:
        self.kp = feedback_gain(kp, "kp")
        self.kd = feedback_gain(kd, "kd")
        self.velocity_reference = velocity_reference
        self._velocity = VelocitySource(cutoff_hz)

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        self._velocity.reset(period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        qd = self._velocity.read(measurement, reference.qd)
        slow = reference.qd - qd if self.velocity_reference else -qd
        spring = apply_feedback(self.kp, reference.q - measurement.need("q"))
        tau: np.ndarray = spring + apply_feedback(self.kd, slow)
        return tau

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self._velocity.restore(state)
