"""Filtering without delay, of data and references alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class ZeroPhase:
    """A Butterworth low-pass run forwards and backwards.

    Attributes:
        cutoff_hz: Where it begins to cut, in [Hz].
        order: Order of one pass.
    """

    cutoff_hz: float = 8.0
    order: int = 2

    def __post_init__(self) -> None:
        if not self.cutoff_hz > 0 or self.order < 1:
            raise ArgumentError("A low-pass needs a positive cut-off and order.")

    def apply(
        self, signal: Float[np.ndarray, "samples ..."], rate_hz: float
    ) -> Float[np.ndarray, "samples ..."]:
        """Filter along the first axis."""
        from scipy.signal import butter, sosfiltfilt

        if self.cutoff_hz >= rate_hz / 2:
            return signal
        sos = butter(self.order, self.cutoff_hz, fs=rate_hz, output="sos")
        pad = min(len(signal) - 1, int(3 * rate_hz / self.cutoff_hz))
        filtered: np.ndarray = sosfiltfilt(sos, signal, axis=0, padlen=pad)
        return filtered

    def matrix(self, samples: int, rate_hz: float) -> Float[np.ndarray, "s s"]:
        """The same as a matrix acting on a whole trial."""
        return self.apply(np.eye(samples), rate_hz)
