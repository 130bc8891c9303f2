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
    columns = np.asarray(extended.reshape(len(extended), -1), dtype=float)
    forwards = _filtered(columns, sections)
    both = _filtered(forwards[::-1], sections)[::-1]
    return np.ascontiguousarray(both[pad : len(both) - pad]).reshape(signal.shape)


def low_pass_gain(frequency: Float[np.ndarray, " any"]) -> Float[np.ndarray, " any"]:
    """What `low_pass` leaves of a wave, by its frequency over the cut-off."""
    # Both ways: the square of Butterworth's gain.
    return np.asarray(1.0 / (1.0 + frequency ** (2 * ORDER)))


# The slowest pole, sin(π/8) of the cut-off, fades by exp(−2.4) a period: 3e-9 after
# eight.
_REACH = 8.0
"""Periods of the cut-off beyond which a signal has no effect."""


def filter_reach(cutoff_hz: float, rate_hz: float) -> int:
    """How many samples away a signal still changes what a low-pass makes of it."""
    return int(_REACH * rate_hz / cutoff_hz) + 1


def _filtered(columns: np.ndarray, sections: Sections) -> np.ndarray:
    """Run the filter forwards once, as if the first value had always been there.

    Plain products of arrays: SciPy's filters would take longer to import than
    everything else that identification does.
    """
    response, memory, handed_on, power = _responses(sections)
    # The gain at rest is one, so starting in the steady state of the first value is
    # the same as filtering what is above it from rest.
    initial = columns[0].copy()
    count, width = columns.shape
    blocks = -(-count // _BLOCK)
    padded = np.zeros((blocks * _BLOCK, width))
    padded[:count] = columns - initial
    # All blocks side by side, so that each step is one large product.
    x = padded.reshape(blocks, _BLOCK, width).swapaxes(0, 1).reshape(_BLOCK, -1)
    # Every block as if it began at rest, then what it inherits from those before it.
    y = response @ x
    states = handed_on @ x
    reach = width
    # s_b = e_b + A s_{b−1} in steps that double (a prefix sum): after each, a state
    # holds what so many blocks before it hand on.
    while reach < x.shape[1]:
        inherited = states[:, reach:] + power @ states[:, :-reach]
        states = np.concatenate([states[:, :reach], inherited], axis=1)
        power, reach = power @ power, 2 * reach
    y[:, width:] += memory @ states[:, :-width]
    ordered = y.reshape(_BLOCK, blocks, width).swapaxes(0, 1).reshape(-1, width)
    return np.asarray(ordered[:count] + initial)


# Work grows with the block, the length of the prefix sum with the number of blocks.
# Judgement.
_BLOCK = 48
"""Samples that are filtered by one matrix product."""


@lru_cache(maxsize=64)
def _responses(
    sections: Sections,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What a block's output is of its input and of the state before it; and what the
    state at its end is of both, the input first.
    """
    A, B, C, D = _state_space(sections)
    # C Aᵏ and Aᵏ B for every sample of a block.
    memory = np.empty((_BLOCK, len(A)))
    handed_on = np.empty((len(A), _BLOCK))
    row, column = C, B
    for k in range(_BLOCK):
        memory[k], handed_on[:, -1 - k] = row, column
        row, column = row @ A, A @ column
    impulse = np.concatenate([[D], memory[:-1] @ B])
    lag = np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK))
    response = np.where(lag >= 0, impulse[np.maximum(lag, 0)], 0.0)
    return response, memory, handed_on, np.linalg.matrix_power(A, _BLOCK)


def _state_space(
    sections: Sections,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """A, B, C, D of the sections in a row: s' = A s + B x, y = C s + D x."""
    size = 2 * len(sections)
    # One step of every unit state, and of a unit input, gives the columns.
    value = np.eye(size + 1)[-1]
    states = np.eye(size + 1)[:-1]
    new = np.empty_like(states)
    for k, (gain, a1, a2) in enumerate(sections):
        s1, s2 = states[2 * k], states[2 * k + 1]
        y = gain * value + s1  # y + a₁ y₋₁ + a₂ y₋₂ = gain (x + 2 x₋₁ + x₋₂)
        new[2 * k] = 2.0 * gain * value - a1 * y + s2
        new[2 * k + 1] = gain * value - a2 * y
        value = y
    return new[:, :-1], new[:, -1], value[:-1], float(value[-1])


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
