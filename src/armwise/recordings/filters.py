"""Decimation, derivatives and smoothing splines on an even time base."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


def thinned(
    signal: Float[np.ndarray, " samples"], factor: int
) -> Float[np.ndarray, " thinned"]:
    """Keep one sample in `factor`, through a filter that lets nothing fold back.

    The filter is flat to a tenth of the new rate and 80 dB down where folding would
    reach that band; it is five new samples long and does not shift time.
    """
    if factor == 1:
        return signal
    # A sinc under a Kaiser window; β = 8 gives the 80 dB. (scipy.signal has the same,
    # but takes longer to import than a log takes to prepare.)
    # Three lobes of the sinc on either side: three new samples each way.
    offsets = np.arange(-3 * factor, 3 * factor + 1)
    taps = np.sinc(offsets / factor) * np.kaiser(offsets.size, 8.0)
    taps /= taps.sum()
    reach = 3 * factor
    padded = np.concatenate(
        [
            # Reflected through the end point: a slope goes on, a step does not arise.
            2.0 * signal[0] - signal[reach:0:-1],
            signal,
            2.0 * signal[-1] - signal[-2 : -reach - 2 : -1],
        ]
    )
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps.size)
    result: np.ndarray = windows[::factor] @ taps
    return result


def differentiate(
    signal: Float[np.ndarray, " samples"], step: float
) -> Float[np.ndarray, " samples"]:
    """Differentiate by five-point central differences, fourth-order accurate.

    Args:
        signal: Evenly spaced values.
        step: Time between them in [s].
    """
    slope: np.ndarray = np.gradient(signal, step)
    # The two outermost samples at each end stay at second order or less; preparation
    # trims them with the filter's own edge.
    if signal.size >= 5:
        inner = slope[2:-2]
        np.subtract(signal[3:-1], signal[1:-3], out=inner)
        # (8 (f₁ − f₋₁) − (f₂ − f₋₂)) / 12 h, in place: long logs are not copied.
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
    # Quintic, so that the acceleration is a cubic spline and smooth itself.
    from scipy.interpolate import make_lsq_spline

    count = max(2, int(2 * cutoff_hz * (signal.size - 1) / rate_hz))
    # Fewer coefficients than samples, or the least squares would be singular.
    count = min(count, signal.size - 6)
    if count < 2:
        raise ArgumentError(
            f"A smoothing spline needs more than {signal.size} samples in a segment."
        )
    x = np.arange(signal.size, dtype=float)
    inner = np.linspace(0.0, signal.size - 1.0, count)[1:-1]
    # Six-fold at the ends, degree plus one: the spline ends where the samples do.
    knots = np.r_[[0.0] * 6, inner, [signal.size - 1.0] * 6]
    spline = make_lsq_spline(x, signal, knots, k=5)
    slope = spline.derivative()(x) * rate_hz
    return spline(x), slope, spline.derivative(2)(x) * rate_hz**2
