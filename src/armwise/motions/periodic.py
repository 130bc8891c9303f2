"""Periodic motions: Fourier series (also random ones), sinusoids, triangular waves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.motions.motion import (
    MotionSample,
    at_rest_outside,
    inside,
    joint_vector,
    require_positive,
)

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Fourier:
    """A finite Fourier series around a posture, repeated.

    q = q0 + Σ_k sine_k sin(2π k f t) + cosine_k cos(2π k f t), k = 1 … K: the mean
    over a period is q0. It begins and ends at rest only if its coefficients say so.

    Attributes:
        q0: The mean posture in [rad] or [m].
        sine, cosine: Amplitudes in [rad] or [m], one row per joint, harmonic k in
            column k − 1.
        frequency: Base frequency f in [Hz].
        periods: How many times it is repeated.
    """

    q0: Float[np.ndarray, " dof"]
    sine: Float[np.ndarray, "dof harmonics"]
    cosine: Float[np.ndarray, "dof harmonics"]
    frequency: float
    periods: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "q0", joint_vector(self.q0, "q0"))
        for name in ("sine", "cosine"):
            object.__setattr__(self, name, _amplitudes(getattr(self, name), self, name))
        if self.sine.shape != self.cosine.shape:
            raise ArgumentError(
                f"sine and cosine need the same number of harmonics, not "
                f"{self.sine.shape[1]} and {self.cosine.shape[1]}."
            )
        for name in ("frequency", "periods"):
            object.__setattr__(self, name, require_positive(getattr(self, name), name))

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.q0.size

    @property
    def harmonics(self) -> int:
        """Number of harmonics K."""
        return int(self.sine.shape[1])

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        return self.periods / self.frequency

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        omega = 2.0 * np.pi * self.frequency * np.arange(1, self.harmonics + 1)
        angle = times[..., None] * omega
        s, c = np.sin(angle), np.cos(angle)
        sine, cosine = self.sine.T, self.cosine.T
        q = self.q0 + s @ sine + c @ cosine
        qd = (c * omega) @ sine - (s * omega) @ cosine
        qdd = -(s * omega**2) @ sine - (c * omega**2) @ cosine
        return at_rest_outside(q, qd, qdd, moving)


def _amplitudes(values: ArrayLike, motion: Fourier, name: str) -> np.ndarray:
    array = np.array(values, dtype=float)
    if array.ndim != 2 or len(array) != motion.dof or array.shape[1] == 0:
        raise ArgumentError(
            f"{name} needs one row of amplitudes for each of the {motion.dof} joints; "
            f"it has the shape {array.shape}."
        )
    if not np.all(np.isfinite(array)):
        raise ArgumentError(f"An amplitude in {name} is not finite.")
    array.setflags(write=False)
    return array


def random_motion(
    arm: Arm,
    seed: int = 0,
    duration: float = 10.0,
    *,
    harmonics: int = 5,
    roughness: float = 1.0,
    reach: float = 0.12,
    widest: float = np.pi,
    fastest: float = np.inf,
) -> Fourier:
    """A random periodic motion within every joint's limits.

    Amplitudes are Gaussian, falling with the harmonic's number k as k^−roughness, and
    scaled so that each joint's whole series has the same size relative to its range. A
    joint that came near its limits, or those of a joint that follows it, moves less.

    Args:
        arm: Its limits of position, velocity and acceleration.
        seed: Of the random amplitudes.
        duration: Of one period in [s].
        harmonics: Number of harmonics.
        roughness: Exponent: 1 for slow motions, ½ for lively ones.
        reach: √Σ amplitude² as a fraction of a joint's range.
        widest: Position in [rad] or [m] beyond which no joint moves, unless its limits
            leave no other; joints without any range move three quarters as far.
        fastest: Speed in [rad/s] or [m/s] that no joint may exceed. If it is finite,
            four fifths of the joints' own limits of velocity and acceleration hold
            too: a loop needs some to spare.
    """
    rng = np.random.default_rng(seed)
    lower, upper = _ranges(arm, widest)
    numbers = np.arange(1, harmonics + 1)
    amplitudes = rng.normal(size=(2, arm.dof, harmonics)) / numbers**roughness
    size = np.sqrt(np.sum(amplitudes**2, axis=(0, 2)))
    # Σ amplitudes ≤ √(2K) · reach: at the defaults 0.38 of the range at most.
    amplitudes *= (reach * (upper - lower) / size)[:, None]
    middle, frequency = 0.5 * (lower + upper), 1.0 / duration
    motion = Fourier(middle, amplitudes[0], amplitudes[1], frequency)
    # Fifty points per period of the fastest harmonic miss less than 0.2 % of a peak.
    sample = motion.sample(np.linspace(0.0, duration, 50 * harmonics))
    used = [np.abs(sample.q - middle) / (0.5 * (upper - lower))]
    if np.isfinite(fastest):
        speeds = np.minimum(0.8 * _shared_limit(arm, "velocity"), fastest)
        used += [np.abs(sample.qd) / speeds]
        used += [np.abs(sample.qdd) / (0.8 * _shared_limit(arm, "acceleration"))]
    excess = np.maximum(np.max(used, axis=(0, 1)), 1.0)[:, None]
    sine, cosine = amplitudes / excess
    return Fourier(middle, sine, cosine, frequency)


def _ranges(
    arm: Arm, widest: float
) -> tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]]:
    """Bounds of every coordinate, so that joints that follow it stay within theirs."""
    lower, upper = arm.limits("lower"), arm.limits("upper")
    for joint in arm.joints:
        if joint.mimic is not None and joint.mimic.multiplier:
            k, limits = arm.coordinates.index(joint.mimic.leader), joint.limits
            ends = (np.array([limits.lower, limits.upper]) - joint.mimic.offset) / (
                joint.mimic.multiplier
            )
            lower[k], upper[k] = max(lower[k], ends.min()), min(upper[k], ends.max())
    # Beyond the widest only where the limits leave nothing nearer.
    inner, outer = np.maximum(lower, -widest), np.minimum(upper, widest)
    beyond = (inner >= outer) & (lower < upper) & np.isfinite(upper - lower)
    lower, upper = np.where(beyond, lower, inner), np.where(beyond, upper, outer)
    has_none = upper - lower < 1e-6  # a description that leaves the limits at zero
    lower = np.where(has_none, -0.75 * widest, lower)
    upper = np.where(has_none, 0.75 * widest, upper)
    return lower, upper


def _shared_limit(arm: Arm, quantity: str) -> Float[np.ndarray, " dof"]:
    """A limit of every coordinate, lower where a joint that follows it needs that."""
    limits = arm.limits(quantity)
    for joint in arm.joints:
        if joint.mimic is not None and joint.mimic.multiplier:
            k = arm.coordinates.index(joint.mimic.leader)
            own = getattr(joint.limits, quantity) / abs(joint.mimic.multiplier)
            limits[k] = min(limits[k], own)
    return limits


# One cosine per joint, among them `mitchell1997`'s Eq. 3.38 and 3.39.


@dataclass(frozen=True, eq=False)
class Sinusoid:
    """q = center + amplitude cos(ω t + phase), each joint with its own numbers.

    Attributes:
        center: Middle positions in [rad] or [m].
        amplitude: In [rad] or [m]; its sign counts.
        omega: Angular frequencies ω in [rad/s].
        duration: How long it lasts in [s].
        phase: In [rad].
    """

    center: Float[np.ndarray, " dof"]
    amplitude: Float[np.ndarray, " dof"]
    omega: Float[np.ndarray, " dof"]
    duration: float
    phase: Float[np.ndarray, " dof"] | float = 0.0

    def __post_init__(self) -> None:
        _settle(self, "amplitude", "omega", "phase")

    @classmethod
    def rising(
        cls, alpha: ArrayLike, beta: ArrayLike, omega: ArrayLike, duration: float
    ) -> Sinusoid:
        """Every joint as α + β (1 − cos ω t): from rest at α (Eq. 3.38)."""
        alpha, beta = np.atleast_1d(alpha), np.atleast_1d(beta)
        return cls(alpha + beta, -beta, np.asarray(omega), duration)

    @classmethod
    def mitchell(
        cls,
        alpha: ArrayLike = (0.0, 0.0),
        beta: ArrayLike = (1.33, 0.75),
        omega: ArrayLike = (0.75 * np.pi, 2.0 * np.pi),
        duration: float = 10.0,
    ) -> Sinusoid:
        """`mitchell1997`'s task: α1 + β1 (1 − cos ω1 t) and α2 + β2 cos ω2 t."""
        alpha = np.asarray(alpha, dtype=float)
        lift = np.array([1.0, 0.0]) * beta
        sign = np.array([-1.0, 1.0]) * beta
        return cls(alpha + lift, sign, np.asarray(omega), duration)

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.center.size

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        angle = times[..., None] * self.omega + self.phase
        swing = self.amplitude * np.cos(angle)
        qd = -self.amplitude * self.omega * np.sin(angle)
        qdd = -(self.omega**2) * swing
        return at_rest_outside(self.center + swing, qd, qdd, moving)


