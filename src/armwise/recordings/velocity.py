"""Which velocity to trust: the measured one, or the derivative of position."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.explanation import residuals, with_friction
from armwise.recordings.problem import decimation_for, problem_of
from armwise.recordings.smoothing import Settings, Smooth, shifted_columns, smooth
from armwise.recordings.spectra import band_powers

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings.stretches import Stretch


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
