"""A planned motion held against every requirement on a fine grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.excitation.requirements import QUANTITIES, Requirements, Usage
from armwise.motions import Motion

if TYPE_CHECKING:
    from jaxtyping import Float

RATE_HZ = 1000.0
"""Instants a second at which a plan is verified."""

_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Verification:
    """What a motion uses of its limits, at most, over a fine grid of instants.

    Attributes:
        rate_hz: Instants a second.
        instants: How many there were, both ends included.
        position, velocity, acceleration, effort: Largest share of each joint's limit;
            position from the middle of its range; Coulomb friction counted in full,
            whichever way it acts; 0 where there is no limit.
        room: Smallest distance left in [m] beyond the clearance asked for; None if
            there is nothing to keep clear of.
        speed_at_ends: Largest speed at beginning and end, as a share of the limit.
    """

    rate_hz: float
    instants: int
    position: Float[np.ndarray, " dof"]
    velocity: Float[np.ndarray, " dof"]
    acceleration: Float[np.ndarray, " dof"]
    effort: Float[np.ndarray, " dof"]
    room: float | None
    speed_at_ends: float

    def is_within(self, share: float = 1.0) -> bool:
        """Whether everything holds, and no more than a share of any limit is used."""
        used = max(float(getattr(self, name).max()) for name in QUANTITIES)
        return used <= share and (self.room is None or self.room >= 0.0)


def verify(motion: Motion, requirements: Requirements) -> Verification:
    """Measure a motion at 1 kHz."""
    instants = max(2, int(np.ceil(motion.duration * RATE_HZ)) + 1)
    times = np.linspace(0.0, motion.duration, instants)
    shares = np.zeros((len(QUANTITIES), requirements.bounds.dof))
    room = np.inf
    for begin in range(0, instants, _BLOCK):
        usage = _usage(motion, requirements, times[begin : begin + _BLOCK])
        block = [np.abs(share).max(axis=0) for share in usage.shares]
        shares = np.maximum(shares, block)
        room = min(room, float(usage.room.min(initial=np.inf)))
    ends = motion.sample(times[[0, -1]]).qd / requirements.bounds.velocity
    position, velocity, acceleration, effort = shares
    return Verification(
        rate_hz=RATE_HZ,
        instants=instants,
        position=position,
        velocity=velocity,
        acceleration=acceleration,
        effort=effort,
        room=None if requirements.clearance is None else room,
        speed_at_ends=float(np.abs(ends).max()),
    )


def _usage(motion: Motion, requirements: Requirements, times: np.ndarray) -> Usage:
    states = [np.ascontiguousarray(part) for part in motion.sample(times)]
    return requirements.usage(states)
