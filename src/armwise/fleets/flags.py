"""Flags: robots that differ from their fleet, in what, how surely, and why.

Every hypothesis is a direction, or a few, in which β moves: mass that is lost or gained
at a point of a link, friction that has grown in one joint, an encoder that has slipped.
The last is found by asking what the slip would have done to this very estimate, so that
all are judged alike: how much of the difference is explained, in units of its scatter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    from armwise.recordings import Preparation


# Known defects: what each would do to a robot's estimate.

Kind = Literal[
    "lost bolt",
    "added mass",
    "dragging bearing",
    "slipped encoder",
    "torque gain",
    "torque lag",
]

_REACH = 3.0
"""Farthest position of a lost mass from a link's centre, in radii of gyration: a
slender body ends at √3 of them, and its flange stands out further."""

# Judgement: the size of a small flange.
_LEAST_REACH = 0.05
"""The same in [m], for links that are described as points."""

_STARTS = 12
"""Points from which the search for a lost mass begins: mass and position make a valley
with a few bends, and a dozen low-discrepancy starts find its bottom."""

# Judgement: far above rounding of whitened numbers of size one, far below anything that
# a t-test could show.
_INVISIBLE = 1e-6
"""A hypothesis that moves no estimate by this many standard deviations of it, for a
change of one, cannot be tested."""


@dataclass(frozen=True)
class Defect:
    """Something that a robot may have.

    Attributes:
        kind: What happened.
        component: The link or joint.
        size: Of a mass in [kg]; of friction and of a torque gain as a factor on the
            fleet's mean; of a slip in [rad]; of a lag in [s], behind the fleet's.
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
            case "torque gain":
                how = f"{100 * (self.size - 1):+.1f} % beside the fleet's"
            case "torque lag":
                how = f"{1000 * self.size:+.1f} ms beside the fleet's; taken out"
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
            # Singular values below 1e-9 of the largest are rounding (judgement: between
            # √ε and ε): their directions get no shift instead of a huge one.
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
        # x_scale: a tenth of the link's mass and half the box count as steps of one; in
        # kg and m the trust region would be a thin slab.
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
    gains: Float[np.ndarray, "base joints"],
) -> list[Hypothesis]:
    """List everything that has a name.

    Args:
        arm: The arm with the fleet's mean parameters.
        base: Which combinations β are.
        slips: What a slip of each encoder, in [rad], would have done to β.
        gains: What twice the torque of each joint would have done to β.
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
    for i, direction in zip(arm.coordinates, gains.T, strict=True):
        name = arm.joints[i].name
        hypotheses.append(ParameterShift("torque gain", name, direction[:, None]))
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
    # A gram at the least: a link without mass would divide by zero below and leave the
    # search for a lost mass an empty interval.
    mass = max(body.mass, 1e-3)
    # Σ/m − c cᵀ: mean square distance from the centre of mass along each axis.
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
    # With Ω + C = L Lᵀ, L⁻¹ times the difference has unit covariance: χ² becomes a
    # plain sum of squares, and every hypothesis a least-squares fit.
    whitener = np.linalg.inv(np.linalg.cholesky(covariance))
    target = whitener @ difference
    fits = [one.fit(target, whitener) for one in hypotheses]
    penalty = np.log(len(target))
    # −½ BIC up to a constant common to all: the logarithm of approximate posterior odds
    # under equal priors.
    evidence = 0.5 * np.array(
        [f.gain - h.freedom * penalty for f, h in zip(fits, hypotheses, strict=True)]
    )
    # No defect at all is one more hypothesis, of evidence zero; exp never overflows.
    weights = np.exp(evidence - max(float(evidence.max()), 0.0))
    k = int(np.argmax(evidence))
    # 1e-300 only keeps the division defined for a robot no stranger than typical.
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
    elif kind == "torque gain":
        size = 1.0 + size
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


# Judgement: halfway from a link's centre to the end of its box, along each axis.
_PROBES = np.vstack([np.zeros(3), 0.5 * np.eye(3), -0.5 * np.eye(3)])
"""Positions at which a mass is tried, in units of a link's reach."""


@dataclass(frozen=True, eq=False)
class FleetTests:
    """How much every robot differs: in each parameter, and as each defect would.

    A defect moves many parameters a little. Seen along its own direction, in units of
    how much the others scatter along it, it shows long before any one parameter does.

    Attributes:
        chances: Chance, for each robot, that a fleet without defects has any robot that
            differs as much.
        limit: Standard deviations by which a parameter must differ to be flagged, with
            the asked chance of any false alarm at all. Of four robots it is tens.
        false_alarms: That chance.
    """

    chances: Float[np.ndarray, " robots"]
    limit: float
    false_alarms: float

    @property
    def differing(self) -> list[int]:
        """Numbers of the robots that differ."""
        return [int(r) for r in np.flatnonzero(self.chances < self.false_alarms)]


