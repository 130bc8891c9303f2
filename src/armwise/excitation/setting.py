"""Everything a search needs, put together from what the user asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.excitation.bounds import bounds_of
from armwise.excitation.encounters import keep_clear
from armwise.excitation.information import InformationModel
from armwise.excitation.keep_out import KeepOut
from armwise.excitation.postures import SETTLED, resting_postures
from armwise.excitation.problem import Problem
from armwise.excitation.requirements import Requirements
from armwise.excitation.score import RATE_HZ, known_matrix, noise_of, sample_count
from armwise.excitation.series import Series, choose_harmonics, choose_periods
from armwise.motions.motion import require_positive
from armwise.programs import Backend

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

POSTURES = 12
"""Postures at rest from which random motions start."""


@dataclass(frozen=True, eq=False)
class Setting:
    """An arm and the problem of exciting it.

    Attributes:
        arm: The arm.
        problem: What to optimise.
        known: Information about the base parameters from before.
        periods: How often the motion is repeated.
        notes: What was assumed or left out, a sentence each.
    """

    arm: Arm
    problem: Problem
    known: Float[np.ndarray, "count count"]
    periods: int
    notes: tuple[str, ...]

    def postures(self, rng: np.random.Generator) -> Float[np.ndarray, "postures dof"]:
        """Find postures in which the arm can rest.

        Raises:
            ArgumentError: If there is none.
        """
        p = self.problem
        settled = SETTLED * p.share
        return resting_postures(self.arm, p.requirements, settled, rng, POSTURES)


def arrange(
    arm: Arm,
    duration: float,
    known: ArrayLike | None = None,
    keep_out: KeepOut | None = None,
    torque_std: ArrayLike | None = None,
    limit_share: float = 1.0,
    harmonics: int | None = None,
    periods: int | None = None,
    rate_hz: float = RATE_HZ,
    backend: Backend = "auto",
) -> Setting:
    """Put a problem together; the arguments are those of `design_excitation`.

    Raises:
        ArgumentError: If one of them makes no sense.
    """
    if not 0.0 < limit_share <= 1.0:
        raise ArgumentError(
            f"limit_share must lie above 0 and be at most 1, not {limit_share!r}."
        )
    bounds = bounds_of(arm)
    duration = require_positive(duration, "duration")
    if periods is None:
        periods = choose_periods(bounds, duration)
    period = duration / _whole("periods", periods, 1)
    if harmonics is None:
        harmonics = choose_harmonics(bounds, period)
    series = Series(bounds, period, _whole("harmonics", harmonics, 2))
    model = InformationModel(arm, bounds, noise_of(arm, torque_std), backend)
    before = known_matrix(model, known)
    clearance, remarks = keep_clear(arm, keep_out, bounds, backend)
    requirements = Requirements(arm, bounds, clearance, backend)
    usual = before * np.outer(model.scale, model.scale)
    per_sample = usual / sample_count(duration, rate_hz)
    problem = Problem(series, model, requirements, per_sample, limit_share)
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
