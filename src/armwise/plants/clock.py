"""The rates of a plant: its own steps, and the controller's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armwise.errors import ArgumentError


@dataclass(frozen=True)
class Clock:
    """Time in whole ticks of the plant.

    Attributes:
        tick: Step of the plant in [s].
        control_ticks: Ticks between two torques.
        delay_ticks: Ticks from a command to its torque.
    """

    tick: float
    control_ticks: int
    delay_ticks: int = 0

    @classmethod
    def from_rates(
        cls, control_rate_hz: float, plant_rate_hz: float, delay: float = 0.0
    ) -> Clock:
        """Fit a whole number of plant steps, at least at that rate, in each period.

        Args:
            control_rate_hz: Torques per second.
            plant_rate_hz: Steps of the plant per second, at least.
            delay: From command to torque in [s], rounded to a tick.
        """
        for name, rate in (("control", control_rate_hz), ("plant", plant_rate_hz)):
            if not (np.isfinite(rate) and rate > 0):
                raise ArgumentError(f"{name}_rate_hz must be positive, not {rate!r}.")
        ticks = max(1, int(np.ceil(plant_rate_hz / control_rate_hz - 1e-9)))
        tick = 1.0 / (control_rate_hz * ticks)
        return cls(tick, ticks, round(delay / tick))

    @property
    def control_period(self) -> float:
        """Time between two torques in [s]."""
        return self.tick * self.control_ticks
