"""Preparation: how samples come out of a recording, complete enough to be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

import numpy as np

from armwise.errors import ArgumentError

VelocitySource = Literal["given", "measured", "position"]
DerivativeMethod = Literal["given", "differences", "spline"]


@dataclass(frozen=True)
class Preparation:
    """How samples come out of a recording; the defaults say: given as they are.

    The settings come first; `prepare(..., like=)` repeats them on other recordings.
    What they met in one recording follows, from `speed_resolution` on.

    Attributes:
        cutoff_hz: Cut-off of the zero-phase low-pass in [Hz]; None when not filtered.
        cutoff_is_automatic: Whether the cut-off was chosen from the spectra.
        sample_rate_hz: Rate before decimation in [Hz], for which the decimation is
            meant; None: the decimation holds at any rate.
        decimation: One sample kept out of so many.
        torque_bandwidth_hz: Low-pass the torque went through, ours or the robot's own,
            in [Hz]; what friction's steps look like in the torque. None: untouched.
        lag: Delay of the torque behind the motion, taken out, in [s].
        lag_std: How well that delay is known in [s], where it is to be fitted beside
            all parameters; None: it was given, or is not to be fitted.
        lag_doubt: How far a delay may be off in [s] that is not fitted beside them, as
            it is hardly determined or fast motion alone shows it; infinite where
            nothing does, None where it was given or fitted.
        torque_scale: What each joint's recorded torque was multiplied by, because the
            joints contradicted each other; empty where they do not.
        torque_scale_std: Standard deviation of each of these factors, relative.
        wrench_lag: Delay of the wrench, taken out, in [s].
        velocity_lag: Delay of the measured velocity, taken out, in [s].
        velocity: Whether velocity was measured or made from position.
        derivatives: Central differences of filtered signals, or a smoothing spline.
        ignores_slow: For each joint, whether rows in which it hardly moves are left out
            of a fit: its friction there is a little short of what it is in motion.
        speed_resolution: Speed below which a joint's direction is not known, per joint
            in [rad/s] or [m/s].
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
    lag: float = 0.0
    lag_std: float | None = None
    lag_doubt: float | None = None
    torque_scale: tuple[float, ...] = ()
    torque_scale_std: tuple[float, ...] = ()
    wrench_lag: float = 0.0
    velocity_lag: float = 0.0
    velocity: VelocitySource = "given"
    derivatives: DerivativeMethod = "given"
    ignores_slow: tuple[bool, ...] = ()
    speed_resolution: tuple[float, ...] = ()
    rows_read: int = 0
    rows_dropped: tuple[tuple[str, int], ...] = ()
    gaps: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in (
            ("velocity", VelocitySource),
            ("derivatives", DerivativeMethod),
        ):
            if getattr(self, name) not in get_args(kind):
                raise ArgumentError(
                    f"{name} must be one of {', '.join(get_args(kind))}, not "
                    f"{getattr(self, name)!r}."
                )

    @property
    def settings(self) -> Preparation:
        """The settings alone, without what they met in one recording."""
        return replace(
            self,
            cutoff_is_automatic=False,
            velocity="measured" if self.velocity == "measured" else "position",
            derivatives="spline" if self.derivatives == "spline" else "differences",
            speed_resolution=(),
            rows_read=0,
            rows_dropped=(),
            gaps=0,
            notes=(),
        )

    @property
    def low_pass_hz(self) -> float:
        """Cut-off of the low-pass in [Hz]; infinite when not filtered."""
        return np.inf if self.cutoff_hz is None else self.cutoff_hz

    @property
    def differentiation(self) -> str:
        """How velocity and acceleration were made, in words."""
        source = "measured velocity, " if self.velocity == "measured" else ""
        return source + self.derivatives


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
    lag_stds = [p.lag_std for p in parts if p.lag_std is not None]
    doubts = [p.lag_doubt for p in parts if p.lag_doubt is not None]
    resolutions = [p.speed_resolution for p in parts if p.speed_resolution]
    common |= {
        "sample_rate_hz": float(np.mean(rates)) if rates else None,
        # One delay that has to be estimated is enough to look for it in all.
        "lag_std": max(lag_stds, default=None),
        "lag_doubt": max(doubts, default=None),
        # The coarsest of all, since one number serves all rows.
        "speed_resolution": tuple(map(max, zip(*resolutions, strict=True))),
        "rows_read": sum(p.rows_read for p in parts),
        "rows_dropped": tuple(dropped.items()),
        "gaps": sum(p.gaps for p in parts),
        "notes": tuple(dict.fromkeys(n for p in parts for n in p.notes)),
    }
    return Preparation(**common)
