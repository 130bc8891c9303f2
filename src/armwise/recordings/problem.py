"""The torque of a recording, and what may explain it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.explanation import Basis, Motion, bases_for
from armwise.recordings.rests import moving_pieces, speed_resolution
from armwise.recordings.smoothing import Settings, Smooth, smooth

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings.stretches import Stretch


ROWS = 3000
"""Rows that are enough to find a lag and a band."""


def problem_of(
    stretch: Stretch, settings: Settings, arm: Arm | None
) -> tuple[Smooth, list[Basis], float] | None:
    """Set up the explanation of the torque; None if there is too little to go by."""
    if not stretch.tau:
        return None
    thin = decimation_for(settings, stretch.rate_hz)
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


def decimation_for(settings: Settings, rate_hz: float) -> int:
    """Keep ten samples a period of the cut-off: more say nothing new."""
    if not np.isfinite(settings.cutoff_hz):
        return 1
    half = int(rate_hz / (20.0 * settings.cutoff_hz))
    return 2 * half if half else max(1, int(rate_hz / (10.0 * settings.cutoff_hz)))


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
