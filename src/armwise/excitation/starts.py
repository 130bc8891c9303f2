"""Random motions that respect every requirement, as large as they can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from armwise.excitation.problem import Problem
from armwise.excitation.series import Series

if TYPE_CHECKING:
    from jaxtyping import Float

_HALVINGS = 12


def rest(series: Series, posture: np.ndarray) -> Float[np.ndarray, "dof free"]:
    """Free numbers of an arm that stays in a posture."""
    z = np.zeros((series.bounds.dof, series.free))
    z[:, 0] = (posture - series.bounds.middle) / series.bounds.half_range
    return z


def random_motion(
    problem: Problem, posture: np.ndarray, rng: np.random.Generator
) -> Float[np.ndarray, "dof free"]:
    """Shake the arm around a posture at random, as far as the requirements allow.

    Each joint first takes all that its own limits of position, velocity and
    acceleration allow; then all shrink together until the rest holds too.
    """
    still = rest(problem.series, posture)
    shake = rng.normal(size=still.shape)
    shake[:, 0] = 0.0
    used = _used(problem, posture, still + shake)
    return shrink(still, still + shake / used[:, None], problem.excess)


def _used(
    problem: Problem, posture: np.ndarray, z: np.ndarray
) -> Float[np.ndarray, " dof"]:
    """Largest share of its own limits that each joint uses around a posture."""
    q, qd, qdd = problem.states(z)
    b, away = problem.series.bounds, np.abs(q - posture).max(axis=0)
    free = problem.share * b.half_range - np.abs(posture - b.middle)
    fast = np.abs(qd).max(axis=0) / (problem.share * b.velocity)
    hard = np.abs(qdd).max(axis=0) / (problem.share * b.acceleration)
    return np.maximum(np.maximum(away / free, fast), hard)


def shrink(
    still: np.ndarray,
    wanted: np.ndarray,
    excess: Callable[[np.ndarray], float],
) -> Float[np.ndarray, "dof free"]:
    """Move from a motion towards rest until it respects the requirements.

    At rest they hold with room to spare, so there is always such a motion.
    """
    if excess(wanted) <= 0.0:
        return wanted
    good, bad = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = 0.5 * (good + bad)
        if excess(still + share * (wanted - still)) <= 0.0:
            good = share
        else:
            bad = share
    found: np.ndarray = still + good * (wanted - still)
    return found
