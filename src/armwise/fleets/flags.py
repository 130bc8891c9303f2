"""Flags: robots that differ from their fleet, in what, how surely, and why.

Every hypothesis is a direction, or a few, in which β moves: mass that is lost or gained
at a point of a link, friction that has grown in one joint, an encoder that has slipped.
The last is found by asking what the slip would have done to this very estimate, so that
all are judged alike: how much of the difference is explained, in units of its scatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from armwise.arms import InertialParameters
from armwise.fleets.hierarchy import Hierarchy, largest_score
from armwise.fleets.job import ChunkSums

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm, Link
    from armwise.dynamics import BaseParameters
    from armwise.identification import Problem


# Known defects: what each would do to a robot's estimate.

Kind = Literal["lost bolt", "added mass", "dragging bearing", "slipped encoder"]

_REACH = 3.0
"""Farthest position of a lost mass from a link's centre, in radii of gyration: a
slender body ends at √3 of them, and its flange stands out further."""

_LEAST_REACH = 0.05
"""The same in [m], for links that are described as points."""

_STARTS = 12
"""Points from which the search for a lost mass begins: mass and position make a valley
with a few bends, and a dozen low-discrepancy starts find its bottom."""

_INVISIBLE = 1e-6
"""A hypothesis that moves no estimate by this many standard deviations of it, for a
change of one, cannot be tested."""


@dataclass(frozen=True)
class Defect:
    """Something that a robot may have.

    Attributes:
        kind: What happened.
        component: The link or joint.
        size: Of a mass in [kg]; of friction as a factor on the fleet's mean; of a slip
            in [rad].
        position: Where on its link a mass is missing or new, in [m]; else empty.
        explained: Fraction of the robot's difference that this explains, 0 … 1.
        probability: Chance that this is the right name, among those known here.
    """

    kind: Kind
    component: str
    size: float
    position: tuple[float, ...]
    explained: float
    probability: float

    def __str__(self) -> str:
        match self.kind:
            case "dragging bearing":
                how = f"friction {self.size:.2g} times the fleet's"
            case "slipped encoder":
                how = f"by {np.rad2deg(self.size):+.2f}°"
            case _:
                where = ", ".join(f"{1000 * x:.0f}" for x in self.position)
                how = f"{1000 * self.size:.0f} g near ({where}) mm"
        return f"{self.kind} at {self.component} ({how})"


class HypothesisFit(NamedTuple):
    """How well a hypothesis fits: its gain in χ², and its numbers."""

    gain: float
    values: np.ndarray


class Hypothesis(Protocol):
    """A way for a robot to differ."""

    @property
    def kind(self) -> Kind:
        """What happened."""
        ...

    @property
    def component(self) -> str:
        """The link or joint."""
        ...

    @property
    def freedom(self) -> int:
        """How many numbers it can choose."""
        ...

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> HypothesisFit:
        """Explain a whitened difference as well as it can."""
        ...


@dataclass(frozen=True, eq=False)
class ParameterShift:
    """β moves along given directions: forwards only if `is_growth`, else both ways."""

    kind: Kind
    component: str
    directions: Float[np.ndarray, "base freedom"]
    is_growth: bool = False

    @property
    def freedom(self) -> int:
        """One number per direction."""
        return int(self.directions.shape[1])

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> HypothesisFit:
        """Least squares, or non-negative least squares."""
        from scipy.optimize import nnls

        whitened = whitener @ self.directions
        if np.linalg.norm(whitened) < _INVISIBLE:
            return HypothesisFit(0.0, np.zeros(self.freedom))
        if self.is_growth:
            values = nnls(whitened, target)[0]
        else:
            values = np.linalg.lstsq(whitened, target, rcond=1e-9)[0]
        residual = target - whitened @ values
        gain = float(target @ target - residual @ residual)
        return HypothesisFit(gain, values)


@dataclass(frozen=True, eq=False)
class PointMass:
    """A small mass is missing (positive) or new (negative) somewhere on a link.

    Attributes:
        component: The link.
        directions: How β moves with its ten inertial parameters.
        center, reach: Middle and half size of the box it may have sat in, in [m].
        most: Largest mass in [kg].
    """

    component: str
    directions: Float[np.ndarray, "base 10"]
    center: Float[np.ndarray, " 3"]
    reach: Float[np.ndarray, " 3"]
    most: float
    kind: Kind = "lost bolt"

    @property
    def freedom(self) -> int:
        """Mass and position."""
        return 4

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> HypothesisFit:
        """Search mass and position from several starts."""
        from scipy.optimize import least_squares
        from scipy.stats import qmc

        # Only ten directions matter: rotated into them, ten numbers hold all the data.
        Q, R = np.linalg.qr(whitener @ self.directions)
        rotated = Q.T @ target
        low = np.array([-self.most, *(self.center - self.reach)])
        high = np.array([self.most, *(self.center + self.reach)])

        def residual(values: np.ndarray) -> np.ndarray:
            return rotated + R @ point_mass(values[0], values[1:])

        # Halton points without scrambling: the same fleet gives the same names.
        starts = qmc.scale(qmc.Halton(4, scramble=False).random(_STARTS), low, high)
        size = np.array([0.1 * self.most, *self.reach])
        solutions = [
            least_squares(residual, start, bounds=(low, high), x_scale=size)
            for start in starts
        ]
        best = min(solutions, key=lambda one: float(one.cost))
        return HypothesisFit(float(rotated @ rotated - 2.0 * best.cost), best.x)


def point_mass(mass: float, position: np.ndarray) -> Float[np.ndarray, " 10"]:
    """Inertial parameters of a mass in [kg] at a position in [m]."""
    point = np.append(position, 1.0)
    return InertialParameters.from_pseudo_inertia(mass * np.outer(point, point)).vector


def known_defects(
    arm: Arm,
    base: BaseParameters,
    slips: Float[np.ndarray, "base joints"],
) -> list[Hypothesis]:
    """List everything that has a name.

    Args:
        arm: The arm with the fleet's mean parameters.
        base: Which combinations β are.
        slips: What a slip of each encoder, in [rad], would have done to β.
    """
    K = base.matrix
    hypotheses: list[Hypothesis] = []
    for i, link in enumerate(arm.links):
        hypotheses.append(_lost_bolt(link, K[:, arm.layout.link(i)]))
    at = {name: k for k, name in enumerate(base.names)}
    for joint in arm.joints:
        names = [f"{joint.name}.{term}" for term in ("viscous", "coulomb")]
        drag = K[:, [at[name] for name in names if name in at]]
        if np.any(drag):
            hypotheses.append(
                ParameterShift("dragging bearing", joint.name, drag, is_growth=True)
            )
    for i, direction in zip(arm.coordinates, slips.T, strict=True):
        if arm.joints[i].is_revolute:
            name = arm.joints[i].name
            hypotheses.append(
                ParameterShift("slipped encoder", name, direction[:, None])
            )
    return hypotheses


def _lost_bolt(link: Link, directions: np.ndarray) -> PointMass:
    body = link.inertia
    center = body.center_of_mass
    mass = max(body.mass, 1e-3)
    gyration = np.diag(body.pseudo_inertia)[:3] / mass - center**2
    reach = np.maximum(_REACH * np.sqrt(np.maximum(gyration, 0.0)), _LEAST_REACH)
    return PointMass(link.name, directions, center, reach, mass)


# Flags: robots that differ from their fleet, in what, how surely, and why.

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
