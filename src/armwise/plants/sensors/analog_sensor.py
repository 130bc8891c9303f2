"""Analog joint sensors θ = α v + β behind a converter (`astley1996`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.sensors.encoder import rounded
from armwise.plants.sensors.imperfection import Imperfection
from armwise.plants.sensors.sensor import Mount, Sampler, spread
from armwise.plants.state import State

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_BOW = 1.5 * np.sqrt(3.0)
"""Scales x − x³ to a largest value of 1 on [0, 1]."""


@dataclass(frozen=True, eq=False)
class AnalogSensor:
    """A potentiometer or the like: the joint is at θ = α v + β when it says v volts.

    Attributes:
        alpha: α in [rad/V].
        beta: β in [rad].
        nonlinearity: Largest deviation from the line as a fraction of full scale; an
            S that vanishes in the middle and at the ends.
        noise_std: Noise in [V].
        bits: Resolution of the converter; None converts exactly.
        full_scale: The converter reaches from −full_scale to full_scale in [V].
        side: Where it sits; it matters where joints are elastic.
        rate_hz: Samples per second; the controller's when not given.
    """

    alpha: ArrayLike
    beta: ArrayLike
    nonlinearity: ArrayLike = 0.0
    noise_std: ArrayLike = 0.0
    bits: int | None = 16
    full_scale: float = 10.0
    side: Literal["motor", "link"] = "link"
    rate_hz: float | None = None
    signal: ClassVar[str] = "volts"
    unit: ClassVar[str] = "V"

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler."""
        alpha = spread(self.alpha, mount, "alpha")
        if alpha is None or not np.all(alpha):
            raise ArgumentError("A sensor's gain alpha cannot be zero.")
        beta = np.broadcast_to(np.asarray(self.beta, float), alpha.shape)
        bow = spread(self.nonlinearity, mount, "nonlinearity")
        disturbed = Imperfection(mount, noise_std=self.noise_std)
        limit, on_motor = self.full_scale, self.side == "motor"
        step = None if self.bits is None else 2.0 * limit / 2**self.bits

        def sample(state: State) -> np.ndarray:
            volts = ((state.motor_q if on_motor else state.q) - beta) / alpha
            if bow is not None:
                x = volts / limit
                volts = volts + bow * limit * _BOW * (x - x**3)
            volts = disturbed(volts)
            if step is None:
                return volts
            return rounded(np.clip(volts, -limit, limit - step), step)

        return sample
