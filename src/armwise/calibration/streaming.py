"""Positions, velocities and accelerations of a stream, by one causal filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

_SAMPLES_PER_PERIOD = 8.0
_SETTLING = 6.0
"""Time constants of the filter until its beginning is forgotten."""


class Filtered(NamedTuple):
    """Motion and torque behind one filter: `Samples` too short-lived to be checked.

    Attributes:
        time: In [s].
        q, qd, qdd: Position, velocity, acceleration in [rad] or [m], per [s], per [s²].
        tau: Torques in [N m] or [N].
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    qd: Float[np.ndarray, "samples dof"]
    qdd: Float[np.ndarray, "samples dof"]
    tau: Float[np.ndarray, "samples dof"]

    def rows(self, chosen: slice | np.ndarray) -> Filtered:
        """Some of the samples."""
        return Filtered(*(x[chosen] for x in self))


def joined(parts: Sequence[Filtered]) -> Filtered:
    """Parts that follow each other."""
    return Filtered(*map(np.concatenate, zip(*parts, strict=True)))


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
        self._step = max(1, round(1.0 / (period * bandwidth_hz * _SAMPLES_PER_PERIOD)))
        self._states: list[np.ndarray] | None = None
        self._count, self._ready = 0, 0.0

    def restart(self) -> None:
        """Forget everything: the stream was interrupted."""
        self._states = None

    def feed(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
    ) -> Filtered:
        """Take a block of any length; return the samples it completes."""
        if self._states is None:
            self._begin(time[0], q[0], tau[0])
        chosen = [*self._filters, self._filters[0]]
        signals = enumerate((q, q, q, tau))
        out = [self._filtered(k, chosen[k], x) for k, x in signals]
        numbers = self._count + np.arange(time.size)
        kept = (numbers % self._step == 0) & (time >= self._ready)
        self._count += time.size
        return Filtered(time[kept], *(x[kept] for x in out))

    def _filtered(
        self, k: int, coefficients: tuple[np.ndarray, np.ndarray], x: np.ndarray
    ) -> np.ndarray:
        from scipy.signal import lfilter

        assert self._states is not None
        state = self._states[k]
        y, self._states[k] = lfilter(*coefficients, x, axis=0, zi=state)
        return np.asarray(y)

    def _begin(self, time: float, q: np.ndarray, tau: np.ndarray) -> None:
        """Begin as if everything had rested at its first value for long."""
        from scipy.signal import lfilter_zi

        filters = [*self._filters, self._filters[0]]
        self._states = [
            lfilter_zi(*f)[:, None] * x
            for f, x in zip(filters, (q, q, q, tau), strict=True)
        ]
        self._ready = time + self.settling
