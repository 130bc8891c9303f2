"""Sensors: their protocol, and those for position, velocity, torque and wrench.

A sensor is a description that, once mounted on a plant, takes samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.state import State

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

Sampler = Callable[[State], np.ndarray]
"""Reads the truth and returns what the sensor says: (batch, width)."""


@dataclass(frozen=True)
class Mount:
    """Where a sensor is mounted.

    Attributes:
        batch, dof: How many arms, of how many joints.
        period: Time between two of the sensor's samples in [s].
        random: Its own source of randomness.
        wrench: True wrench (batch, 6) on what is beyond a named frame, in its axes.
    """

    batch: int
    dof: int
    period: float
    random: np.random.Generator
    wrench: Callable[[str], Sampler]


class Sensor(Protocol):
    """A description of one sensor; frozen, with its numbers as attributes."""

    @property
    def signal(self) -> str:
        """The field of `Measurement` that it fills."""
        ...

    @property
    def unit(self) -> str:
        """Unit of what it says."""
        ...

    @property
    def rate_hz(self) -> float | None:
        """Samples per second; None is the rate of the controller."""
        ...

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler, at its initial state."""
        ...


def spread(
    values: ArrayLike, mount: Mount, name: str, width: int | None = None
) -> Float[np.ndarray, "batch width"] | None:
    """Give a setting to every arm and joint; None if it is zero throughout.

    Args:
        values: One number, one per joint, or one row per arm.
        mount: Where the sensor is.
        name: What to call it in a message.
        width: Numbers per arm; the joints' when not given.
    """
    array = np.asarray(values, dtype=float)
    shape = (mount.batch, mount.dof if width is None else width)
    try:
        full = np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ArgumentError(
            f"{name} has the shape {array.shape}; it must fit {shape[0]} arms of "
            f"{shape[1]} values."
        ) from None
    if not np.all(np.isfinite(full)):
        raise ArgumentError(f"{name} is not finite.")
    # None lets samplers skip the arithmetic of an error they do not have.
    return full if full.any() else None


# Gain error, bias, drift and noise of analog signals.

# Judgement: many rows per call, so that calls do not outweigh the numbers.
_BLOCK = 256


class Noise:
    """Standard normal rows, made many at a time."""

    def __init__(self, random: np.random.Generator, shape: tuple[int, int]) -> None:
        self._random = random
        self._rows = np.empty((_BLOCK, *shape))
        self._next = _BLOCK

    def __call__(self) -> Float[np.ndarray, "batch width"]:
        """Return the next row."""
        if self._next == _BLOCK:
            self._random.standard_normal(out=self._rows)
            self._next = 0
        row: np.ndarray = self._rows[self._next]
        self._next += 1
        return row


class Imperfection:
    """(1 + gain_error) x + bias + drift + noise.

    Drift is a random walk that reaches a standard deviation of `drift` after 1 s and
    √t times that after t [s].
    """

    def __init__(
        self,
        mount: Mount,
        *,
        noise_std: ArrayLike = 0.0,
        bias: ArrayLike = 0.0,
        gain_error: ArrayLike = 0.0,
        drift: ArrayLike = 0.0,
        width: int | None = None,
    ) -> None:
        gain = spread(gain_error, mount, "gain_error", width)
        self._gain = None if gain is None else 1.0 + gain
        self._bias = spread(bias, mount, "bias", width)
        self._std = _not_negative(spread(noise_std, mount, "noise_std", width))
        walk = _not_negative(spread(drift, mount, "drift", width))
        self._walk_step = None if walk is None else walk * np.sqrt(mount.period)
        shape = (mount.batch, mount.dof if width is None else width)
        self._walked = np.zeros(shape)
        noise, steps = mount.random.spawn(2)
        self._noise, self._steps = Noise(noise, shape), Noise(steps, shape)

    def __call__(
        self, x: Float[np.ndarray, "batch width"]
    ) -> Float[np.ndarray, "batch width"]:
        """Return what becomes of the next value."""
        if self._gain is not None:
            x = self._gain * x
        if self._bias is not None:
            x = x + self._bias
        if self._walk_step is not None:
            x = x + self._walked
            self._walked += self._walk_step * self._steps()
        if self._std is not None:
            x = x + self._std * self._noise()
        return x


