"""What a sensor is: a description that, once mounted, samples the truth."""

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
    return full if full.any() else None
