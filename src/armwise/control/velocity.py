"""Velocities for controllers: measured, or made from positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.plants import Measurement


class VelocitySource:
    """The tachometer where there is one, else filtered differences of the encoder.

    The difference passes a first-order low-pass, which a controller can afford:
    s/(1 + s/ω), ω = 2π · cutoff.
    """

    def __init__(self, cutoff_hz: float = 60.0) -> None:
        self.cutoff_hz = cutoff_hz
        self._last: np.ndarray | None = None
        self._qd: np.ndarray | None = None
        self._keep = 0.0
        self._period = 1.0

    def reset(self, period: float) -> None:
        """Begin anew, asked every `period` [s]."""
        self._last = self._qd = None
        self._period = period
        self._keep = float(np.exp(-2.0 * np.pi * self.cutoff_hz * period))

    def read(
        self, measurement: Measurement, start: Float[np.ndarray, "... dof"]
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the velocity; `start` is what to believe before there are two."""
        if measurement.qd is not None:
            return measurement.qd
        q = measurement.need("q")
        if self._last is None or self._qd is None:
            self._qd = np.broadcast_to(start, q.shape).copy()
        else:
            raw = (q - self._last) / self._period
            self._qd = self._keep * self._qd + (1.0 - self._keep) * raw
        self._last = np.array(q)
        return self._qd

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        if self._last is None or self._qd is None:
            return {}
        return {"last_q": self._last.copy(), "filtered_qd": self._qd.copy()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called."""
        if "last_q" in state:
            self._last = np.array(state["last_q"])
            self._qd = np.array(state["filtered_qd"])
