"""Sensor protocol: a description that, once mounted on a plant, takes samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
