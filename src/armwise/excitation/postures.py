"""Postures in which an arm can rest: where every motion starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.excitation.requirements import QUANTITIES, Requirements, Usage

if TYPE_CHECKING:
    from jaxtyping import Float

TRIED, ROUNDS = 600, 6
"""Random postures per round; rounds around the best so far when none will do."""

_CREEP = 1e-9


def resting_postures(
    arm: Arm,
    requirements: Requirements,
    share: float,
    rng: np.random.Generator,
    count: int,
) -> Float[np.ndarray, "count dof"]:
    """Find postures that respect everything at rest, those with most to spare first.

    Raises:
        ArgumentError: If there is none, naming what stands in the way.
    """
    b = requirements.bounds
    reach = share * b.half_range
    q = b.middle + rng.uniform(-0.9, 0.9, (TRIED, arm.dof)) * reach
    q[0] = b.middle
    for k in range(ROUNDS):
        usage = _at_rest(requirements, q)
        excess = usage.excess(share)
        order = np.argsort(excess)
        if excess[order[0]] < 0.0:
            good = order[: max(1, min(count, int(np.sum(excess < 0.0))))]
            return q[good]
        near = q[order[: TRIED // 10]]
        spread = rng.normal(scale=0.5 ** (k + 1), size=(TRIED, arm.dof)) * reach
        tried = near[rng.integers(len(near), size=TRIED)] + spread
        q = np.vstack([near, np.clip(tried, b.middle - reach, b.middle + reach)])
    raise ArgumentError(_complaint(arm, usage, int(order[0])))


def _at_rest(requirements: Requirements, q: np.ndarray) -> Usage:
    """What postures use at rest, friction either way included."""
    still = np.zeros_like(q)
    creep = _CREEP * requirements.bounds.velocity * np.ones_like(q)
    forward = requirements.usage((q, creep, still))
    backward = requirements.shares((q, -creep, still))
    torque = np.maximum(np.abs(forward.shares[3]), np.abs(backward[3]))
    return Usage((*forward.shares[:3], torque), forward.room)


def _complaint(arm: Arm, usage: Usage, k: int) -> str:
    """Say what the best posture found still breaks."""
    best = "No posture of this arm respects all that is asked; the best one found"
    over = np.array([np.abs(s[k]) for s in usage.shares])
    lacking = -float(usage.room[:, k].min(initial=np.inf))
    if lacking > 0.0:
        return (
            f"{arm.name}: {best} still lacks {lacking:.4g} m of clearance. Make the "
            "keep-out (floor, boxes, clearance, radius) smaller."
        )
    what, joint = np.unravel_index(int(np.argmax(over)), over.shape)
    return (
        f"{arm.name}: {best} needs {over[what, joint]:.3g} times the "
        f"{QUANTITIES[what]} limit of joint {arm.coordinate_names[joint]!r} to hold "
        "still. Correct its limits or the masses of the arm."
    )
