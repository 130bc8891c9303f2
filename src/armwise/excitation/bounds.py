"""Bounds of the joints: the arm's limits, and defaults where it has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: a joint without stops can turn once; half a metre is a modest axis. Every
# such assumption is named in the plan's notes.
DEFAULT_SPAN = {True: 2.0 * np.pi, False: 0.5}
"""Range of a joint without position limits, by whether it turns, in [rad] or [m]."""

# Judgement: meant to be slow, so that a missing limit errs on the safe side.
DEFAULT_VELOCITY = {True: 2.0, False: 0.5}
"""Speed of a joint without a limit of speed in [rad/s] or [m/s]."""

DEFAULT_CORNER_HZ = 1.0
"""Without a limit, a joint accelerates as a sinusoid of this frequency would."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Limits of every coordinate; all finite but effort.

    Attributes:
        lower, upper: Position in [rad] or [m].
        velocity: In [rad/s] or [m/s].
        acceleration: In [rad/s²] or [m/s²].
        effort: In [N m] or [N]; infinite where the arm has no limit.
        notes: What was assumed, a sentence each.
    """

    lower: Float[np.ndarray, " dof"]
    upper: Float[np.ndarray, " dof"]
    velocity: Float[np.ndarray, " dof"]
    acceleration: Float[np.ndarray, " dof"]
    effort: Float[np.ndarray, " dof"]
    notes: tuple[str, ...] = ()

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.lower.size

    @property
    def middle(self) -> Float[np.ndarray, " dof"]:
        """Middle of the range of each coordinate."""
        return 0.5 * (self.lower + self.upper)

    @property
    def half_range(self) -> Float[np.ndarray, " dof"]:
        """Half the range of each coordinate."""
        return 0.5 * (self.upper - self.lower)


def bounds_of(arm: Arm) -> Bounds:
    """Return an arm's limits, with defaults for those it does not have.

    A joint that follows another narrows the other's limits.

    Raises:
        ArgumentError: If a joint has no room, or may not move.
    """
    if arm.dof == 0:
        raise ArgumentError(f"{arm.name} has no joint to move.")
    raw = {key: _limits(arm, key) for key in ("velocity", "acceleration", "effort")}
    lower, upper = _positions(arm)
    notes: list[str] = []
    lower, upper = _spans(arm, lower, upper, notes)
    velocity = _speeds(arm, raw["velocity"], notes)
    acceleration = _accelerations(arm, raw["acceleration"], velocity, notes)
    _check(arm, {**raw, "velocity": velocity, "acceleration": acceleration})
    if free := _names(arm, ~np.isfinite(raw["effort"])):
        notes.append(f"No limit of torque or force is known for {free}: none is kept.")
    return Bounds(lower, upper, velocity, acceleration, raw["effort"], tuple(notes))


def _limits(arm: Arm, key: str) -> np.ndarray:
    """One symmetric limit of each coordinate, its followers' limits included."""
    limit = arm.limits(key)
    # A coupling scales position and its rates alike; efforts add up through it, so that
    # a follower's limit does not narrow its leader's.
    if key == "effort":
        return limit
    for joint in arm.joints:
        if joint.mimic is not None and joint.mimic.multiplier != 0.0:
            leader = arm.coordinates.index(joint.mimic.leader)
            allowed = getattr(joint.limits, key) / abs(joint.mimic.multiplier)
            limit[leader] = min(limit[leader], allowed)
    return limit


def _positions(arm: Arm) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = arm.limits("lower"), arm.limits("upper")
    for joint in arm.joints:
        if joint.mimic is not None and joint.mimic.multiplier != 0.0:
            leader = arm.coordinates.index(joint.mimic.leader)
            ends = np.array([joint.limits.lower, joint.limits.upper])
            ends = (ends - joint.mimic.offset) / joint.mimic.multiplier
            # A negative multiplier swaps the ends.
            lower[leader] = max(lower[leader], ends.min())
            upper[leader] = min(upper[leader], ends.max())
    return lower, upper


def _spans(
    arm: Arm, lower: np.ndarray, upper: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Close open ranges; refuse empty ones."""
    open_ended = ~(np.isfinite(lower) & np.isfinite(upper))
    for j, i in enumerate(arm.coordinates):
        span = DEFAULT_SPAN[arm.joints[i].is_revolute]
        low, high = lower[j], upper[j]
        if np.isnan(low) or np.isnan(high) or low >= high:
            raise ArgumentError(
                f"{arm.name}, joint {arm.joints[i].name!r}: its range from {low:.6g} "
                f"to {high:.6g} leaves no room to move. Correct its limits."
            )
        if np.isinf(low) and np.isinf(high):
            lower[j], upper[j] = -0.5 * span, 0.5 * span
        elif np.isinf(low):
            lower[j] = high - span
        elif np.isinf(high):
            upper[j] = low + span
    if names := _names(arm, open_ended):
        notes.append(
            f"No position limits are known for {names}: a range of 2π rad or "
            f"{DEFAULT_SPAN[False]:g} m is assumed."
        )
    return lower, upper


def _speeds(arm: Arm, velocity: np.ndarray, notes: list[str]) -> np.ndarray:
    if names := _names(arm, np.isinf(velocity)):
        notes.append(
            f"No speed limit is known for {names}: {DEFAULT_VELOCITY[True]:g} rad/s or "
            f"{DEFAULT_VELOCITY[False]:g} m/s is assumed."
        )
    kinds = [arm.joints[i].is_revolute for i in arm.coordinates]
    default = np.array([DEFAULT_VELOCITY[kind] for kind in kinds])
    return np.where(np.isinf(velocity), default, velocity)


def _accelerations(
    arm: Arm, acceleration: np.ndarray, velocity: np.ndarray, notes: list[str]
) -> np.ndarray:
    if names := _names(arm, np.isinf(acceleration)):
        notes.append(
            f"No acceleration limit is known for {names}: that of a "
            f"{DEFAULT_CORNER_HZ:g} Hz sinusoid at the speed limit is assumed."
        )
    # A sinusoid of frequency f whose speed peaks at v accelerates by up to 2π f v.
    default = 2.0 * np.pi * DEFAULT_CORNER_HZ * velocity
    return np.where(np.isinf(acceleration), default, acceleration)


def _check(arm: Arm, limits: dict[str, np.ndarray]) -> None:
    for key, values in limits.items():
        # Not `values <= 0`: NaN must be refused too.
        bad = np.flatnonzero(~(values > 0.0))
        if bad.size:
            raise ArgumentError(
                f"{arm.name}, joint {arm.coordinate_names[bad[0]]!r}: its {key} limit "
                f"is {values[bad[0]]:.6g}, so it may not move. Correct its limits."
            )


def _names(arm: Arm, mask: np.ndarray) -> str:
    return ", ".join(n for n, c in zip(arm.coordinate_names, mask, strict=True) if c)
