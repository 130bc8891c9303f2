"""Zero-phase Butterworth low-pass, for torque and for the friction in it alike."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

Sections = tuple[tuple[float, float, float], ...]
"""Gain, a₁ and a₂ of second-order sections."""

# Both ways it falls by 48 dB an octave: noise that is differentiated twice grows by 12
# and still falls. Higher orders ring for longer at the ends; four is a convention.
ORDER = 4
"""Order of the Butterworth low-pass; run both ways its gain at the cut-off is ½."""


def low_pass(
    signal: Float[np.ndarray, "samples ..."],
    cutoff_hz: float,
    rate_hz: float,
    ends: Literal["odd", "constant"] = "odd",
) -> Float[np.ndarray, "samples ..."]:
    """Take out what is faster than the cut-off, without shifting anything in time.

    A Butterworth filter runs forwards and backwards. Even with the ends continued, the
    first and last 2/cutoff seconds are worth less than the rest.

    Args:
        signal: Evenly spaced values, without gaps; several signals as columns.
        cutoff_hz: Frequency whose amplitude is halved in [Hz].
        rate_hz: Sampling rate in [Hz].
        ends: How the signal is continued: reflected, which keeps a slope, or held,
            which keeps a step's height.
    """
    # Close to half the sampling rate the filter would change next to nothing.
    if cutoff_hz >= 0.45 * rate_hz or len(signal) < 2:
        return signal
    sections = butterworth(cutoff_hz, rate_hz)
    # Three periods: by then the start of the filter has died away to 1e-4.
    pad = min(len(signal) - 1, int(3 * rate_hz / cutoff_hz))
    head, tail = np.zeros((2, pad, *signal.shape[1:]))
    if ends == "odd":
        head = signal[0] - signal[pad:0:-1]
        tail = signal[-1] - signal[-2 : -pad - 2 : -1]
    extended = np.concatenate([signal[0] + head, signal, signal[-1] + tail])
    columns = np.asfortranarray(extended.reshape(len(extended), -1), dtype=float)
    forwards = _filtered(columns, sections)
    both = _filtered(forwards[::-1], sections)[::-1]
    return np.ascontiguousarray(both[pad : len(both) - pad]).reshape(signal.shape)


def _filtered(columns: np.ndarray, sections: Sections) -> np.ndarray:
    """Run the filter forwards once, as if the first value had always been there."""
    from scipy.linalg.lapack import dtbtrs

    # The gain at rest is one, so starting in the steady state of the first value is
    # the same as filtering what is above it from rest.
    y = np.asfortranarray(columns - columns[0])
    x = np.empty_like(y)
    band = np.empty((3, len(y)), order="F")
    for gain, a1, a2 in sections:
        # y_k + a₁ y_{k−1} + a₂ y_{k−2} = gain (x_k + 2 x_{k−1} + x_{k−2}): a banded
        # triangular system. LAPACK solves it without the import of scipy.signal,
        # which takes longer than everything else that identification does.
        y *= gain
        np.copyto(x, y)
        x[2:] += y[:-2]
        y *= 2.0
        x[1:] += y[:-1]
        band[0], band[1] = a2, a1
        dtbtrs(band, x, uplo="U", trans="T", diag="U", overwrite_b=1)
        x, y = y, x
    y += columns[0]
    return y


@lru_cache(maxsize=64)
def butterworth(cutoff_hz: float, rate_hz: float) -> Sections:
    """Design the low-pass: gain, a₁ and a₂ of each second-order section.

    The bilinear transform of s² + 2 sin(θ) s + 1, with frequencies warped so that the
    cut-off stays where it is.
    """
    if not 0.0 < cutoff_hz < 0.5 * rate_hz:
        raise ArgumentError(
            f"A cut-off of {cutoff_hz:g} Hz does not fit a sampling rate of "
            f"{rate_hz:g} Hz; choose one between 0 and {0.5 * rate_hz:g} Hz."
        )
    # The bilinear transform maps ω to tan(ωT/2).
    warped = np.tan(np.pi * cutoff_hz / rate_hz)
    sections = []
    for k in range(ORDER // 2):
        damping = 2.0 * np.sin(np.pi * (2 * k + 1) / (2 * ORDER)) * warped
        scale = 1.0 + damping + warped**2
        a1 = 2.0 * (warped**2 - 1.0) / scale
        a2 = (1.0 - damping + warped**2) / scale
        sections.append((float(warped**2 / scale), float(a1), float(a2)))
    return tuple(sections)