def _settle(wave: Sinusoid | Triangle, *names: str) -> None:
    """Make vectors of a wave's numbers, one for every joint, and check its duration."""
    center = joint_vector(wave.center, "center")
    object.__setattr__(wave, "center", center)
    for name in names:
        values = joint_vector(getattr(wave, name), name, center.size)
        object.__setattr__(wave, name, values)
    duration = require_positive(wave.duration, "duration")
    object.__setattr__(wave, "duration", duration)


# Triangular waves with a period of each joint's own (`astley1996`).


@dataclass(frozen=True, eq=False)
class Triangle:
    """Constant speed up and down between two positions of each joint.

    Corners are sharp (acceleration zero everywhere, undefined at the corner) unless
    `rounding` gives each corner a parabola.

    Attributes:
        center: Middle positions in [rad] or [m].
        amplitude: Distance from the middle to the corners of the sharp wave.
        period: Time of one cycle of each joint in [s].
        duration: How long it lasts in [s].
        phase: Part of a cycle already gone at t = 0; 0 is in the middle, rising.
        rounding: Time in [s] from the beginning of a parabola to its corner.
    """

    center: Float[np.ndarray, " dof"]
    amplitude: Float[np.ndarray, " dof"]
    period: Float[np.ndarray, " dof"]
    duration: float
    phase: Float[np.ndarray, " dof"] | float = 0.0
    rounding: float = 0.0

    def __post_init__(self) -> None:
        _settle(self, "amplitude", "period", "phase")
        if np.any(self.period <= 0):
            raise ArgumentError("Every period must be positive.")
        if not 0.0 <= self.rounding <= self.period.min() / 4.0:
            raise ArgumentError(
                "rounding must lie between 0 and a quarter of the shortest period "
                f"({self.period.min() / 4.0:g} s), not {self.rounding:g} s."
            )

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.center.size

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        cycles = times[..., None] / self.period + self.phase
        # Time since the nearest corner: the upper one is a quarter cycle in.
        half = np.floor(2.0 * cycles)
        side = 1.0 - 2.0 * np.mod(half, 2.0)
        since = (cycles - 0.5 * half - 0.25) * self.period
        speed = side * 4.0 * self.amplitude / self.period
        q = self.center + side * self.amplitude - speed * np.abs(since)
        qd, qdd = -speed * np.sign(since), np.zeros_like(q)
        if self.rounding > 0.0:
            b = self.rounding
            near = np.abs(since) < b
            q = np.where(near, q - speed * 0.5 * (b - np.abs(since)) ** 2 / b, q)
            qd = np.where(near, -speed * since / b, qd)
            qdd = np.where(near, -speed / b, qdd)
        return at_rest_outside(q, qd, qdd, moving)
