"""Zero-phase low-pass, derivatives and smoothing splines on an even time base."""

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


def thinned(
    signal: Float[np.ndarray, " samples"], factor: int
) -> Float[np.ndarray, " thinned"]:
    """Keep one sample in `factor`, through a filter that lets nothing fold back.

    The filter is flat to a tenth of the new rate and 80 dB down where folding would
    reach that band; it is five new samples long and does not shift time.
    """
    if factor == 1:
        return signal
    from scipy.signal import firwin

    taps = firwin(6 * factor + 1, 0.5 / factor, window=("kaiser", 8.0), fs=1.0)
    reach = 3 * factor
    padded = np.concatenate(
        [
            2.0 * signal[0] - signal[reach:0:-1],
            signal,
            2.0 * signal[-1] - signal[-2 : -reach - 2 : -1],
        ]
    )
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps.size)
    result: np.ndarray = windows[::factor] @ taps
    return result


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


def differentiate(
    signal: Float[np.ndarray, " samples"], step: float
) -> Float[np.ndarray, " samples"]:
    """Differentiate by five-point central differences, fourth-order accurate.

    Args:
        signal: Evenly spaced values.
        step: Time between them in [s].
    """
    slope: np.ndarray = np.gradient(signal, step)
    if signal.size >= 5:
        inner = slope[2:-2]
        np.subtract(signal[3:-1], signal[1:-3], out=inner)
        inner *= 8.0
        inner -= signal[4:]
        inner += signal[:-4]
        inner /= 12.0 * step
    return slope


def smoothing_spline(
    signal: Float[np.ndarray, " samples"], cutoff_hz: float, rate_hz: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit a quintic smoothing spline; return value, first and second derivative.

    Knots stand two to a period of the cut-off, so the spline cannot follow anything
    faster; between them it is the least-squares fit.
    """
    from scipy.interpolate import make_lsq_spline

    count = max(2, int(2 * cutoff_hz * (signal.size - 1) / rate_hz))
    count = min(count, signal.size - 6)
    if count < 2:
        raise ArgumentError(
            f"A smoothing spline needs more than {signal.size} samples in a segment."
        )
    x = np.arange(signal.size, dtype=float)
    inner = np.linspace(0.0, signal.size - 1.0, count)[1:-1]
    knots = np.r_[[0.0] * 6, inner, [signal.size - 1.0] * 6]
    spline = make_lsq_spline(x, signal, knots, k=5)
    slope = spline.derivative()(x) * rate_hz
    return spline(x), slope, spline.derivative(2)(x) * rate_hz**2


def averaged_sign(
    speed: Float[np.ndarray, " samples"], dead_band: float = 0.0
) -> Float[np.ndarray, " samples"]:
    """Return the sign of a speed, averaged over each sample's own time step.

    Where the speed passes zero between two samples the average knows when, so that a
    later low-pass sees the step at the right moment. Below the dead band the direction
    is unknown and counts as zero.
    """
    sign = np.where(np.abs(speed) > dead_band, np.sign(speed), 0.0)
    crossing = np.flatnonzero(sign[1:] * sign[:-1] < 0)
    before, after = speed[crossing], speed[crossing + 1]
    share = before / (before - after)  # where in the step the speed is zero
    early = share < 0.5
    sign[crossing[early]] *= 2.0 * share[early]
    late = crossing[~early]
    sign[late + 1] *= 2.0 * (1.0 - share[~early])
    return sign
