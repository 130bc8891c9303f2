"""What the user left open: cut-off, lag, velocity source, decimation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.explanation import (
    residuals,
    with_friction,
)
from armwise.recordings.lag import explained_band, find_bandwidth, find_lag
from armwise.recordings.problem import ROWS, decimation_for, problem_of
from armwise.recordings.smoothing import (
    Settings,
    shifted_columns,
)
from armwise.recordings.spectra import LONGEST, Band, motion_band
from armwise.recordings.velocity import with_velocity

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings.stretches import Stretch


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
