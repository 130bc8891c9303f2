"""Detection of a changed load: a cumulative-sum test, its delay and false alarms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Detection(NamedTuple):
    """What a detector promises.

    Attributes:
        delay: Mean time from a change to its alarm in [s].
        false_alarms_per_hour: Bound on alarms without a change.
    """

    delay: float
    false_alarms_per_hour: float


class ChangeDetector:
    """Page's cumulative-sum test on the normalised squared innovation.

    While nothing changes νᵀ S⁻¹ ν is χ² with as many degrees of freedom as channels:
    its mean is their number. The test adds up its excess, relative to that mean, over a
    slack, and a sum above the threshold is a change. The mean level is tracked slowly,
    so that a model that is never quite right does not count as change.

    With the defaults and six channels, white noise practically never raises an alarm
    (`detection`). Model errors may, so `OnlineLoad` confirms a change by its size.

    Args:
        channels: Number of channels.
        rate_hz: Samples per second.
        threshold: Sum at which a change is detected: at the largest step, 12 samples.
        slack: Multiple of the mean level that is subtracted from every sample.
        hold_off: Time after a change without another one, in [s], for the estimate to
            settle on the new load.
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
        self._channels, self.rate_hz = channels, rate_hz
        self.level_rate = 1.0 / (2.0 * rate_hz)  # the level follows within 2 s
        self.hold_off = round(hold_off * rate_hz)
        # One outlier alone must not sum up to a change.
        self.largest_ratio = 8.0
        self.restart()
        self.level = 1.0

    def detection(self, strength: float, correlation: float = 1.0) -> Detection:
        """How soon a change is seen, and how often there is an alarm without one.

        A change of strength λ, the squared mean of the normalised innovation, adds
        (n + λ) / n − slack a sample on average, up to the largest step. Without one the
        rate of alarms is at most exp(−θ · threshold) a sample, θ the root of
        E exp(θ (χ²ₙ / n − slack)) = 1 (Wald 1947, Lorden 1971); noise that repeats
        itself over c samples adds up c times as fast, and divides the exponent by c.

        Args:
            strength: λ; infinite delay if it is too small to be seen.
            correlation: Samples over which noise repeats itself.
        """
        from scipy.optimize import brentq

        n = self._channels
        gain = min(1.0 + strength / n, self.largest_ratio) - self.slack
        samples = self.threshold / gain + 1.0 if gain > 0.0 else np.inf
        # log E exp(θ χ²/n) = −n/2 log(1 − 2θ/n), finite up to n/2.
        theta = brentq(
            lambda x: -0.5 * n * np.log1p(-2.0 * x / n) - x * self.slack,
            1e-3,
            0.5 * n * (1.0 - 1e-12),
        )
        exponent = theta * self.threshold / max(correlation, 1.0)
        alarms = 3600.0 * self.rate_hz * float(np.exp(-exponent))
        return Detection(float(samples) / self.rate_hz, alarms)

    def restart(self) -> None:
        """Start again after a change."""
        self.sum = 0.0
        self._samples = 0
        self.since = 0

    def accept_level(self) -> None:
        """Raise the level to what looked like a change, and go on."""
        if self.since:
            raised = self.level * (self.slack + self.sum / self.since) / self.slack
            self.level = max(self.level, raised)
        self.sum, self.since = 0.0, 0

    def take(self, distance: float) -> bool:
        """Take one sample's νᵀ S⁻¹ ν; return whether the load has changed."""
        self._samples += 1
        ratio = distance / (self._channels * self.level)
        ratio = min(ratio, self.largest_ratio)
        total = self.sum + (ratio - self.slack)
        if total <= 0.0 or self._samples <= self.hold_off:
            self.sum, self.since = 0.0, 0
            self.level *= 1.0 + self.level_rate * (ratio - 1.0)
            self.level = max(self.level, 1.0)
            return False
        self.sum, self.since = total, self.since + 1
        return total > self.threshold

    def take_block(self, distances: np.ndarray) -> int:
        """Take a block; return the index at which the load changed, or −1."""
        for i, value in enumerate(distances.tolist()):
            if self.take(value):
                return i
        return -1