def compare_robots(
    problem: Problem,
    arm: Arm,
    family: Hierarchy,
    gains: Float[np.ndarray, "robots base joints"],
    false_alarms: float,
) -> FleetTests:
    """Test every robot against its fleet, in every parameter and along every defect.

    Args:
        problem: What was estimated.
        arm: The arm with the fleet's mean parameters.
        family: The fleet.
        gains: For each robot, what twice the torque of each joint would have done.
        false_alarms: Chance that a fleet without defects has any robot flagged.
    """
    common = _probed_directions(arm, problem.base)
    projected = []
    for r, own in enumerate(gains):
        directions = np.hstack([common, own])
        inverse = np.linalg.inv(family.covariance[r])
        pull = directions.T @ inverse
        # The matched filter: the largest ratio of a defect's size to its scatter.
        variance = np.einsum("hb,bh->h", pull, directions)
        is_visible = variance > _INVISIBLE**2
        size = np.sqrt(np.where(is_visible, variance, 1.0))
        projected.append(np.where(is_visible, pull @ family.differences[r] / size, 0.0))
    along, freedom = _studentised(np.array(projected), family.is_alike)
    # Half of the chance for parameters, half for defects.
    chances = 2.0 * np.minimum(
        _chance_of_any(family.scores, family.freedom), _chance_of_any(along, freedom)
    )
    limit = largest_score(0.5 * false_alarms, family.scores.size, family.freedom)
    return FleetTests(np.minimum(chances, 1.0), limit, false_alarms)


def _chance_of_any(scores: np.ndarray, freedom: float) -> Float[np.ndarray, " robots"]:
    """Two-sided t-test of every score of every robot, Bonferroni-corrected."""
    from scipy.stats import t

    if freedom < 1 or not scores.size:
        return np.ones(len(scores))
    tests = np.count_nonzero(scores)
    return np.asarray(2.0 * tests * t.sf(np.abs(scores).max(axis=1), freedom))


def _probed_directions(
    arm: Arm, base: BaseParameters
) -> Float[np.ndarray, "base tests"]:
    """How β moves with mass on every link, and with friction of every joint."""
    columns = []
    for i, link in enumerate(arm.links):
        bolt = _lost_bolt(link, base.matrix[:, arm.layout.link(i)])
        for probe in _PROBES:
            mass = point_mass(1.0, bolt.center + bolt.reach * probe)
            columns.append(bolt.directions @ mass)
    for term in ("viscous", "coulomb"):
        columns += list(base.matrix[:, arm.layout.drive(term)].T)
    return np.stack(columns, axis=1)


_MOST_BORROWED = 10.0
"""Degrees of freedom that a scatter may borrow from those of other directions, at most.
Judgement: directions overlap, so that they agree better than independent ones would."""


def _studentised(scores: np.ndarray, is_alike: np.ndarray) -> tuple[np.ndarray, float]:
    """Scores in units of their scatter among the other robots, and its freedom.

    The covariance behind them is shrunk, so their own variance is not one; that of the
    others is, whatever the covariance was. The scatter of ten robots alone is poorly
    known: it is drawn towards that of the other directions, as far as they agree
    (moderated t-statistics, Smyth 2004).
    """
    from scipy.special import digamma, polygamma

    others = is_alike[None, :] & ~np.eye(len(scores), dtype=bool)
    counts = others.sum(axis=1, keepdims=True)
    freedom = float(counts.min()) - 1.0
    if freedom < 1.0:
        return scores, 0.0
    informative = np.any(scores, axis=0)
    square = np.where(informative, others @ scores**2 / counts, 1.0)
    # log s² has the mean ψ(d/2) − log(d/2) beside log σ², and the variance ψ'(d/2).
    level = np.log(square[:, informative]) - digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(np.var(level, axis=1).mean() - polygamma(1, freedom / 2))
    # ψ'(x) ≈ 1/x: directions that differ by no more than chance agree fully.
    borrowed = min(2.0 / max(excess, 1e-9), _MOST_BORROWED)
    typical = np.exp(level.mean(axis=1, keepdims=True))
    moderated = (freedom * square + borrowed * typical) / (freedom + borrowed)
    return scores / np.sqrt(moderated), freedom + borrowed


_MAD_TO_STD = 1.4826
"""Standard deviation over median absolute deviation, of a Gaussian."""


def flag_lags(
    lags: Mapping[str, float], shared: Preparation, false_alarms: float
) -> tuple[Flag, ...]:
    """Flag robots whose torque lags by another time than the others'.

    It is taken out of their logs, so nothing else of them is affected.
    """
    from scipy.stats import t

    values = np.array(list(lags.values()))
    away = values - np.median(values)
    # A lag is known to a sample at best, of uniform error.
    period = 1.0 / shared.sample_rate_hz if shared.sample_rate_hz else 0.0
    least = max(period / np.sqrt(12.0), 1e-6)
    scatter = max(_MAD_TO_STD * float(np.median(np.abs(away))), least)
    freedom = len(values) - 1
    flags = []
    for (robot, _), difference in zip(lags.items(), away.tolist(), strict=True):
        if freedom < 1 or abs(difference) <= period:
            continue
        chance = 2.0 * float(t.sf(abs(difference) / scatter, freedom)) * len(values)
        if chance < false_alarms:
            defect = Defect("torque lag", "all joints", difference, (), 1.0, 1.0)
            flags.append(Flag(robot, (), chance, defect))
    return tuple(flags)


