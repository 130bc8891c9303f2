"""design_excitation: the motion that tells most of an arm's parameters."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError, NotConverged
from armwise.excitation.bounds import Bounds, bounds_of
from armwise.excitation.encounters import keep_clear
from armwise.excitation.information import InformationModel
from armwise.excitation.keep_out import KeepOut
from armwise.excitation.plan import ExcitationPlan
from armwise.excitation.postures import resting_postures
from armwise.excitation.problem import Problem
from armwise.excitation.requirements import Requirements
from armwise.excitation.score import (
    RATE_HZ,
    known_matrix,
    noise_of,
    sample_count,
    score,
)
from armwise.excitation.search import Found, Progress, Search, retreats
from armwise.excitation.series import Series, choose_harmonics
from armwise.excitation.verification import Verification, verify
from armwise.motions import Fourier
from armwise.motions.motion import require_positive
from armwise.programs import Backend

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

KEEP_OUT = KeepOut()
"""What is kept clear of unless said otherwise: the floor, and the arm itself."""

POSTURES = 12
"""Postures at rest from which random motions start."""

_SETTLED = 0.97
"""Share of the allowed at which a posture counts as resting with room to spare."""


def design_excitation(
    arm: Arm,
    duration: float = 20.0,
    seed: int | np.random.Generator = 0,
    *,
    known: ArrayLike | None = None,
    keep_out: KeepOut | None = KEEP_OUT,
    torque_std: ArrayLike | None = None,
    limit_share: float = 0.95,
    harmonics: int | None = None,
    rate_hz: float = RATE_HZ,
    budget_s: float = 30.0,
    progress: Progress | None = None,
    backend: Backend = "auto",
) -> ExcitationPlan:
    """Design the periodic motion that tells most of an arm's base parameters.

    Maximises log det of the information of the base regressor over Fourier series that
    begin and end at rest, within limits of position, velocity, acceleration and torque
    (by the arm's own parameters) and clear of the floor and of itself. What it returns
    has been verified on a 1 kHz grid.

    Args:
        arm: The arm, with its best known parameters. Limits it does not have are
            assumed; the plan's notes say which.
        duration: How long the motion lasts in [s].
        seed: Where the randomness comes from; the same seed gives the same motion
            unless time runs out.
        known: Information about the base parameters from before, such as
            `plan.information` or the inverse covariance of an estimate: what is still
            uncertain is then improved most.
        keep_out: What to keep clear of; None for nothing.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N]; 1
            if not given. With `known`, give the one behind it.
        limit_share: Share of every limit that may be used; the rest is left to the
            controller that follows the motion.
        harmonics: Harmonics of the series; chosen from limits and duration if None.
        rate_hz: Independent samples a second that count towards the information.
        budget_s: Longest time to search in [s]; the best so far is returned.
        progress: Called with what is being done and how much of it is done.
        backend: What runs the programs.

    Raises:
        ArgumentError: If an argument makes no sense, or no posture of the arm respects
            its limits and the keep-out.
    """
    deadline = time.monotonic() + require_positive(budget_s, "budget_s")
    _check_share(limit_share)
    rng = np.random.default_rng(seed)
    bounds = bounds_of(arm)
    series = _series(bounds, duration, harmonics)
    model = InformationModel(arm, bounds, noise_of(arm, torque_std), backend)
    before = known_matrix(model, known)
    clearance, remarks = keep_clear(arm, keep_out, bounds, backend)
    requirements = Requirements(arm, bounds, clearance, backend)
    usual = before * np.outer(model.scale, model.scale)
    per_sample = usual / sample_count(series.duration, rate_hz)
    problem = Problem(series, model, requirements, per_sample, limit_share)
    search = Search(problem, deadline, progress)
    with _one_thread():
        settled = _SETTLED * limit_share
        postures = resting_postures(arm, requirements, settled, rng, POSTURES)
        motion, verified = _settle(arm, problem, search.run(postures, rng))
        told = score(model, motion, before, rate_hz)
    notes = (*bounds.notes, *remarks)
    return ExcitationPlan(
        motion, series.duration, told, verified, limit_share, search.report, notes
    )


def _settle(arm: Arm, problem: Problem, found: Found) -> tuple[Fourier, Verification]:
    """Shrink a motion until it holds on the fine grid, and keep the proof.

    Raises:
        NotConverged: If even hardly any motion fails there.
    """
    for share in retreats():
        z = found.still + share * (found.z - found.still)
        motion = problem.series.motion(z)
        verified = verify(motion, problem.requirements)
        if verified.is_within(problem.share):
            return motion, verified
    raise NotConverged(
        f"{arm.name}: no motion was found that respects its limits and the keep-out "
        "between the samples of the search. Make the keep-out smaller or the duration "
        "longer."
    )


def _check_share(limit_share: float) -> None:
    if not 0.0 < limit_share <= 1.0:
        raise ArgumentError(
            f"limit_share must lie above 0 and be at most 1, not {limit_share!r}."
        )


def _series(bounds: Bounds, duration: float, harmonics: int | None) -> Series:
    duration = require_positive(duration, "duration")
    if harmonics is None:
        harmonics = choose_harmonics(bounds, duration)
    if int(harmonics) != harmonics or harmonics < 2:
        raise ArgumentError(
            f"harmonics must be a whole number, at least 2, not {harmonics!r}."
        )
    return Series(bounds, duration, int(harmonics))


def _one_thread() -> AbstractContextManager[object]:
    """Matrices here are small: several threads would only wait for each other."""
    import scipy.optimize  # noqa: F401  its own linear algebra must be there to limit
    from threadpoolctl import threadpool_limits

    limited: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limited
