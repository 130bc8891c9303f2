"""Encoders: position in whole counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.sensors.imperfection import Imperfection
from armwise.plants.sensors.sensor import Mount, Sampler, spread
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
