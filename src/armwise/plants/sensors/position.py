"""Encoders: position in whole counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.sensors.sensor import Imperfection, Mount, Sampler, spread
from armwise.plants.state import State

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Encoder:
    """Measures joint positions, rounded to counts.

    Attributes:
        resolution: One count in [rad] or [m]; 0 measures exactly.
        offset: Error of the zero in [rad] or [m].
        noise_std: Noise before rounding in [rad] or [m].
        side: Where it sits; it matters where joints are elastic.
        rate_hz: Samples per second; the controller's when not given.
    """

    resolution: ArrayLike = 0.0
    offset: ArrayLike = 0.0
    noise_std: ArrayLike = 0.0
    side: Literal["motor", "link"] = "motor"
    rate_hz: float | None = None
    signal: ClassVar[str] = "q"
    unit: ClassVar[str] = "rad"

    @classmethod
    def from_counts(cls, per_turn: ArrayLike, gear: ArrayLike = 1.0) -> Encoder:
        """An encoder on the motor with so many counts a turn, behind a gear."""
        return cls(2.0 * np.pi / (np.asarray(per_turn) * np.abs(gear)))

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler."""
        count = spread(self.resolution, mount, "resolution")
        if count is not None and count.min() <= 0:
            raise ArgumentError("An encoder's resolution must be positive, or all 0.")
        disturbed = Imperfection(mount, noise_std=self.noise_std, bias=self.offset)
        on_motor = self.side == "motor"

        def sample(state: State) -> np.ndarray:
            position = disturbed(state.motor_q if on_motor else state.q)
            return position.copy() if count is None else rounded(position, count)

        return sample


def rounded(x: np.ndarray, step: np.ndarray | float) -> np.ndarray:
    """Return x in whole steps."""
    steps: np.ndarray = np.rint(x / step)
    steps *= step
    return steps


# Velocity: tachometers, and differences of encoder counts.


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
        # The exact step of a first-order low-pass, 1 − e^(−ωT), which is stable at any
        # rate; expm1 keeps its digits when ωT is small.
        gain = -np.expm1(-2.0 * np.pi * self.cutoff_hz * mount.period)
        before: np.ndarray | None = None
        speed = np.zeros((mount.batch, mount.dof))

        def sample(state: State) -> np.ndarray:
            nonlocal before, speed
            now = read(state)
            if before is not None:
                speed = speed + gain * ((now - before) / mount.period - speed)
            before = now
            return speed

        return sample


# Analog joint sensors θ = α v + β behind a converter (`astley1996`).

# x − x³ has its maximum 2 / (3√3) at x = 1/√3.
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

        swing = None if bow is None else bow * limit * _BOW

        def sample(state: State) -> np.ndarray:
            volts = ((state.motor_q if on_motor else state.q) - beta) / alpha
            if swing is not None:
                x = volts / limit
                volts = volts + swing * (x - x * x * x)
            volts = disturbed(volts)
            if step is None:
                return volts
            # Two's complement: 2ⁿ codes reach from −limit to limit less one step.
            volts = np.minimum(np.maximum(volts, -limit), limit - step)
            return rounded(volts, step)

        return sample
