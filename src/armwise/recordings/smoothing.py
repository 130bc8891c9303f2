"""From a raw stretch to position, velocity, acceleration and torque in one band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.recordings.filters import differentiate, smoothing_spline
from armwise.regression import low_pass

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.recordings.preparation import Preparation
    from armwise.recordings.stretches import Stretch


@dataclass(frozen=True)
class Settings:
    """How stretches are turned into samples.

    Attributes:
        cutoff_hz: Low-pass of every signal in [Hz]; infinite for none.
        lag: Delay of the torque to take out in [s].
        wrench_lag: Delay of the wrench to take out in [s].
        velocity: Whether velocity is measured or made from position.
        velocity_lag: Delay of the measured velocity to take out in [s].
        derivatives: Central differences of filtered signals, or a smoothing spline.
        decimation: Keep one sample in so many.
        rate_hz: Rate the decimation is meant for in [Hz]; None: for any.
        torque_bandwidth_hz: Low-pass friction's steps went through in [Hz].
        notes: What the user should know.
    """

    cutoff_hz: float
    lag: float = 0.0
    wrench_lag: float = 0.0
    velocity: Literal["measured", "position"] = "position"
    velocity_lag: float = 0.0
    derivatives: Literal["differences", "spline"] = "differences"
    decimation: int = 1
    rate_hz: float | None = None
    torque_bandwidth_hz: float = np.inf
    notes: tuple[str, ...] = ()

    @classmethod
    def like(cls, earlier: Preparation) -> Settings:
        """Return the settings an earlier preparation used."""
        measured = earlier.derivatives.startswith("measured")
        return cls(
            cutoff_hz=np.inf if earlier.cutoff_hz is None else earlier.cutoff_hz,
            lag=earlier.lag,
            wrench_lag=earlier.wrench_lag,
            velocity="measured" if measured else "position",
            velocity_lag=earlier.velocity_lag,
            derivatives="spline" if "spline" in earlier.derivatives else "differences",
            decimation=earlier.decimation,
            rate_hz=earlier.sample_rate_hz,
            torque_bandwidth_hz=earlier.torque_bandwidth_hz or np.inf,
        )


@dataclass(frozen=True, eq=False)
class Smooth:
    """One stretch after filtering, samples first."""

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    qd: Float[np.ndarray, "samples dof"]
    qdd: Float[np.ndarray, "samples dof"]
    tau: Float[np.ndarray, "samples joints"]
    wrench: Float[np.ndarray, "samples components"]


def smooth(stretch: Stretch, settings: Settings) -> Smooth | None:
    """Filter, differentiate, align, trim the edges and thin out one stretch.

    Long before the cut-off matters, fast recordings are thinned out to twenty samples
    a period of it. Returns None when the edges leave nothing.
    """
    early = early_decimation(settings, stretch.rate_hz)
    stretch = stretch.thinned(early)
    trim = edge(settings, stretch.rate_hz)
    rows = slice(trim, len(stretch) - trim, settings.decimation // early)
    kept = len(range(len(stretch))[rows])
    if kept < 4:
        return None
    n = len(stretch.q)
    q, qd, qdd = (np.empty((kept, n)) for _ in range(3))
    for j in range(n):
        motion = _motion(stretch, j, settings)
        for whole, out in zip(motion, (q, qd, qdd), strict=True):
            out[:, j] = whole[rows]
    forces = []
    lags = (settings.lag, settings.wrench_lag)
    for signals, lag in zip((stretch.tau, stretch.wrench), lags, strict=True):
        block = np.empty((kept, len(signals)))
        for j, signal in enumerate(signals):
            filtered = low_pass(signal, settings.cutoff_hz, stretch.rate_hz)
            block[:, j] = shifted(filtered, lag * stretch.rate_hz)[rows]
        forces.append(block)
    return Smooth(stretch.time[rows], q, qd, qdd, *forces)


def edge(settings: Settings, rate_hz: float) -> int:
    """Return how many samples at each end are not to be trusted."""
    filtering = (
        0.0 if settings.cutoff_hz >= 0.45 * rate_hz else 2.0 / settings.cutoff_hz
    )
    lags = (settings.lag, settings.wrench_lag, settings.velocity_lag)
    longest = max(filtering, *map(abs, lags))
    return int(np.ceil(longest * rate_hz)) + 4


def early_decimation(settings: Settings, rate_hz: float) -> int:
    """Return the largest divisor of the decimation that leaves the band untouched."""
    most = int(rate_hz / (20.0 * settings.cutoff_hz))
    divisors = [d for d in range(1, most + 1) if settings.decimation % d == 0]
    return max(divisors, default=1)


def shifted(signal: np.ndarray, samples: float) -> np.ndarray:
    """Read an even signal so many samples later, by cubic interpolation.

    Within that distance of the ends the result is held and means nothing.
    """
    if samples == 0.0:
        return signal
    whole = int(np.floor(samples))
    u = samples - whole
    weights = (
        -u * (u - 1.0) * (u - 2.0) / 6.0,
        (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0,
        -(u + 1.0) * u * (u - 2.0) / 2.0,
        (u + 1.0) * u * (u - 1.0) / 6.0,
    )
    reach = abs(whole) + 2
    padded = np.pad(signal, reach, mode="edge")
    result = np.zeros_like(signal)
    for k, weight in enumerate(weights):
        first = reach + whole + k - 1
        result += weight * padded[first : first + signal.size]
    return result


def shifted_columns(block: np.ndarray, samples: float) -> np.ndarray:
    """Read every column so many samples later."""
    return np.stack([shifted(column, samples) for column in block.T], axis=1)


def _motion(
    stretch: Stretch, j: int, settings: Settings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return position, velocity and acceleration of one joint over a stretch."""
    rate, cutoff = stretch.rate_hz, settings.cutoff_hz
    if settings.derivatives == "spline" and cutoff < 0.45 * rate:
        q, qd, qdd = smoothing_spline(stretch.q[j], cutoff, rate)
        return q, qd, qdd
    q = low_pass(stretch.q[j], cutoff, rate)
    if settings.velocity == "measured":
        measured = low_pass(stretch.qd[j], cutoff, rate)
        qd = shifted(measured, settings.velocity_lag * rate)
    else:
        qd = differentiate(q, 1.0 / rate)
    if stretch.qdd:
        return q, qd, low_pass(stretch.qdd[j], cutoff, rate)
    return q, qd, differentiate(qd, 1.0 / rate)
