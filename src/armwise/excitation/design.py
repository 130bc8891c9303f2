"""design_excitation: the motion that tells most of an arm's parameters."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import NotConverged
from armwise.excitation.keep_out import KeepOut
from armwise.excitation.plan import ExcitationPlan
from armwise.excitation.problem import Problem
from armwise.excitation.score import RATE_HZ, score
from armwise.excitation.search import Found, Progress, Search, retreats
from armwise.excitation.setting import arrange, one_thread
from armwise.excitation.verification import Verification, verify
from armwise.motions import Fourier
from armwise.motions.motion import require_positive
from armwise.programs import Backend

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

KEEP_OUT = KeepOut()
"""What is kept clear of unless said otherwise: the floor, and the arm itself."""


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
    periods: int | None = None,
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
            `plan.information`, or `information_from_covariance` of an estimate's: what
            is still uncertain is then improved most.
        keep_out: What to keep clear of; None for nothing.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N]; 1
            if not given. With `known`, give the one behind it.
        limit_share: Share of every limit that may be used; the rest is left to the
            controller that follows the motion.
        harmonics: Harmonics of the series; chosen from limits and duration if None.
        periods: How often the series is repeated within the duration; once if None,
            unless that is too long for the harmonics to be fast enough.
        rate_hz: Independent samples a second that count towards the information.
        budget_s: Longest time to search in [s]; the best so far is returned.
        progress: Called with what is being done and how much of it is done.
        backend: What runs the programs.

    Raises:
        ArgumentError: If an argument makes no sense, or no posture of the arm respects
            its limits and the keep-out.
    """
    deadline = time.monotonic() + require_positive(budget_s, "budget_s")
    rng = np.random.default_rng(seed)
    setting = arrange(
        arm, duration, known, keep_out, torque_std, limit_share, harmonics, periods,
        rate_hz, backend,
    )  # fmt: skip
    search = Search(setting.problem, deadline, progress)
    with one_thread():
        found = search.run(setting.postures(rng), rng)
        motion, verified = settle(arm, setting.problem, found)
        motion = replace(motion, periods=setting.periods)
        told = score(setting.problem.model, motion, setting.known, rate_hz)
    return ExcitationPlan(
        motion,
        float(duration),
        told,
        verified,
        limit_share,
        search.report,
        setting.notes,
    )


def settle(arm: Arm, problem: Problem, found: Found) -> tuple[Fourier, Verification]:
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
