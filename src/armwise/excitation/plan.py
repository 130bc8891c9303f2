"""What a design gives: a motion, what it tells, and what was verified of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.excitation.score import MotionScore
from armwise.excitation.search import SearchReport
from armwise.excitation.verification import Verification
from armwise.motions import Fourier, MotionSample

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class ExcitationPlan:
    """A periodic motion that reveals an arm's parameters; itself a motion.

    It begins and ends at rest, without acceleration, in the same posture, and passes
    through that after every period.

    Attributes:
        motion: The Fourier series.
        duration: How long it lasts in [s].
        score: What it tells.
        verified: What it uses of its limits on a 1 kHz grid over a period.
        limit_share: Share of every limit that it was allowed.
        search: How it was found.
        notes: What was assumed or left out, a sentence each.
    """

    motion: Fourier
    duration: float
    score: MotionScore
    verified: Verification
    limit_share: float
    search: SearchReport
    notes: tuple[str, ...]

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
        """Information about the base parameters; `known` of a next design."""
        return self.score.information

    @property
    def start(self) -> Float[np.ndarray, " dof"]:
        """The posture in which it begins and ends."""
        return self.sample(0.0).q

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        return self.motion.sample(t)

    def repeated(self, times: int) -> Fourier:
        """Return the motion several times over, without a stop in between."""
        return replace(self.motion, periods=times * self.motion.periods)
