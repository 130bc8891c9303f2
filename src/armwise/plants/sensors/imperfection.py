"""Gain error, bias, drift and noise: what every analog signal suffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.sensors.sensor import Mount, spread

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

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
