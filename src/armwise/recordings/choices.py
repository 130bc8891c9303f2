"""What the user left open: cut-off, lag, velocity source, decimation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.explanation import (
    Basis,
    Motion,
    bases_for,
    explained_band,
    find_bandwidth,
    find_lag,
    residuals,
    with_friction,
)
from armwise.recordings.smoothing import Settings, Smooth, shifted, smooth
from armwise.recordings.spectra import LONGEST, Band, band_powers, motion_band

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
    band = motion_band(_positions(longest), longest.rate_hz)
    first = asked or Settings(band.most)
    look = replace(first, cutoff_hz=min(first.cutoff_hz, 2.0 * band.most))
    chosen = _with_velocity(_window(longest, look.cutoff_hz), look, arm)
    chosen = replace(chosen, cutoff_hz=first.cutoff_hz)
    if chosen.velocity == "measured":
        other = motion_band(_integrated(longest), longest.rate_hz)
        band = Band(max(band.least, other.least), max(band.most, other.most))
    wanted = chosen.cutoff_hz if asked else band.most
    chosen = replace(chosen, cutoff_hz=min(wanted, band.most))
    if longest.tau:
        piece = _window(longest, chosen.cutoff_hz)
        chosen = _with_torque(piece, chosen, arm, lag, None if asked else band.least)
    if asked:
        early = chosen.torque_bandwidth_hz
        limit = early if early < chosen.cutoff_hz else np.inf
        chosen = replace(chosen, cutoff_hz=wanted, torque_bandwidth_hz=limit)
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


def _with_velocity(stretch: Stretch, settings: Settings, arm: Arm | None) -> Settings:
    """Take the measured velocity if it tells the same story, and tells it better.

    Better is what explains the torque with less left over; without a torque, what has
    less noise.
    """
    if not stretch.qd or settings.derivatives == "spline":
        return settings
    measured, note = _aligned(stretch, settings)
    if note:
        return replace(settings, notes=(*settings.notes, note))
    ours = _unexplained(stretch, settings, arm)
    theirs = _unexplained(stretch, measured, arm)
    if ours is not None and theirs is not None:
        return measured if theirs < ours - 0.02 else settings
    thin = _decimation(settings, stretch.rate_hz)
    data = [smooth(stretch, replace(x, decimation=thin)) for x in (settings, measured)]
    if data[0] is None or data[1] is None:
        return settings
    quieter = _noise(data[1], settings) < 0.8 * _noise(data[0], settings)
    return measured if quieter else settings


def _aligned(stretch: Stretch, settings: Settings) -> tuple[Settings, str]:
    """Find how late the measured velocity is; also a note if it does not fit at all."""
    made = smooth(stretch, settings)
    measured = smooth(stretch, replace(settings, velocity="measured"))
    if made is None or measured is None:
        return settings, ""
    slope = made.qdd
    late = -np.sum((measured.qd - made.qd) * slope) / max(np.sum(slope**2), 1e-300)
    late = float(late) if abs(late) * stretch.rate_hz > 0.25 else 0.0
    aligned = shifted_columns(measured.qd, late * stretch.rate_hz)
    scale = float(np.sum(aligned * made.qd) / max(np.sum(made.qd**2), 1e-300))
    if not 0.97 < scale < 1.03 or abs(late) > 0.05:
        return settings, (
            f"The measured velocity does not fit the position (scale {scale:.3g}, "
            f"{1e3 * late:.1f} ms late); velocity is made from position."
        )
    return replace(settings, velocity="measured", velocity_lag=late), ""


def _unexplained(stretch: Stretch, settings: Settings, arm: Arm | None) -> float | None:
    """Return the joints' mean log share of torque power left, if it can be told."""
    problem = _problem(stretch, settings, arm)
    if problem is None:
        return None
    piece, bases, rate = problem
    shown = min(settings.cutoff_hz, 0.45 * rate)
    left = residuals(with_friction(bases, rate, shown), piece.tau)
    return float(np.log(np.maximum((left**2).sum(axis=0), 1e-300)).mean())


def _problem(
    stretch: Stretch, settings: Settings, arm: Arm | None
) -> tuple[Smooth, list[Basis], float] | None:
    """Set up the explanation of the torque; None if there is too little to go by."""
    if not stretch.tau:
        return None
    thin = _decimation(settings, stretch.rate_hz)
    data = smooth(stretch, replace(settings, decimation=thin))
    rate = stretch.rate_hz / thin
    piece = None if data is None else _longest_moving(data, rate)
    if piece is None:
        return None
    motion = Motion(rate, piece.q, piece.qd, piece.qdd, speed_resolution(piece.qd))
    bases = bases_for(arm, motion, piece.tau)
    if sum(basis.smooth.shape[1] for basis in bases) * 5 > piece.tau.size:
        return None
    return piece, bases, rate


def _noise(data: Smooth, settings: Settings) -> float:
    """Return how strong accelerations are in the last octave below the cut-off."""
    rate = 1.0 / float(data.time[1] - data.time[0])
    powers = []
    for column in data.qdd.T:
        centres, power = band_powers(column, rate)
        last = (centres > 0.5 * settings.cutoff_hz) & (centres < settings.cutoff_hz)
        powers.append(float(power[last].mean()) if last.any() else 0.0)
    return float(np.exp(np.mean(np.log(np.maximum(powers, 1e-300)))))


def shifted_columns(block: np.ndarray, samples: float) -> np.ndarray:
    """Read every column so many samples later."""
    return np.stack([shifted(column, samples) for column in block.T], axis=1)


def _with_torque(
    stretch: Stretch,
    settings: Settings,
    arm: Arm | None,
    lag: float | None,
    least_hz: float | None,
) -> Settings:
    """Find the lag, the band in which motion explains torque, and earlier filters."""
    known = replace(settings, lag=lag or 0.0)
    problem = _problem(stretch, settings, arm)
    if problem is None:
        note = "Too little motion to find a lag or a cut-off from the torque."
        return replace(known, notes=(*known.notes, note))
    piece, bases, rate = problem
    cutoff = settings.cutoff_hz
    if lag is None and arm is not None:
        found = find_lag(
            bases, lambda s: shifted_columns(piece.tau, s * rate), rate, cutoff
        )
        sure = abs(found.seconds) > max(3.0 * found.std, 1.0 / stretch.rate_hz)
        known = replace(known, lag=found.seconds if sure else 0.0)
    torque = shifted_columns(piece.tau, known.lag * rate)
    early = find_bandwidth(bases, torque, rate, min(cutoff, 0.45 * rate))
    if least_hz is not None:
        left = residuals(with_friction(bases, rate, early), torque)
        cutoff = max(least_hz, explained_band(left, torque, rate, cutoff))
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
