"""What the user left open: cut-off, lag, velocity source, decimation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.alignment.lag import explained_band, find_bandwidth, find_lag
from armwise.recordings.alignment.torque_basis import (
    ROWS,
    decimation_for,
    problem_of,
    residuals,
    with_friction,
)
from armwise.recordings.smoothing import Settings, Smooth, shifted_columns, smooth
from armwise.recordings.spectra import LONGEST, Band, band_powers, motion_band

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings.stretches import Stretch


# Which velocity to trust: the measured one, or the derivative of position.


def with_velocity(stretch: Stretch, settings: Settings, arm: Arm | None) -> Settings:
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
    thin = decimation_for(settings, stretch.rate_hz)
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
    problem = problem_of(stretch, settings, arm)
    if problem is None:
        return None
    piece, bases, rate = problem
    shown = min(settings.cutoff_hz, 0.45 * rate)
    left = residuals(with_friction(bases, rate, shown), piece.tau)
    return float(np.log(np.maximum((left**2).sum(axis=0), 1e-300)).mean())


def _noise(data: Smooth, settings: Settings) -> float:
    """Return how strong accelerations are in the last octave below the cut-off."""
    rate = 1.0 / float(data.time[1] - data.time[0])
    powers = []
    for column in data.qdd.T:
        centres, power = band_powers(column, rate)
        last = (centres > 0.5 * settings.cutoff_hz) & (centres < settings.cutoff_hz)
        powers.append(float(power[last].mean()) if last.any() else 0.0)
    return float(np.exp(np.mean(np.log(np.maximum(powers, 1e-300)))))


# What the user left open: cut-off, lag, velocity source, decimation.


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
    chosen = with_velocity(_window(longest, look.cutoff_hz), look, arm)
    chosen = replace(chosen, cutoff_hz=first.cutoff_hz)
    if chosen.velocity == "measured":
        other = motion_band(_integrated(longest), longest.rate_hz)
        band = Band(max(band.least, other.least), max(band.most, other.most))
    wanted = chosen.cutoff_hz if asked else band.most
    chosen = replace(chosen, cutoff_hz=min(wanted, band.most))
    if lag is not None:
        chosen = replace(chosen, lag=lag, wrench_lag=lag)
    if longest.tau:
        piece = _window(longest, chosen.cutoff_hz)
        chosen = _with_torque(piece, chosen, arm, lag, None if asked else band.least)
    if asked:
        early = chosen.torque_bandwidth_hz
        limit = early if early < chosen.cutoff_hz else np.inf
        chosen = replace(chosen, cutoff_hz=wanted, torque_bandwidth_hz=limit)
    thin = decimation_for(chosen, longest.rate_hz)
    return replace(chosen, decimation=thin, rate_hz=longest.rate_hz)


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


def _with_torque(
    stretch: Stretch,
    settings: Settings,
    arm: Arm | None,
    lag: float | None,
    least_hz: float | None,
) -> Settings:
    """Find the lag, the band in which motion explains torque, and earlier filters."""
    known = settings
    problem = problem_of(stretch, settings, arm)
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
