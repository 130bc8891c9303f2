"""What the user left open: cut-off, lag, velocity source, decimation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.explanation import (
    Motion,
    bases_for,
    explained_band,
    find_bandwidth,
    find_lag,
    residuals,
)
from armwise.recordings.smoothing import Settings, Smooth, shifted, smooth
from armwise.recordings.spectra import LONGEST, motion_bandwidth

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.recordings.stretches import Stretch

ROWS = 3000
"""Rows that are enough to find a lag and a band."""

STILL = 0.005
"""Share of a joint's top speed below which it counts as standing still."""

RESOLUTION = 0.0005
"""Share of a joint's top speed below which its direction is not known."""


def choose(
    parts: Sequence[Stretch],
    asked: Settings | None,
    arm: Arm | None,
    lag: float | None,
) -> Settings:
    """Fill in what was not asked for, from the longest stretch.

    Args:
        parts: The stretches of a recording.
        asked: Settings with a cut-off that was asked for; None to find one.
        arm: The arm, to explain its torques.
        lag: Delay of the torque in [s]; None to find it.
    """
    from threadpoolctl import threadpool_limits

    # Threads cost more than they give on matrices this small.
    with threadpool_limits(1):
        return _choose(max(parts, key=len), asked, arm, lag)


def _choose(
    longest: Stretch, asked: Settings | None, arm: Arm | None, lag: float | None
) -> Settings:
    """Decide one thing after the other, from one stretch."""
    first = asked or Settings(motion_bandwidth(_positions(longest), longest.rate_hz))
    piece = _window(longest, first.cutoff_hz)
    chosen = _with_velocity(piece, first)
    if chosen.velocity == "measured" and asked is None:
        wider = motion_bandwidth(_integrated(longest), longest.rate_hz)
        chosen = replace(chosen, cutoff_hz=max(wider, chosen.cutoff_hz))
    if longest.tau:
        chosen = _with_torque(
            _window(longest, chosen.cutoff_hz), chosen, arm, lag, asked
        )
    return replace(chosen, decimation=_decimation(chosen, longest.rate_hz))


def speed_resolution(qd: Float[np.ndarray, "samples dof"]) -> np.ndarray:
    """Return the speed below which each joint's direction means nothing."""
    return RESOLUTION * _top_speed(qd)


def moving_pieces(
    qd: Float[np.ndarray, "samples dof"], rate_hz: float, longest_rest: float = 0.5
) -> list[tuple[int, int]]:
    """Return the rows between long rests of the whole arm: (first, last + 1).

    At rest friction may take any value, so a model learns nothing true from it.
    """
    top = _top_speed(qd)
    joints = top > 0.01 * top.max()
    still = np.all(np.abs(qd[:, joints]) < STILL * top[joints], axis=1)
    edges = np.flatnonzero(np.diff(still, prepend=False, append=False))
    rests = [
        (a, b)
        for a, b in edges.reshape(-1, 2)
        if b - a > longest_rest * rate_hz or (a == 0 or b == len(qd))
    ]
    starts = [0, *(int(b) for _, b in rests)]
    stops = [*(int(a) for a, _ in rests), len(qd)]
    return [(a, b) for a, b in zip(starts, stops, strict=True) if b > a]


