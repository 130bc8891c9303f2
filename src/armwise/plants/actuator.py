"""What lies between a commanded torque and the torque on the motor's shaft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Actuator:
    """Motors and their amplifiers.

    Attributes:
        saturation: Largest torque in [N m]; one number, or one per joint.
        bits: Resolution of the converter over ±saturation; None converts exactly.
        gain_error: Fraction by which they give too much; a row per arm is allowed.
        delay: Time from command to torque in [s].
    """

    saturation: ArrayLike = np.inf
    bits: int | None = None
    gain_error: ArrayLike = 0.0
    delay: float = 0.0

    def mounted(self, batch: int, dof: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function from commands (batch, dof) to torques."""
        limit = np.broadcast_to(np.asarray(self.saturation, float), (dof,))
        if not np.all(limit > 0):
            raise ArgumentError("saturation must be positive for every joint.")
        if self.delay < 0 or not np.isfinite(self.delay):
            raise ArgumentError("An actuator's delay must be a number ≥ 0 in [s].")
        gain = 1.0 + np.broadcast_to(np.asarray(self.gain_error, float), (batch, dof))
        has_limit, has_gain = bool(np.isfinite(limit).any()), bool(np.any(gain != 1.0))
        step = self._step(limit)

        def convert(tau: np.ndarray) -> np.ndarray:
            if has_limit:
                tau = np.clip(tau, -limit, limit)
            if step is not None:
                tau = np.rint(tau / step) * step
            return tau * gain if has_gain else tau

        return convert

    def _step(self, limit: np.ndarray) -> np.ndarray | None:
        if self.bits is None:
            return None
        if not np.isfinite(limit).all():
            raise ArgumentError(
                "A converter of some bits needs a finite saturation: its full scale."
            )
        step: np.ndarray = 2.0 * limit / 2**self.bits
        return step
