"""Rows of a regression over time: target = regressor · φ + bias + noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

EVEN = 0.02
"""Steps of a time base may differ by this fraction and still count as even."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What every route to a load comes down to, on an even time base.

    Attributes:
        regressor: Y, one row per sample and channel.
        target: What Y φ should explain, in the channels' units.
        starts: First row of every uninterrupted segment.
        rate_hz: Rows per second in [Hz].
        channels: Names of the channels, such as fx or a joint's.
        highest_hz: Frequencies above say nothing (they were filtered away), in [Hz].
    """

    regressor: Float[np.ndarray, "rows channels parameters"]
    target: Float[np.ndarray, "rows channels"]
    starts: tuple[int, ...]
    rate_hz: float
    channels: tuple[str, ...]
    highest_hz: float = np.inf

    def __len__(self) -> int:
        return int(self.target.shape[0])

    @property
    def segments(self) -> tuple[slice, ...]:
        """Rows of every uninterrupted stretch."""
        ends = (*self.starts[1:], len(self))
        return tuple(slice(a, b) for a, b in zip(self.starts, ends, strict=True))

    def with_columns(self, columns: Float[np.ndarray, "rows channels more"]) -> Rows:
        """Return the same rows with further unknowns."""
        return replace(
            self, regressor=np.concatenate([self.regressor, columns], axis=2)
        )

    def choose(self, channels: tuple[str, ...]) -> Rows:
        """Return only some of the channels."""
        kept = [self.channels.index(name) for name in channels]
        return replace(
            self,
            regressor=self.regressor[:, kept],
            target=self.target[:, kept],
            channels=channels,
        )


def even_rate_hz(time: Float[np.ndarray, " rows"], starts: tuple[int, ...]) -> float:
    """Return the rate [Hz] of an even time base.

    Raises:
        ArgumentError: If the steps within the segments differ.
    """
    steps = np.delete(np.diff(time), [s - 1 for s in starts[1:]])
    if steps.size == 0:
        raise ArgumentError("A single sample per segment has no time base.")
    usual = float(np.median(steps))
    worst = int(np.argmax(np.abs(steps - usual)))
    if abs(steps[worst] - usual) > EVEN * usual:
        raise ArgumentError(
            f"The time base is not even: steps of {usual:.6g} s, but "
            f"{steps[worst]:.6g} s near t = {time[worst]:.6g} s. Use prepare(), which "
            "resamples and cuts at gaps."
        )
    return 1.0 / usual