def _top_speed(qd: np.ndarray) -> np.ndarray:
    every = max(1, len(qd) // LONGEST)
    top: np.ndarray = np.percentile(np.abs(qd[::every]), 99.5, axis=0)
    return top


def _positions(stretch: Stretch) -> np.ndarray:
    return np.stack([signal[:LONGEST] for signal in stretch.q])


def _integrated(stretch: Stretch) -> np.ndarray:
    speeds = np.stack([signal[:LONGEST] for signal in stretch.qd])
    return np.cumsum(speeds, axis=1) / stretch.rate_hz


def _window(stretch: Stretch, cutoff_hz: float) -> Stretch:
    """Cut the middle of a stretch, long enough for what has to be found."""
    thin = stretch.rate_hz / min(10.0 * cutoff_hz, stretch.rate_hz)
    spare = max(len(stretch) - int(2 * ROWS * thin), 0)
    return stretch.window(spare // 2, len(stretch) - (spare - spare // 2))


def _decimation(settings: Settings, rate_hz: float) -> int:
    """Keep ten samples a period of the cut-off: more say nothing new."""
    if not np.isfinite(settings.cutoff_hz):
        return 1
    half = int(rate_hz / (20.0 * settings.cutoff_hz))
    return 2 * half if half else max(1, int(rate_hz / (10.0 * settings.cutoff_hz)))


def _with_velocity(stretch: Stretch, settings: Settings) -> Settings:
    """Take the measured velocity if it tells the same story with less noise."""
    if not stretch.qd or settings.derivatives == "spline":
        return settings
    made = smooth(stretch, settings)
    measured = smooth(stretch, replace(settings, velocity="measured"))
    if made is None or measured is None:
        return settings
    slope = made.qdd
    late = -np.sum((measured.qd - made.qd) * slope) / max(np.sum(slope**2), 1e-300)
    late = float(late) if abs(late) * stretch.rate_hz > 0.25 else 0.0
    aligned = shifted_columns(measured.qd, late * stretch.rate_hz)
    scale = float(np.sum(aligned * made.qd) / max(np.sum(made.qd**2), 1e-300))
    if not 0.97 < scale < 1.03 or abs(late) > 0.05:
        note = (
            f"The measured velocity does not fit the position (scale {scale:.3g}, "
            f"{1e3 * late:.1f} ms late); velocity is made from position."
        )
        return replace(settings, notes=(*settings.notes, note))
    quieter = np.mean(
        measured.qdd.std(axis=0) / np.maximum(made.qdd.std(axis=0), 1e-12)
    )
    if quieter > 0.99:
        return settings
    return replace(settings, velocity="measured", velocity_lag=late)


def shifted_columns(block: np.ndarray, samples: float) -> np.ndarray:
    """Read every column so many samples later."""
    return np.stack([shifted(column, samples) for column in block.T], axis=1)


def _with_torque(
    stretch: Stretch,
    settings: Settings,
    arm: Arm | None,
    lag: float | None,
    asked: Settings | None,
) -> Settings:
    """Find the lag, the band in which motion explains torque, and earlier filters."""
    thin = _decimation(settings, stretch.rate_hz)
    data = smooth(stretch, replace(settings, decimation=thin))
    rate = stretch.rate_hz / thin
    piece = None if data is None else _longest_moving(data, rate)
    known = replace(settings, lag=lag or 0.0)
    if piece is None:
        return known
    motion = Motion(rate, piece.q, piece.qd, piece.qdd, speed_resolution(piece.qd))
    bases = bases_for(arm, motion, piece.tau)
    if sum(basis.smooth.shape[1] for basis in bases) * 5 > piece.tau.size:
        note = "Too little motion to find a lag or a cut-off from the torque."
        return replace(known, notes=(*known.notes, note))
    cutoff = settings.cutoff_hz
    if lag is None and arm is not None:
        found = find_lag(
            bases, lambda s: shifted_columns(piece.tau, s * rate), rate, cutoff
        )
        sure = abs(found.seconds) > max(3.0 * found.std, 1.0 / stretch.rate_hz)
        known = replace(known, lag=found.seconds if sure else 0.0)
    torque = shifted_columns(piece.tau, known.lag * rate)
    early = find_bandwidth(bases, torque, rate, min(cutoff, 0.45 * rate))
    if asked is None:
        left = residuals(bases, torque, rate, early)
        cutoff = explained_band(left, torque, rate, cutoff)
    return replace(known, cutoff_hz=cutoff, torque_bandwidth_hz=min(early, cutoff))


def _longest_moving(data: Smooth, rate_hz: float) -> Smooth | None:
    pieces = moving_pieces(data.qd, rate_hz)
    if not pieces:
        return None
    a, b = max(pieces, key=lambda piece: piece[1] - piece[0])
    spare = max(b - a - ROWS, 0) // 2
    rows = slice(a + spare, b - spare)
    if rows.stop - rows.start < 64:
        return None
    return Smooth(
        *(
            getattr(data, name)[rows]
            for name in ("time", "q", "qd", "qdd", "tau", "wrench")
        )
    )
