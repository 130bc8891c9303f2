"""Flags: robots that differ from their fleet, in what, how surely, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.fleets.defects import Defect, Hypothesis, known_defects
from armwise.fleets.hierarchy import Hierarchy, largest_score
from armwise.fleets.job import ChunkSums

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.identification import Problem


# Naming: which of the known defects explains best how a robot differs.

_LEAST_EXPLAINED = 0.5
"""Fraction of a difference that a defect must explain: with less, most of what is
unusual has another reason."""


def name_defect(
    difference: Float[np.ndarray, " base"],
    covariance: Float[np.ndarray, "base base"],
    typical: float,
    hypotheses: Sequence[Hypothesis],
    mean: Mapping[str, float],
) -> Defect | None:
    """Choose the defect that explains a difference best.

    By the Bayesian information criterion: a gain in χ² less log(n) for every number
    that a hypothesis can choose.

    Args:
        difference: Of the robot from the fleet's mean, in base parameters.
        covariance: Of that difference, for a robot without defects.
        typical: χ² of a typical robot's difference.
        hypotheses: What to choose from.
        mean: The fleet's mean parameters, by name.

    Returns:
        The best; None if even that explains too little of what is unusual.
    """
    whitener = np.linalg.inv(np.linalg.cholesky(covariance))
    target = whitener @ difference
    fits = [one.fit(target, whitener) for one in hypotheses]
    penalty = np.log(len(target))
    evidence = 0.5 * np.array(
        [f.gain - h.freedom * penalty for f, h in zip(fits, hypotheses, strict=True)]
    )
    # No defect at all is one more hypothesis, of evidence zero; exp never overflows.
    weights = np.exp(evidence - max(float(evidence.max()), 0.0))
    k = int(np.argmax(evidence))
    unusual = max(float(target @ target) - typical, 1e-300)
    explained = min(fits[k].gain / unusual, 1.0)
    if explained < _LEAST_EXPLAINED:
        return None
    probability = float(weights[k] / weights.sum())
    return _described(hypotheses[k], fits[k].values, explained, probability, mean)


def _described(
    hypothesis: Hypothesis,
    values: np.ndarray,
    explained: float,
    probability: float,
    mean: Mapping[str, float],
) -> Defect:
    kind, component = hypothesis.kind, hypothesis.component
    position: tuple[float, ...] = ()
    size = float(values[0])
    if kind == "lost bolt":
        kind = "lost bolt" if size > 0 else "added mass"
        size, position = abs(size), tuple(map(float, values[1:]))
    elif kind == "dragging bearing":
        typical = [mean[f"{component}.{term}"] for term in ("viscous", "coulomb")]
        pairs = zip(values, typical, strict=True)
        factors = [1.0 + float(v) / u for v, u in pairs if u > 0]
        size = max(factors, default=float("inf"))
    return Defect(kind, component, size, position, explained, probability)


@dataclass(frozen=True)
class Difference:
    """A combination of parameters in which a robot is not like its fleet.

    Attributes:
        expression: The combination, such as `link_7.mx`.
        value: The robot's own minus the fleet's mean.
        std: How much robots without defects differ in it, error of estimates included.
        score: value / std.
    """

    expression: str
    value: float
    std: float
    score: float


@dataclass(frozen=True)
class Flag:
    """A robot that differs.

    Attributes:
        robot: Its name.
        differences: In what, the plainest first.
        false_alarm: Chance that a fleet of this size without any defect has a robot
            that differs as much in anything.
        defect: The defect that explains it best; None if no known one does.
    """

    robot: str
    differences: tuple[Difference, ...]
    false_alarm: float
    defect: Defect | None


def differing_robots(family: Hierarchy, false_alarms: float) -> list[int]:
    """Number the robots that differ, with that chance of any false alarm at all."""
    limit = largest_score(false_alarms, family.scores.size, family.freedom)
    return [int(r) for r in np.flatnonzero(np.abs(family.scores).max(axis=1) > limit)]


def slip_directions(
    problem: Problem, sums: ChunkSums, torque_std: np.ndarray
) -> Float[np.ndarray, "base joints"]:
    """Say what a slip of each encoder, in [rad], would have done to an estimate.

    Args:
        problem: What was estimated.
        sums: The robot's stretches with columns for slips behind the arm's own.
        torque_std: Weights of the estimate, per joint in [N m].
    """
    leaders = problem.columns.user[:, list(problem.base.indices)]
    rows = []
    joints = zip(problem.columns.support, sums.factors, torque_std, strict=True)
    for support, factors, std in joints:
        stacked = factors.reshape(-1, factors.shape[-1]) / std
        own, slips = stacked[:, : support.size], stacked[:, support.size : -1]
        rows.append(np.hstack([own @ leaders[support], slips]))
    matrix = np.vstack(rows)
    A, D = matrix[:, : leaders.shape[1]], matrix[:, leaders.shape[1] :]
    # How β moves when the torque moves along D: least squares with D on the right.
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return np.asarray(np.linalg.lstsq(A / scale, D, rcond=1e-9)[0] / scale[:, None])


def flag(
    problem: Problem,
    arm: Arm,
    family: Hierarchy,
    robots: Sequence[str],
    slips: Mapping[int, Float[np.ndarray, "base joints"]],
) -> tuple[Flag, ...]:
    """Say in what robots differ, and name the reason.

    Args:
        problem: What was estimated.
        arm: The arm with the fleet's mean parameters.
        family: The fleet.
        robots: Names of all robots.
        slips: For each robot to flag, what slipped encoders would have done to it.
    """
    precision = np.linalg.inv(family.covariance[family.is_alike])
    alike = family.differences[family.is_alike]
    typical = float(np.median(np.einsum("rk,rkl,rl->r", alike, precision, alike)))
    flags = []
    for r, directions in slips.items():
        defect = name_defect(
            family.differences[r],
            family.covariance[r],
            typical,
            known_defects(arm, problem.base, directions),
            dict(zip(arm.parameter_names, arm.parameters.tolist(), strict=True)),
        )
        differences, chance = _differences(problem, family, r)
        flags.append(Flag(robots[r], differences, chance, defect))
    return tuple(flags)


_SHOWN = 5
"""Differences named of a robot."""


def _differences(
    problem: Problem, family: Hierarchy, r: int
) -> tuple[tuple[Difference, ...], float]:
    """The plainest differences of a robot, and the chance of the first by accident."""
    from scipy.stats import t

    scores, values = family.scores[r], family.differences[r]
    # Two-sided t-test of every parameter of every robot, Bonferroni-corrected.
    chances = np.minimum(
        2.0 * t.sf(np.abs(scores), family.freedom) * family.scores.size, 1.0
    )
    order = [int(k) for k in np.argsort(-np.abs(scores))[:_SHOWN]]
    notable = [k for k in order if chances[k] < 1.0]
    expressions = problem.base.expressions
    differences = tuple(
        Difference(
            expressions[k],
            float(values[k]),
            float(values[k] / scores[k]),
            float(scores[k]),
        )
        for k in notable
    )
    return differences, float(chances[order[0]])
