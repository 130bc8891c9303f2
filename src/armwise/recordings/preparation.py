"""How samples came out of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class Preparation:
    """How samples came out of a recording; the defaults say: given as they are.

    Attributes:
        cutoff_hz: Cut-off of the zero-phase low-pass in [Hz]; None when not filtered.
        cutoff_is_automatic: Whether the cut-off was chosen from the spectra.
        sample_rate_hz: Rate before decimation in [Hz].
        decimation: One sample kept out of so many.
        torque_bandwidth_hz: Low-pass the torque went through, ours or the robot's own,
            in [Hz]; what friction's steps look like in the torque. None: untouched.
        speed_resolution: Speed below which a joint's direction is not known, per joint
            in [rad/s] or [m/s].
        lag: Delay of the torque behind the motion, taken out, in [s].
        wrench_lag: Delay of the wrench, taken out, in [s].
        velocity_lag: Delay of the measured velocity, taken out, in [s].
        derivatives: How velocity and acceleration were made.
        rows_read: Rows of the recording that went in.
        rows_dropped: Why rows went missing → how many.
        gaps: Number of interruptions the samples were cut at.
        notes: What the user should know, in words.
    """

    cutoff_hz: float | None = None
    cutoff_is_automatic: bool = False
    sample_rate_hz: float | None = None
    decimation: int = 1
    torque_bandwidth_hz: float | None = None
    speed_resolution: tuple[float, ...] = ()
    lag: float = 0.0
    wrench_lag: float = 0.0
    velocity_lag: float = 0.0
    derivatives: str = "given"
    rows_read: int = 0
    rows_dropped: tuple[tuple[str, int], ...] = ()
    gaps: int = 0
    notes: tuple[str, ...] = ()


def joined(parts: Sequence[Preparation]) -> Preparation:
    """Describe several preparations as one; what differs between them is dropped."""
    common = {
        f.name: getattr(parts[0], f.name)
        for f in fields(Preparation)
        if len({getattr(p, f.name) for p in parts}) == 1
    }
    dropped: dict[str, int] = {}
    for part in parts:
        for why, count in part.rows_dropped:
            dropped[why] = dropped.get(why, 0) + count
    rates = [p.sample_rate_hz for p in parts if p.sample_rate_hz is not None]
    resolutions = [p.speed_resolution for p in parts if p.speed_resolution]
    common |= {
        "sample_rate_hz": float(np.mean(rates)) if rates else None,
        "speed_resolution": tuple(map(max, zip(*resolutions, strict=True))),
        "rows_read": sum(p.rows_read for p in parts),
        "rows_dropped": tuple(dropped.items()),
        "gaps": sum(p.gaps for p in parts),
        "notes": tuple(dict.fromkeys(n for p in parts for n in p.notes)),
    }
    return Preparation(**common)
