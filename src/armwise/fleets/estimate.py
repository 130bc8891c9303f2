"""What a fleet's logs say: of all robots, of each, and of those that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.fleets.flags import Flag
from armwise.fleets.gather import BadLog
from armwise.fleets.hierarchy import Hierarchy

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.identification.estimate import Estimate
    from armwise.identification.problem import Problem
    from armwise.recordings.preparation import Preparation


@dataclass(frozen=True)
class Work:
    """What was done, by whom.

    Attributes:
        logs: Logs that were used.
        rows: Rows they hold.
        samples: Samples that were made of them.
        pieces: Pieces they were cut into.
        found: Pieces that an earlier run had finished.
        peak_memory: Most memory a worker held in [bytes]; 0 if there was nothing to do.
        seconds: How long all of it took in [s].
    """

    logs: int
    rows: int
    samples: int
    pieces: int
    found: int
    peak_memory: int
    seconds: float


@dataclass(frozen=True, eq=False)
class FleetEstimate:
    """Estimates of a fleet of like arms.

    Attributes:
        pooled: The arm that explains all logs together.
        robots: Each robot by itself, by name.
        family: The robots as a family, in base parameters.
        flagged: Robots that differ, in what, and why.
        bad_logs: Logs that were left out.
        preparation: How samples were made of every log.
        work: What was done.
        problem: What was sought.
    """

    pooled: Estimate
    robots: Mapping[str, Estimate]
    family: Hierarchy
    flagged: tuple[Flag, ...]
    bad_logs: tuple[BadLog, ...]
    preparation: Preparation
    work: Work
    problem: Problem

    @property
    def mean(self) -> Float[np.ndarray, " base"]:
        """Mean of the robots' base parameters, those that differ left out."""
        return self.family.mean

    @property
    def mean_std(self) -> Float[np.ndarray, " base"]:
        """How well the mean is known."""
        return self.family.mean_std

    @property
    def spread(self) -> Float[np.ndarray, "base base"]:
        """Covariance of the robots' true base parameters around the mean."""
        return self.family.spread

    @cached_property
    def deviations(self) -> dict[str, Float[np.ndarray, " base"]]:
        """Every robot's own deviation from the mean, shrunk by what is uncertain."""
        return dict(zip(self.robots, self.family.deviations, strict=True))

    @cached_property
    def deviation_std(self) -> dict[str, Float[np.ndarray, " base"]]:
        """How far the deviations may be off."""
        return dict(zip(self.robots, self.family.deviation_std, strict=True))

    @cached_property
    def arm(self) -> Arm:
        """The arm with the fleet's mean parameters."""
        return self._arm(self.mean)

    def arm_of(self, robot: str) -> Arm:
        """Return the arm with the best guess for one robot: the mean and its own part.

        Better than its estimate alone where its logs say little. A robot that differs
        keeps what it has been estimated at.
        """
        if robot in {one.robot for one in self.flagged}:
            return self.robots[robot].arm
        return self._arm(self.mean + self.deviations[robot])

    def _arm(self, values: np.ndarray) -> Arm:
        described = self.problem.columns.arm
        parameters = self.problem.parameters(values)[: described.parameters.size]
        return described.with_parameters(parameters)