def _not_negative(values: np.ndarray | None) -> np.ndarray | None:
    if values is not None and values.min() < 0:
        raise ArgumentError("A standard deviation cannot be negative.")
    return values


# Encoders: position in whole counts.


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


# Joint torque sensing, on the motor's side or the link's.


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


# Six-axis force/torque sensors, which bend, ring and drift.


@dataclass(frozen=True, eq=False)
class WristSensor:
    """Measures the wrench that the arm exerts on what is beyond a frame.

    In the frame's axes, at its origin: at rest the force is −m g. With a resonance
    the reading y obeys ÿ + 2ζω ẏ + ω² y = ω² w on every axis: the load swings on the
    sensor's spring. The swing does not act back on the arm.

    Attributes:
        frame: Name of a link or frame of the arm.
        noise_std, bias: Six numbers in [N] and [N m], or one for all.
        gain_error: Fraction by which it reads too much.
        drift: Random walk of the bias in [N per √s] and [N m per √s].
        resonance_hz: ω / 2π in [Hz]; infinite is stiff.
        damping: ζ; 0 rings for ever.
        misalignment: Rotation vector in [rad] by which its axes are turned from where
            the frame says.
        rate_hz: Samples per second; the controller's when not given.
    """

    frame: str
    noise_std: ArrayLike = 0.0
    bias: ArrayLike = 0.0
    gain_error: ArrayLike = 0.0
    drift: ArrayLike = 0.0
    resonance_hz: float = np.inf
    damping: float = 0.0
    misalignment: ArrayLike = (0.0, 0.0, 0.0)
    rate_hz: float | None = None
    signal: ClassVar[str] = "wrench"
    unit: ClassVar[str] = "N, N m"

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler."""
        wrench = mount.wrench(self.frame)
        disturbed = Imperfection(
            mount,
            noise_std=self.noise_std,
            bias=self.bias,
            gain_error=self.gain_error,
            drift=self.drift,
            width=6,
        )
        turn = _turn(self.misalignment)
        spring = _Spring(self.resonance_hz, self.damping, mount.period)

        def sample(state: State) -> np.ndarray:
            true = wrench(state)
            if turn is not None:
                true = (true.reshape(-1, 2, 3) @ turn).reshape(-1, 6)
            return disturbed(spring(true))

        return sample


class _Spring:
    """An oscillator driven by straight lines between samples, solved exactly."""

    def __init__(self, resonance_hz: float, damping: float, period: float) -> None:
        if not resonance_hz > 0 or damping < 0:
            raise ArgumentError(
                "A wrist sensor needs a positive resonance_hz and a damping ≥ 0."
            )
        self._matrix = None
        if np.isfinite(resonance_hz):
            self._matrix = _transition(2.0 * np.pi * resonance_hz, damping, period)
        self._state: np.ndarray | None = None

    def __call__(self, w: Float[np.ndarray, "batch 6"]) -> np.ndarray:
        if self._matrix is None:
            return w
        now = w.reshape(-1)
        if self._state is None:  # rows: y, ẏ, w before, change of w
            self._state = np.stack([now, np.zeros_like(now), now, np.zeros_like(now)])
        state = self._state
        np.subtract(now, state[2], out=state[3])
        state[:2] = self._matrix @ state
        state[2] = now
        reading: np.ndarray = state[0].copy().reshape(w.shape)
        return reading


def _transition(omega: float, damping: float, period: float) -> np.ndarray:
    """Return (y, ẏ) after a period from (y, ẏ, w, change of w over the period)."""
    from scipy.linalg import expm

    A = np.zeros((4, 4))
    A[0, 1] = 1.0
    A[1, :3] = -(omega**2), -2.0 * damping * omega, omega**2
    A[2, 3] = 1.0 / period
    # First-order hold: with w and its slope as states the matrix exponential is exact
    # for an input that is piecewise linear, at any step and damping.
    transition: np.ndarray = expm(A * period)[:2]
    return transition


def _turn(misalignment: ArrayLike) -> np.ndarray | None:
    vector = np.asarray(misalignment, dtype=float)
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return None
    x, y, z = vector / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # Row vectors times R: coordinates in axes that are turned by R.
    R: np.ndarray = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    return R
