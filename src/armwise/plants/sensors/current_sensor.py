"""Motor currents: torque by way of the motor's constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.sensors.imperfection import Imperfection
from armwise.plants.sensors.sensor import Mount, Sampler, spread
from armwise.plants.sensors.torque_sensor import Ripple
from armwise.plants.state import State

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class CurrentSensor:
    """Measures motor currents i = τ / k.

    Attributes:
        torque_constant: k, gear included, in [N m/A] at the joint.
        noise_std, bias: In [A].
        gain_error: Fraction by which it reads too much.
        drift: Random walk of the bias in [A per √s].
        ripple: Amplitude in [A] of an error that repeats as the joint turns.
        ripple_cycles: How often it repeats in one turn of the joint.
        rate_hz: Samples per second; the controller's when not given.
    """

    torque_constant: ArrayLike
    noise_std: ArrayLike = 0.0
    bias: ArrayLike = 0.0
    gain_error: ArrayLike = 0.0
    drift: ArrayLike = 0.0
    ripple: ArrayLike = 0.0
    ripple_cycles: ArrayLike = 2.0
    rate_hz: float | None = None
    signal: ClassVar[str] = "current"
    unit: ClassVar[str] = "A"

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler."""
        constant = spread(self.torque_constant, mount, "torque_constant")
        if constant is None or not np.all(constant):
            raise ArgumentError("A torque constant cannot be zero.")
        disturbed = Imperfection(
            mount,
            noise_std=self.noise_std,
            bias=self.bias,
            gain_error=self.gain_error,
            drift=self.drift,
        )
        wave = Ripple(mount, self.ripple, self.ripple_cycles)

        def sample(state: State) -> np.ndarray:
            return wave(disturbed(state.tau / constant), state)

        return sample