def gain_directions(
    problem: Problem, sums: ChunkSums, torque_std: np.ndarray
) -> Float[np.ndarray, "base joints"]:
    """Say what twice the torque of each joint would have done to an estimate.

    Args:
        problem: What was estimated.
        sums: The robot's stretches.
        torque_std: Weights of the estimate, per joint in [N m].
    """
    matrices, torques = [], []
    for j, (base, behind) in enumerate(_weighted_rows(problem, sums, torque_std)):
        torque = np.zeros((len(base), len(torque_std)))
        torque[:, j] = behind[:, -1]
        matrices.append(base)
        torques.append(torque)
    return _moved_by(np.vstack(matrices), np.vstack(torques))


def _weighted_rows(
    problem: Problem, sums: ChunkSums, torque_std: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of each joint in units of its noise: base columns, and all behind them."""
    leaders = problem.columns.user[:, list(problem.base.indices)]
    joints = zip(problem.columns.support, sums.factors, torque_std, strict=True)
    for support, factors, std in joints:
        stacked = factors.reshape(-1, factors.shape[-1]) / std
        yield stacked[:, : support.size] @ leaders[support], stacked[:, support.size :]


def _moved_by(A: np.ndarray, D: np.ndarray) -> Float[np.ndarray, "base moves"]:
    """How β moves when the torque moves along D: least squares with D on the right."""
    # Columns of length one: otherwise rcond would cut parameters for their units.
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return np.asarray(np.linalg.lstsq(A / scale, D, rcond=1e-9)[0] / scale[:, None])


def slip_directions(
    problem: Problem, sums: ChunkSums, torque_std: np.ndarray
) -> Float[np.ndarray, "base joints"]:
    """Say what a slip of each encoder, in [rad], would have done to an estimate.

    Args:
        problem: What was estimated.
        sums: The robot's stretches with columns for slips behind the arm's own.
        torque_std: Weights of the estimate, per joint in [N m].
    """
    rows = [
        (base, behind[:, :-1])
        for base, behind in _weighted_rows(problem, sums, torque_std)
    ]
    matrices, slips = zip(*rows, strict=True)
    return _moved_by(np.vstack(matrices), np.vstack(slips))


def flag(
    problem: Problem,
    arm: Arm,
    family: Hierarchy,
    robots: Sequence[str],
    slips: Mapping[int, Float[np.ndarray, "base joints"]],
    gains: Float[np.ndarray, "robots base joints"],
    tests: FleetTests,
) -> tuple[Flag, ...]:
    """Say in what robots differ, and name the reason.

    Args:
        problem: What was estimated.
        arm: The arm with the fleet's mean parameters.
        family: The fleet.
        robots: Names of all robots.
        slips: For each robot to flag, what slipped encoders would have done to it.
        gains: For each robot, what twice the torque of each joint would have done.
        tests: How much every robot differs.
    """
    precision = np.linalg.inv(family.covariance[family.is_alike])
    alike = family.differences[family.is_alike]
    # The median: a robot just below the flagging limit must not set what is typical.
    typical = float(np.median(np.einsum("rk,rkl,rl->r", alike, precision, alike)))
    flags = []
    for r, directions in slips.items():
        defect = name_defect(
            family.differences[r],
            family.covariance[r],
            typical,
            known_defects(arm, problem.base, directions, gains[r]),
            dict(zip(arm.parameter_names, arm.parameters.tolist(), strict=True)),
        )
        differences = _differences(problem, family, r)
        chance = float(tests.chances[r])
        flags.append(Flag(robots[r], differences, chance, defect))
    return tuple(flags)


# Judgement: a defect moves a handful of combinations; further ones repeat it.
_SHOWN = 5
"""Differences named of a robot."""


def _differences(problem: Problem, family: Hierarchy, r: int) -> tuple[Difference, ...]:
    """The plainest differences of a robot."""
    from scipy.stats import t

    scores, values = family.scores[r], family.differences[r]
    # Two-sided t-test of every parameter of every robot, Bonferroni-corrected.
    chances = np.minimum(
        2.0 * t.sf(np.abs(scores), family.freedom) * family.scores.size, 1.0
    )
    order = [int(k) for k in np.argsort(-np.abs(scores))[:_SHOWN]]
    # A Bonferroni bound of one says nothing: such differences are not listed.
    notable = [k for k in order if chances[k] < 1.0]
    expressions = problem.base.expressions
    return tuple(
        Difference(
            expressions[k],
            float(values[k]),
            float(values[k] / scores[k]),
            float(scores[k]),
        )
        for k in notable
    )
