"""Positions, velocities and accelerations of a stream, by one causal filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

_SAMPLES_PER_PERIOD = 8.0
_SETTLING = 6.0
"""Time constants of the filter until its beginning is forgotten."""


class CausalDerivatives:
    """F, sF and s²F of positions, F of torques, with F = (b/(s + b))³, thinned out.

    All signals are delayed alike, so that they fit each other at every instant.

    Args:
        period: Time between two samples in [s].
        bandwidth_hz: b / 2π.
        dof: Number of joints.
    """

    def __init__(self, period: float, bandwidth_hz: float, dof: int) -> None:
        from scipy.signal import bilinear

        b = 2.0 * np.pi * bandwidth_hz
        below = np.poly([-b, -b, -b])
        above = ([b**3], [b**3, 0.0], [b**3, 0.0, 0.0])
        self._filters = [bilinear(a, below, 1.0 / period) for a in above]
        self.settling = _SETTLING / b
        self._period, self._dof = period, dof
        self._step = max(1, round(1.0 / (period * bandwidth_hz * _SAMPLES_PER_PERIOD)))
        self._states: list[np.ndarray] | None = None
        self._count, self._last, self._ready = 0, 0.0, 0.0

    def feed(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
    ) -> Samples:
        """Take a block of any length; return the samples it completes."""
        gap = self._states is None or time[0] - self._last > 3.0 * self._period
        if gap or time[0] <= self._last:
            self._restart(time[0], q[0], tau[0])
        signals = [q, q, q, tau]
        chosen = [*self._filters, self._filters[0]]
        out = [self._filtered(k, chosen[k], x) for k, x in enumerate(signals)]
        numbers = self._count + np.arange(time.size)
        kept = (numbers % self._step == 0) & (time >= self._ready)
        self._count += time.size
        self._last = float(time[-1])
        return Samples(time[kept], *(x[kept] for x in out))

    def _filtered(
        self, k: int, coefficients: tuple[np.ndarray, np.ndarray], x: np.ndarray
    ) -> np.ndarray:
        from scipy.signal import lfilter

        assert self._states is not None
        state = self._states[k]
        y, self._states[k] = lfilter(*coefficients, x, axis=0, zi=state)
        return np.asarray(y)

    def _restart(self, time: float, q: np.ndarray, tau: np.ndarray) -> None:
        """Begin as if everything had rested at its first value for long."""
        from scipy.signal import lfilter_zi

        firsts = [q, q, q, tau]
        filters = [*self._filters, self._filters[0]]
        self._states = [
            lfilter_zi(*f)[:, None] * x for f, x in zip(filters, firsts, strict=True)
        ]
        self._ready = time + self.settling
