"""Motion and wrench of a sensor frame itself: for logs that have no joint angles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class WristSamples:
    """What an inertial unit and a force/torque sensor at the wrist see, in its axes.

    Attributes:
        time: In [s]; evenly spaced within each segment.
        acceleration: p̈ − g of the sensor's origin, as an accelerometer reads it, in
            [m/s²].
        omega: Angular velocity in [rad/s].
        alpha: Angular acceleration in [rad/s²].
        wrench: Force [N] and torque [N m] on the load, (fx, fy, fz, tx, ty, tz).
        starts: First sample of every uninterrupted segment.
    """

    time: Float[np.ndarray, " samples"]
    acceleration: Float[np.ndarray, "samples 3"]
    omega: Float[np.ndarray, "samples 3"]
    alpha: Float[np.ndarray, "samples 3"]
    wrench: Float[np.ndarray, "samples 6"]
    starts: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        rows = np.size(self.time)
        widths = {"acceleration": 3, "omega": 3, "alpha": 3, "wrench": 6}
        for name, width in widths.items():
            value = np.asarray(getattr(self, name), dtype=float)
            if value.shape != (rows, width):
                raise ArgumentError(
                    f"{name} has shape {value.shape}, but there are {rows} times, so "
                    f"({rows}, {width}) is needed."
                )
            if not np.all(np.isfinite(value)):
                bad = int(np.argmin(np.isfinite(value).all(axis=1)))
                raise ArgumentError(f"{name} is not finite in row {bad}.")

    def __len__(self) -> int:
        return int(np.size(self.time))
