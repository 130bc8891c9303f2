"""Resting postures, in which motions start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.excitation.requirements import QUANTITIES, Requirements, Usage

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: one evaluation of 600 postures costs about as much as one of a motion;
# the spread halves from round to round.
TRIED, ROUNDS = 600, 6
"""Random postures per round; rounds around the best so far when none will do."""

SETTLED = 0.97
"""Fraction of the allowed at which a posture counts as resting: from there, a motion
can begin in any direction."""

NEARBY = (0.03, 0.1, 0.2, 0.4)
"""How far around a target posture to look for one, as fractions of the range:
growing, so that a near one is preferred."""


def resting_postures(
    arm: Arm,
    requirements: Requirements,
    limit_fraction: float,
    rng: np.random.Generator,
    count: int,
) -> Float[np.ndarray, "count dof"]:
    """Find postures that respect everything at rest, those with most to spare first.

    Raises:
        ArgumentError: If there is none, naming what stands in the way.
    """
    b = requirements.bounds
    reach = limit_fraction * b.half_range
    # Judgement: 10 % off the ends, so that a motion has room to either side.
    q = b.middle + rng.uniform(-0.9, 0.9, (TRIED, arm.dof)) * reach
    # Always tried, so that an easy arm does not depend on luck.
    q[0] = b.middle
    for k in range(ROUNDS):
        usage = _at_rest(requirements, q)
        excess = usage.excess(limit_fraction)
        order = np.argsort(excess)
        if excess[order[0]] < 0.0:
            good = order[: max(1, min(count, int(np.sum(excess < 0.0))))]
            return q[good]
        # Cross-entropy style: draw around the best tenth, ever closer.
        near = q[order[: TRIED // 10]]
        spread = rng.normal(scale=0.5 ** (k + 1), size=(TRIED, arm.dof)) * reach
        tried = near[rng.integers(len(near), size=TRIED)] + spread
        q = np.vstack([near, np.clip(tried, b.middle - reach, b.middle + reach)])
    raise ArgumentError(_complaint(arm, usage, limit_fraction))


def resting_posture_near(
    requirements: Requirements, limit_fraction: float, target: np.ndarray
) -> Float[np.ndarray, " dof"] | None:
    """Find a posture close to a target that respects everything at rest."""
    # A generator of its own: the search's must not depend on repairs.
    b, rng = requirements.bounds, np.random.default_rng(1996)
    for spread in NEARBY:
        q = target + spread * b.half_range * rng.normal(size=(TRIED // 10, b.dof))
        q[0] = target
        good = _at_rest(requirements, q).excess(limit_fraction) < 0.0
        if good.any():
            away = np.linalg.norm((q[good] - target) / b.half_range, axis=1)
            return np.asarray(q[good][int(np.argmin(away))])
    return None


def _at_rest(requirements: Requirements, q: np.ndarray) -> Usage:
    still = np.zeros_like(q)
    return requirements.usage((q, still, still))


def _complaint(arm: Arm, usage: Usage, limit_fraction: float) -> str:
    """Say which requirement the fewest postures respect, and by how much they fail."""
    best = f"{arm.name}: No posture of this arm respects all requirements"
    torque = np.abs(usage.fractions[QUANTITIES.index("effort")])
    room = usage.room.min(axis=0, initial=np.inf)
    if np.mean(room >= 0.0) <= np.mean(torque.max(axis=1) <= limit_fraction):
        return (
            f"{best}; those tried lack {-room.max():.4g} m of clearance or more. Make "
            "the keep-out (floor, boxes, clearance, radius) smaller."
        )
    joint = int(np.argmin(np.mean(torque <= limit_fraction, axis=0)))
    return (
        f"{best}; to hold still, those tried need {torque[:, joint].min():.3g} times "
        f"or more the effort limit of joint {arm.coordinate_names[joint]!r} (allowed: "
        f"{limit_fraction:.3g}). Correct its limits or the masses of the arm."
    )
