"""Tachometers, and the velocity that is made from an encoder instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.sensors.encoder import Encoder
from armwise.plants.sensors.imperfection import Imperfection
from armwise.plants.sensors.sensor import Mount, Sampler
from armwise.plants.state import State

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Tachometer:
    """Measures joint velocities.

    Attributes:
        noise_std: Noise in [rad/s] or [m/s].
        bias: Constant error in [rad/s] or [m/s].
        gain_error: Fraction by which it reads too much.
        drift: Random walk of the bias in [rad/s per √s].
        side: Where it sits; it matters where joints are elastic.
        rate_hz: Samples per second; the controller's when not given.
    """

    noise_std: ArrayLike = 0.0
    bias: ArrayLike = 0.0
    gain_error: ArrayLike = 0.0
    drift: ArrayLike = 0.0
    side: Literal["motor", "link"] = "motor"
    rate_hz: float | None = None
    signal: ClassVar[str] = "qd"
    unit: ClassVar[str] = "rad/s"

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler."""
        disturbed = Imperfection(
            mount,
            noise_std=self.noise_std,
            bias=self.bias,
            gain_error=self.gain_error,
            drift=self.drift,
        )
        on_motor = self.side == "motor"

        def sample(state: State) -> np.ndarray:
            speed = state.motor_qd if on_motor else state.qd
            read = disturbed(speed)
            return speed.copy() if read is speed else read

        return sample


@dataclass(frozen=True, eq=False)
class EncoderVelocity:
    """Makes velocity from an encoder: differences through a first-order low-pass.

    Attributes:
        cutoff_hz: Cut-off of the low-pass in [Hz].
        encoder: What is differentiated.
        rate_hz: Samples per second; the controller's when not given.
    """

    cutoff_hz: float = 50.0
    encoder: Encoder = field(default_factory=Encoder)
    rate_hz: float | None = None
    signal: ClassVar[str] = "qd"
    unit: ClassVar[str] = "rad/s"

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler."""
        if not self.cutoff_hz > 0:
            raise ArgumentError("The cut-off of a velocity filter must be positive.")
        read = self.encoder.mounted(mount)
        share = -np.expm1(-2.0 * np.pi * self.cutoff_hz * mount.period)
        before: np.ndarray | None = None
        speed = np.zeros((mount.batch, mount.dof))

        def sample(state: State) -> np.ndarray:
            nonlocal before, speed
            now = read(state)
            if before is not None:
                speed = speed + share * ((now - before) / mount.period - speed)
            before = now
            return speed

        return sample
