"""Estimate of a fleet: pooled, robot by robot, and its outliers; its file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import ArmwiseError
from armwise.files import json_text, write_atomically
from armwise.recordings import (
    LONGEST_STORED_LAG,
    Preparation,
    plain_number,
    preparation_from_dict,
    preparation_to_dict,
)
from armwise.tables import read_json

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.fleets.flags import Flag
    from armwise.fleets.hierarchy import Hierarchy
    from armwise.fleets.job import BadLog
    from armwise.identification import Estimate, Problem


@dataclass(frozen=True)
class FleetWork:
    """How much work a fleet was.

    Attributes:
        logs: Logs that were used.
        rows: Rows they hold.
        samples: Samples that were made of them.
        chunks: Chunks they were cut into.
        reused: Chunks that an earlier run had finished.
        peak_memory: Most memory a worker held in [bytes]; 0 if there was nothing to do.
        seconds: How long all of it took in [s].
    """

    logs: int
    rows: int
    samples: int
    chunks: int
    reused: int
    peak_memory: int
    seconds: float


LARGEST_LIMIT = 13.0
"""Standard deviations between robots: a fleet in which a robot must differ by more to
be flagged, of fewer than ten robots, cannot tell whether one does. Judgement: a known
load, a dragging bearing or a wrong torque constant is 10 to 50 along its own direction
where robots spread by 3 %."""


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
        lags: Lag of every robot's torque behind its motion in [s].
        limit: Standard deviations by which a robot must differ to be flagged.
        work: How much work it was.
        problem: What was estimated.
    """

    pooled: Estimate
    robots: Mapping[str, Estimate]
    family: Hierarchy
    flagged: tuple[Flag, ...]
    bad_logs: tuple[BadLog, ...]
    preparation: Preparation
    lags: Mapping[str, float]
    limit: float
    work: FleetWork
    problem: Problem

    def __repr__(self) -> str:
        """One line: how many robots, how many of them differ."""
        return (
            f"<FleetEstimate of {self.pooled.prior_arm.name}: "
            f"{len(self.robots)} robots, {len(self.flagged)} flagged, "
            f"{len(self.bad_logs)} logs left out>"
        )

    @property
    def can_tell(self) -> bool:
        """Whether the fleet is large enough to say that none of its robots differs."""
        return self.limit <= LARGEST_LIMIT

    @property
    def mean(self) -> Float[np.ndarray, " base"]:
        """Mean of the robots' base parameters, those that differ left out."""
        return self.family.mean

    @property
    def mean_std(self) -> Float[np.ndarray, " base"]:
        """Standard deviation of the mean."""
        return self.family.mean_std

    @property
    def spread(self) -> Float[np.ndarray, "base base"]:
        """Covariance of the robots' true base parameters around the mean."""
        return self.family.spread

    @cached_property
    def deviations(self) -> dict[str, Float[np.ndarray, " base"]]:
        """Every robot's own deviation from the mean, shrunk by its uncertainty."""
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
        # Shrinkage assumes a robot of the family; it would hide the very defect.
        if robot in {one.robot for one in self.flagged}:
            return self.robots[robot].arm
        return self._arm(self.mean + self.deviations[robot])

    def _arm(self, values: np.ndarray) -> Arm:
        described = self.problem.columns.arm
        parameters = self.problem.parameters(values)[: described.parameters.size]
        return described.with_parameters(parameters)


# The file.

VERSION = 2
"""Version of the file format."""


def write_fleet(fleet: FleetEstimate, path: str | Path) -> None:
    """Write a fleet's estimate as JSON, under a temporary name first."""
    text = json_text(fleet_to_dict(fleet))
    write_atomically(path, text)


def fleet_to_dict(fleet: FleetEstimate) -> dict[str, Any]:
    """Return a fleet as plain numbers and words; what is not finite is null."""
    return {
        "version": VERSION,
        "arm": fleet.problem.columns.arm.name,
        "base_parameter_count": fleet.problem.base.count,
        "condition_number": _plain([fleet.pooled.condition_number])[0],
        "fit": {"relative_error": _plain(fleet.pooled.fit.relative_error)},
        "validation": None,
        "preparation": preparation_to_dict(fleet.preparation),
        "lags": dict(fleet.lags),
        "flag_limit": _plain([fleet.limit])[0],
        "can_tell": fleet.can_tell,
        "work": asdict(fleet.work),
        "bad_logs": [
            {"path": str(bad.path), "problem": bad.problem} for bad in fleet.bad_logs
        ],
        "flagged": [flag_to_dict(one) for one in fleet.flagged],
        "base_parameters": list(fleet.problem.base.expressions),
        "mean": _plain(fleet.mean),
        "mean_std": _plain(fleet.mean_std),
        "spread": _plain(np.sqrt(np.diag(fleet.spread))),
        "pooled": {
            "method": fleet.pooled.method,
            "values": _plain(fleet.pooled.base_values),
            "std": _plain(fleet.pooled.base_std),
        },
        "robots": {name: _robot(fleet, name) for name in fleet.robots},
    }


def read_preparation(path: str | Path) -> tuple[Preparation, dict[str, float]]:
    """Read from a fleet's file how its logs were prepared, and each robot's lag.

    Raises:
        ArmwiseError: If the file is not of a fleet.
    """
    table = read_json(Path(path), "a fleet's estimate")
    try:
        return preparation_from_dict(table["preparation"]), _lags(table["lags"])
    except (
        *(ValueError, KeyError, TypeError, AttributeError, OverflowError),
        ArmwiseError,
    ) as error:
        raise ArmwiseError(
            f"{path} does not say how a fleet's logs were prepared ({error}). Name a "
            "fleet.json that armwise identify-fleet wrote."
        ) from None


def _lags(stored: dict[str, Any]) -> dict[str, float]:
    lags = {str(robot): plain_number(lag) for robot, lag in stored.items()}
    if not all(abs(lag) <= LONGEST_STORED_LAG for lag in lags.values()):
        raise ValueError("a lag is none")
    return lags


def _robot(fleet: FleetEstimate, name: str) -> dict[str, Any]:
    estimate = fleet.robots[name]
    return {
        "samples": estimate.fit.samples,
        "relative_error": _plain(estimate.fit.relative_error),
        "values": _plain(estimate.base_values),
        "std": _plain(estimate.base_std),
        "deviation": _plain(fleet.deviations[name]),
        "deviation_std": _plain(fleet.deviation_std[name]),
    }


def flag_to_dict(flag: Flag) -> dict[str, Any]:
    """Return a flag as plain numbers and words."""
    return asdict(flag) | {
        "name": str(flag.defect) if flag.defect else "differs, for no reason known here"
    }


def _plain(values: Iterable[float]) -> list[float | None]:
    # JSON has no infinity or NaN: an undetermined parameter is null.
    return [float(v) if math.isfinite(v) else None for v in values]
