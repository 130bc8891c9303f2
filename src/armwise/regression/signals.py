"""Motion and torque as regression takes them, and friction as the torque shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.regression.low_pass import filter_reach, low_pass

if TYPE_CHECKING:
    from typing import Self

    from jaxtyping import Bool, Float


class Signals(Protocol):
    """Motion and torque on one time base, samples first, as `Samples` holds them."""

    @property
    def time(self) -> Float[np.ndarray, " samples"]:
        """When, in [s]."""

    @property
    def q(self) -> Float[np.ndarray, "samples dof"]:
        """Positions in [rad] or [m]."""

    @property
    def measured(self) -> Float[np.ndarray, "samples dof"]:
        """Positions before any low-pass, where these are known."""

    @property
    def qd(self) -> Float[np.ndarray, "samples dof"]:
        """Velocities per [s]."""

    @property
    def qdd(self) -> Float[np.ndarray, "samples dof"]:
        """Accelerations per [s²]."""

    @property
    def tau(self) -> Float[np.ndarray, "samples joints"]:
        """Torques in [N m] or forces in [N]; no columns if not measured."""

    @property
    def dof(self) -> int:
        """Number of coordinates."""

    @property
    def has_torque(self) -> bool:
        """Whether joint torques were measured."""

    @property
    def rate_hz(self) -> float:
        """Samples a second in [Hz]."""

    @property
    def segments(self) -> tuple[slice, ...]:
        """Rows of every uninterrupted stretch of motion."""

    @property
    def speed_resolution(self) -> tuple[float, ...]:
        """Speed below which a joint's direction is unknown; empty: not filtered."""

    @property
    def torque_bandwidth_hz(self) -> float | None:
        """Low-pass the torque went through in [Hz]; None: untouched."""

    @property
    def lag_std(self) -> float | None:
        """How well the torque's delay is known in [s]; None: it was given."""

    @property
    def still(self) -> Float[np.ndarray, "samples dof"] | None:
        """Weight of moments without motion in a filtered torque; None: not known."""

    @property
    def stuck(self) -> Float[np.ndarray, "samples dof"] | None:
        """Weight of moments at which a joint sticks, likewise; None: not known."""

    @property
    def temperature(self) -> Float[np.ndarray, "samples dof"] | None:
        """Temperature of the joints' drives in [°C]; None: not measured."""

    def widened(self, reach: int | None = None) -> tuple[Self, int]:
        """With rows around them that they were cut from, and which is their first."""

    def __len__(self) -> int:
        """Number of samples."""

    def __getitem__(self, rows: slice, /) -> Self:
        """Some of the rows."""


def friction_direction(
    signals: Signals,
    weights: Float[np.ndarray, "motors dof"] | None = None,
    bandwidth_hz: float | None = None,
) -> Float[np.ndarray, "samples motors"]:
    """Return sign(w·q̇) as Coulomb friction shows it in the torque.

    Zero below the resolution of the speed, and seen through the torque's low-pass;
    exactly sign(w·q̇) for signals that were not filtered.

    Args:
        signals: Motion and torque.
        weights: w, one row per motor; the joints themselves when not given.
        bandwidth_hz: Low-pass to look through in [Hz]; the torque's own when not given.
    """
    bandwidth = bandwidth_hz or signals.torque_bandwidth_hz
    is_filtered = bool(bandwidth and signals.speed_resolution)
    # The torque was filtered before it was cut.
    reach = filter_reach(bandwidth, signals.rate_hz) if is_filtered and bandwidth else 0
    wide, first = signals.widened(reach)
    shown = directions_shown(wide, directions(wide, weights), bandwidth)
    return shown[first : first + len(signals)]


# Judgement.
UNKNOWN_FRICTION = 0.02
"""Fraction of a filtered friction torque that may come from moments without motion, at
which it can have any value up to its limit."""

# Judgement: where simulated joints stick, friction is short of its limit up to two to
# six per cent of their top speed.
SLOW = 0.05
"""Fraction of a joint's top speed below which its friction may not be what it is in
motion: it sticks, slips, or has not yet built up."""

# Judgement: wrists of simulated arms that stick do so for 4 to 20 % of a log; drives
# without a pause that a raw position shows, for nothing of it.
STICKS = 0.01
"""Fraction of a log from which on a joint that does not move at all sticks."""


def sticking_joints(signals: Signals) -> Bool[np.ndarray, " dof"]:
    """Which joints their raw position shows to stick for a good part of the time."""
    if signals.stuck is None or not len(signals):
        return np.zeros(signals.dof, dtype=bool)
    return np.asarray(signals.stuck.mean(axis=0) > STICKS)


# Judgement: a thousandth of the joint that moves most; encoders that stand count less.
_HELD = 1e-3
"""Range of a joint's motion, as a fraction of the largest, below which it is held."""


def held_joints(runs: Sequence[Signals]) -> Bool[np.ndarray, " dof"]:
    """Which joints do not move in any run: brakes or friction may carry their load."""
    ranges = np.max([np.ptp(run.q, axis=0) for run in runs if len(run)], axis=0)
    return np.asarray(ranges <= _HELD * ranges.max())


