"""Joint torque sensing, on the motor's side or the link's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.sensors.sensor import Imperfection, Mount, Sampler, spread
from armwise.plants.state import State

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class TorqueSensor:
    """Measures joint torques.

    Attributes:
        noise_std: Noise in [N m] or [N].
        bias: Constant error in [N m] or [N].
        gain_error: Fraction by which it reads too much.
        drift: Random walk of the bias in [N m per √s].
        ripple: Amplitude in [N m] of an error that repeats as the joint turns.
        ripple_cycles: How often it repeats in one turn of the joint.
        side: The motor's torque, or what of it reaches the link (less rotor inertia
            and friction).
        rate_hz: Samples per second; the controller's when not given.
    """

    noise_std: ArrayLike = 0.0
    bias: ArrayLike = 0.0
    gain_error: ArrayLike = 0.0
    drift: ArrayLike = 0.0
    ripple: ArrayLike = 0.0
    ripple_cycles: ArrayLike = 2.0
    side: Literal["motor", "link"] = "motor"
    rate_hz: float | None = None
    signal: ClassVar[str] = "tau"
    unit: ClassVar[str] = "N m"

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler."""
        disturbed = Imperfection(
            mount,
            noise_std=self.noise_std,
            bias=self.bias,
            gain_error=self.gain_error,
            drift=self.drift,
        )
        wave = Ripple(mount, self.ripple, self.ripple_cycles)
        on_motor = self.side == "motor"

        def sample(state: State) -> np.ndarray:
            torque = state.tau if on_motor else state.link_tau
            read = wave(disturbed(torque), state)
            return torque.copy() if read is torque else read

        return sample


class Ripple:
    """Adds an error that repeats as the joint turns, with a phase of each joint."""

    def __init__(self, mount: Mount, ripple: ArrayLike, cycles: ArrayLike) -> None:
        self._amplitude = spread(ripple, mount, "ripple")
        self._cycles = spread(cycles, mount, "ripple_cycles")
        shape = (mount.batch, mount.dof)
        self._phase = mount.random.uniform(0.0, 2.0 * np.pi, shape)

    def __call__(self, value: np.ndarray, state: State) -> np.ndarray:
        """Return the value with the ripple of this posture."""
        if self._amplitude is None:
            return value
        turns = 0.0 if self._cycles is None else self._cycles * state.motor_q
        wave: np.ndarray = value + self._amplitude * np.sin(turns + self._phase)
        return wave


# Motor currents.


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
