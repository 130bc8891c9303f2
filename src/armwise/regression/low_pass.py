"""Zero-phase Butterworth low-pass, for torque and for the friction in it alike."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

ORDER = 4
"""Order of the Butterworth low-pass; run both ways its gain at the cut-off is ½."""


def low_pass(
    signal: Float[np.ndarray, " samples"],
    cutoff_hz: float,
    rate_hz: float,
    ends: Literal["odd", "constant"] = "odd",
) -> Float[np.ndarray, " samples"]:
    """Take out what is faster than the cut-off, without shifting anything in time.

    A Butterworth filter runs forwards and backwards. Even with the ends continued, the
    first and last 2/cutoff seconds are worth less than the rest.

    Args:
        signal: Evenly spaced values, without gaps.
        cutoff_hz: Frequency whose amplitude is halved in [Hz].
        rate_hz: Sampling rate in [Hz].
        ends: How the signal is thought to go on: reflected, which keeps a slope, or
            held, which keeps a step's height.
    """
    from scipy.signal import sosfiltfilt

    if cutoff_hz >= 0.45 * rate_hz or signal.size < 2:
        return signal
    pad = min(signal.size - 1, int(3 * rate_hz / cutoff_hz))
    sections = butterworth(cutoff_hz, rate_hz)
    filtered: np.ndarray = sosfiltfilt(sections, signal, padtype=ends, padlen=pad)
    return filtered


@lru_cache(maxsize=64)
def butterworth(cutoff_hz: float, rate_hz: float) -> Any:
    """Design the low-pass as second-order sections."""
    from scipy.signal import butter

    if not 0.0 < cutoff_hz < 0.5 * rate_hz:
        raise ArgumentError(
            f"A cut-off of {cutoff_hz:g} Hz does not fit a sampling rate of "
            f"{rate_hz:g} Hz; choose one between 0 and {0.5 * rate_hz:g} Hz."
        )
    return butter(ORDER, 2.0 * cutoff_hz / rate_hz, output="sos")