def stuck_or_creeping(signals: Signals) -> Bool[np.ndarray, "samples dof"]:
    """Where a joint sticks, and where one that sticks elsewhere hardly moves.

    Friction that gives way a little before it breaks loose lets a joint creep: encoders
    show it to move, but its friction is as unknown as that of a joint that stands.
    """
    if signals.stuck is None or not len(signals):
        return np.zeros(signals.q.shape, dtype=bool)
    speed = np.abs(signals.qd)
    # A percentile, not the maximum: one spike must not set the scale.
    creeps = speed < SLOW * np.percentile(speed, 99.5, axis=0)
    is_stuck = signals.stuck > UNKNOWN_FRICTION
    return np.asarray(is_stuck | (creeps & sticking_joints(signals)))


def directions(
    signals: Signals, weights: Float[np.ndarray, "motors dof"] | None = None
) -> Float[np.ndarray, "samples motors"]:
    """Return sign(w·q̇), zero below the resolution of the speed, before any low-pass."""
    matrix = np.eye(signals.dof) if weights is None else np.asarray(weights)
    speeds = signals.qd if weights is None else signals.qd @ matrix.T
    resolution = signals.speed_resolution
    # No resolution: the samples were given, not filtered, and their sign is exact.
    if not resolution:
        return np.asarray(np.sign(speeds))
    # Errors of the joints' speeds add up in the worst case.
    dead_bands = np.abs(matrix) @ np.asarray(resolution)
    signs = np.empty(speeds.shape)
    for rows in signals.segments:
        for j, dead_band in enumerate(dead_bands):
            signs[rows, j] = averaged_sign(speeds[rows, j], float(dead_band))
    return signs


def directions_shown(
    signals: Signals,
    signs: Float[np.ndarray, "samples motors"],
    bandwidth_hz: float | None = None,
) -> Float[np.ndarray, "samples motors"]:
    """Show `directions` as the torque does: through its low-pass, if it has one."""
    if not signals.speed_resolution:
        return signs
    return through_torque_filter(signals, signs, bandwidth_hz)


def torque_rate(signals: Signals) -> Float[np.ndarray, "samples joints"]:
    """Return dτ/dt in [N m/s]: what a torque changes by if read a moment later.

    Zero where the torque's delay is not to be fitted: nothing is then read at another
    moment.
    """
    if signals.lag_std is None:
        return np.zeros(signals.tau.shape)
    return torque_slope(signals)


def torque_slope(signals: Signals) -> Float[np.ndarray, "samples joints"]:
    """Return dτ/dt in [N m/s], segment by segment.

    Of the measured torque, not of a model's: it needs no parameters, and noise is not
    correlated with its own derivative.
    """
    rate = np.zeros(signals.tau.shape)
    for rows in signals.segments:
        tau = signals.tau[rows]
        # Below two samples there is no slope.
        if len(tau) < 2:
            continue
        slope = np.gradient(tau, axis=0)
        # Five points: three lose 6 % of the slope at ten samples a period.
        if len(tau) >= 5:
            near, far = tau[3:-1] - tau[1:-3], tau[4:] - tau[:-4]
            slope[2:-2] = (8.0 * near - far) / 12.0
        rate[rows] = slope * signals.rate_hz
    return rate


def through_torque_filter(
    signals: Signals,
    columns: Float[np.ndarray, "samples columns"],
    bandwidth_hz: float | None = None,
) -> Float[np.ndarray, "samples columns"]:
    """Show functions of the motion as they look through the torque's low-pass.

    Smooth ones look the same; a step such as sign(q̇) is rounded as friction is in the
    torque. Signals that were not filtered come back unchanged.
    """
    bandwidth, rate = bandwidth_hz or signals.torque_bandwidth_hz, signals.rate_hz
    # 0.45: where `low_pass` itself leaves a signal alone.
    if bandwidth is None or bandwidth >= 0.45 * rate:
        return columns
    filtered = np.empty(columns.shape)
    for rows in signals.segments:
        # Held ends: an odd reflection would double the height of a step there.
        filtered[rows] = low_pass(columns[rows], bandwidth, rate, "constant")
    return filtered


def averaged_sign(
    speed: Float[np.ndarray, " samples"], dead_band: float = 0.0
) -> Float[np.ndarray, " samples"]:
    """Return the sign of a speed, averaged over each sample's own time step.

    Where the speed passes zero between two samples the average knows when, so that a
    later low-pass sees the step at the right moment. Below the dead band the direction
    is unknown and counts as zero.
    """
    sign = np.where(np.abs(speed) > dead_band, np.sign(speed), 0.0)
    crossing = np.flatnonzero(sign[1:] * sign[:-1] < 0)
    before, after = speed[crossing], speed[crossing + 1]
    fraction = before / (before - after)  # where in the step the speed is zero
    # A sample stands for half a step on either side. With the zero at a fraction f < ½
    # after it, its average is ½ + f − (½ − f) = 2 f; else the next sample's changes.
    early = fraction < 0.5
    sign[crossing[early]] *= 2.0 * fraction[early]
    late = crossing[~early]
    sign[late + 1] *= 2.0 * (1.0 - fraction[~early])
    return sign
