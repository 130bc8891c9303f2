"""Noticing that the load has changed: picked up, put down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class LoadChange:
    """A load that changed while the arm moved.

    Attributes:
        time: When it was noticed in [s].
        began: When it seems to have begun in [s].
        kind: Whether mass was added or taken away.
        mass_change: First guess of by how much, in [kg]; the estimate refines it.
    """

    time: float
    began: float
    kind: Literal["picked up", "put down"]
    mass_change: float


class ChangeDetector:
    """A cumulative sum of surprise, in units of what is usual.

    Surprise is the squared innovation divided by its own covariance: about the number
    of channels while nothing changes. Its usual level is followed slowly, so that a
    model that is never quite right does not count as change.

    Args:
        channels: Number of channels.
        rate_hz: Samples per second.
        threshold: Sum at which a change is called.
        slack: Multiple of the usual surprise that is still no reason to worry.
        hold_off: Time after a change in which none is called, in [s].
    """

    def __init__(
        self,
        channels: int,
        rate_hz: float,
        threshold: float = 60.0,
        slack: float = 3.0,
        hold_off: float = 0.2,
    ) -> None:
        self.threshold = threshold
        self.slack = slack
        self._channels = channels
        self._forget = 1.0 / (2.0 * rate_hz)
        self._hold_off = round(hold_off * rate_hz)
        self._most = 8.0
        self.restart()
        self.level = 1.0

    def restart(self) -> None:
        """Begin anew after a change."""
        self.sum = 0.0
        self._waited = 0
        self.since = 0

    def calm(self) -> None:
        """Take what looked like a change for the usual from now on."""
        if self.since:
            raised = self.level * (self.slack + self.sum / self.since) / self.slack
            self.level = max(self.level, raised)
        self.sum, self.since = 0.0, 0

    def take(self, surprise: float) -> bool:
        """Take one sample's surprise; return whether the load has changed."""
        self._waited += 1
        ratio = surprise / (self._channels * self.level)
        step = min(ratio, self._most) - self.slack
        total = self.sum + step
        if total <= 0.0 or self._waited <= self._hold_off:
            self.sum, self.since = 0.0, 0
            self.level *= 1.0 + self._forget * (min(ratio, self._most) - 1.0)
            self.level = max(self.level, 1.0)
            return False
        self.sum, self.since = total, self.since + 1
        return total > self.threshold

    def take_block(self, surprise: np.ndarray) -> int:
        """Take a block; return the index at which the load changed, or −1."""
        for i, value in enumerate(surprise.tolist()):
            if self.take(value):
                return i
        return -1
