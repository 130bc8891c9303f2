"""Design of excitation: the motion that determines an arm's parameters best."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError, NotConverged
from armwise.excitation.bounds import bounds_of
from armwise.excitation.clearance import KeepOut, keep_clear
from armwise.excitation.requirements import (
    SETTLED,
    Requirements,
    Verification,
    resting_postures,
    verify,
)
from armwise.excitation.score import (
    RATE_HZ,
    InformationModel,
    MotionScore,
    noise_of,
    prior_matrix,
    sample_count,
    score,
)
from armwise.excitation.search import (
    Candidate,
    Search,
    SearchProblem,
    SearchReport,
    retreats,
)
from armwise.excitation.series import RestingSeries, choose_harmonics, choose_periods
from armwise.motions import Fourier, MotionSample, Sequence, require_positive
from armwise.programs import Backend
from armwise.progress import Progress

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


# The result: a motion, its information, and its verification.


# Judgement: viscous and Coulomb friction differ by a factor of four in what they do at
# the last, and a Stribeck peak lies below it.
FRICTION_SPEEDS = (1.0, 0.5, 0.25)
"""Fractions of full speed at which a motion tells friction terms apart."""


@dataclass(frozen=True, eq=False)
class ExcitationPlan:
    """A periodic motion that reveals an arm's parameters; itself a motion.

    It begins and ends at rest, without acceleration, in the same posture, and passes
    through that after every period.

    Attributes:
        motion: The Fourier series.
        duration: How long it lasts in [s].
        score: Its information.
        verified: What it uses of its limits on a 1 kHz grid over a period.
        limit_fraction: Fraction of every limit that it was allowed.
        search: How it was found.
        notes: What was assumed or left out, a sentence each.
    """

    motion: Fourier
    duration: float
    score: MotionScore
    verified: Verification
    limit_fraction: float
    search: SearchReport
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """One line: how long, how informative."""
        return (
            f"<ExcitationPlan: {self.dof} joints, {self.duration:g} s, "
            f"condition number {self.score.condition_number:.4g}>"
        )

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.motion.dof

    @property
    def condition_number(self) -> float:
        """Of the base regressor, its columns scaled to length one."""
        return self.score.condition_number

    @property
    def log_det(self) -> float:
        """Regularised log det of the scaled information; see MotionScore."""
        return self.score.log_det

    @property
    def information(self) -> Float[np.ndarray, "count count"]:
        """Information about the base parameters; `prior` of a next design."""
        return self.score.information

    @property
    def start(self) -> Float[np.ndarray, " dof"]:
        """The posture in which it begins and ends."""
        return self.sample(0.0).q

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        return self.motion.sample(t)

    def at_speeds(self, fractions: Iterable[float] = FRICTION_SPEEDS) -> Sequence:
        """Return the motion at several speeds, one after the other.

        Every posture, and with it the load of every gear, is passed at every speed and
        in both directions: friction of speed and friction of load can then be told
        apart, and slow reversals show hysteresis. Limits hold, for slower motion asks
        for less of each.

        Args:
            fractions: Of the plan's own speed, at most 1 each.
        """
        speeds = tuple(float(f) for f in fractions)
        if not speeds or not all(0.0 < f <= 1.0 for f in speeds):
            raise ArgumentError(
                f"Speeds are fractions of the plan's own, from 0 to 1, not {speeds}."
            )
        frequency = self.motion.frequency
        return Sequence(
            tuple(replace(self.motion, frequency=f * frequency) for f in speeds)
        )

    def repeated(self, times: int) -> Fourier:
        """Return the motion several times over, without a stop in between."""
        return replace(self.motion, periods=times * self.motion.periods)


# The search problem that follows from the arguments.

# Judgement: half as many as random motions (`search.TRIED`), so that each posture is
# tried twice.
POSTURES = 12
"""Postures at rest from which random motions start."""


@dataclass(frozen=True, eq=False)
class Setting:
    """An arm and the problem of exciting it.

    Attributes:
        arm: The arm.
        problem: What to optimise.
        prior: Information about the base parameters from before.
        periods: How often the motion is repeated.
        notes: What was assumed or left out, a sentence each.
    """

    arm: Arm
    problem: SearchProblem
    prior: Float[np.ndarray, "count count"]
    periods: int
    notes: tuple[str, ...]

    def postures(self, rng: np.random.Generator) -> Float[np.ndarray, "postures dof"]:
        """Find postures in which the arm can rest.

        Raises:
            ArgumentError: If there is none.
        """
        p = self.problem
        settled = SETTLED * p.limit_fraction
        return resting_postures(self.arm, p.requirements, settled, rng, POSTURES)


def arrange(
    arm: Arm,
    duration: float,
    prior: ArrayLike | None = None,
    keep_out: KeepOut | None = None,
    torque_std: ArrayLike | None = None,
    limit_fraction: float = 1.0,
    harmonics: int | None = None,
    periods: int | None = None,
    rate_hz: float = RATE_HZ,
    backend: Backend = "auto",
) -> Setting:
    """Put a problem together; the arguments are those of `design_excitation`.

    Raises:
        ArgumentError: If one of them makes no sense.
    """
    if not 0.0 < limit_fraction <= 1.0:
        raise ArgumentError(
            f"limit_fraction must lie above 0 and be at most 1, not {limit_fraction!r}."
        )
    bounds = bounds_of(arm)
    duration = require_positive(duration, "duration")
    if periods is None:
        periods = choose_periods(bounds, duration)
    period = duration / _whole("periods", periods, 1)
    if harmonics is None:
        harmonics = choose_harmonics(bounds, period)
    # Two at least: the conditions of rest take up both amplitudes of one harmonic.
    series = RestingSeries(bounds, period, _whole("harmonics", harmonics, 2))
    model = InformationModel(arm, bounds, noise_of(arm, torque_std), backend)
    before = prior_matrix(model, prior)
    clearance, remarks = keep_clear(arm, keep_out, bounds, backend)
    requirements = Requirements(arm, bounds, clearance, backend)
    scaled_prior = before * np.outer(model.scale, model.scale)
    # The search works with the mean information of a sample, the prior likewise.
    per_sample = scaled_prior / sample_count(duration, rate_hz)
    problem = SearchProblem(series, model, requirements, per_sample, limit_fraction)
    return Setting(arm, problem, before, int(periods), (*bounds.notes, *remarks))


def _whole(name: str, value: int, least: int) -> int:
    if int(value) != value or value < least:
        raise ArgumentError(
            f"{name} must be a whole number, at least {least}, not {value!r}."
        )
    return int(value)


def one_thread() -> AbstractContextManager[object]:
    """Matrices here are small: several threads would only wait for each other."""
    import scipy.optimize  # noqa: F401  its own linear algebra must be there to limit
    from threadpoolctl import threadpool_limits

    limited: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limited


# The design.

KEEP_OUT = KeepOut()
"""What is kept clear of unless said otherwise: the floor, and the arm itself."""


def design_excitation(
    arm: Arm,
    duration: float = 20.0,
    seed: int | np.random.Generator = 0,
    *,
    prior: ArrayLike | None = None,
    keep_out: KeepOut | None = KEEP_OUT,
    torque_std: ArrayLike | None = None,
    limit_fraction: float = 0.95,
    harmonics: int | None = None,
    periods: int | None = None,
    rate_hz: float = RATE_HZ,
    budget_s: float = 30.0,
    progress: Progress | None = None,
    backend: Backend = "auto",
) -> ExcitationPlan:
    """Design the periodic motion that determines an arm's base parameters best.

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
        prior: Information about the base parameters from before, such as
            `plan.information`, or `information_from_covariance` of an estimate's: what
            is still uncertain is then improved most.
        keep_out: What to keep clear of; None for nothing.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N]; 1
            if not given. With `prior`, give the one behind it.
        limit_fraction: Fraction of every limit that may be used; the controller that
            follows the motion needs the remainder.
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
        arm, duration, prior, keep_out, torque_std, limit_fraction, harmonics, periods,
        rate_hz, backend,
    )  # fmt: skip
    search = Search(setting.problem, deadline, progress)
    with one_thread():
        best = search.run(setting.postures(rng), rng)
        motion, verified = settle(arm, setting.problem, best)
        motion = replace(motion, periods=setting.periods)
        scored = score(setting.problem.model, motion, setting.prior, rate_hz)
    return ExcitationPlan(
        motion,
        float(duration),
        scored,
        verified,
        limit_fraction,
        search.report,
        setting.notes,
    )


def settle(
    arm: Arm, problem: SearchProblem, candidate: Candidate
) -> tuple[Fourier, Verification]:
    """Shrink a motion until it holds on the fine grid, and keep the proof.

    Raises:
        NotConverged: If even hardly any motion fails there.
    """
    # Between the samples of the search a motion may peak a little higher; scaled
    # towards rest it keeps its shape, and with it most of its information.
    for fraction in retreats():
        z = candidate.still + fraction * (candidate.z - candidate.still)
        motion = problem.series.motion(z)
        verified = verify(motion, problem.requirements)
        if verified.is_within(problem.limit_fraction):
            return motion, verified
    raise NotConverged(
        f"{arm.name}: no motion was found that respects its limits and the keep-out "
        "between the samples of the search. Make the keep-out smaller or the duration "
        "longer."
    )
