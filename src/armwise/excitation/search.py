"""Search for the most informative motion: augmented Lagrangian, several starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.excitation.clearance import Clearance
from armwise.excitation.requirements import SETTLED, Requirements, resting_posture_near
from armwise.excitation.score import RIDGE, InformationModel, regularised_log_det
from armwise.excitation.series import Basis, RestingSeries
from armwise.progress import Progress

if TYPE_CHECKING:
    from jaxtyping import Float


# Augmented Lagrangian: a smooth penalty of violated limits, stiffened each round.

_FIRST, _GROWTH, _MOST = 30.0, 2.0, 2000.0
"""Stiffness ρ in the first round, its growth per round, and its largest value: soft at
first, so that information leads; at the end a violation of 1 % of a limit costs a tenth
of a nat per sample, and more would only slow the quasi-Newton steps."""


class Penalty:
    """Augmented-Lagrangian penalty of violated requirements.

    Each requirement is c ≤ 0 at every sample. The penalty is that of Powell, Hestenes
    and Rockafellar, Σ (max(0, λ + ρ c)² − λ²) / 2ρ; after a round the multiplier λ
    takes the latest force and the stiffness ρ grows.

    Args:
        requirements: What to keep.
        limit_fraction: Fraction of each limit that may be used.
        spare: Room in [m] to keep beyond what is required.
    """

    def __init__(
        self, requirements: Requirements, limit_fraction: float, spare: float
    ) -> None:
        self._requirements, self._spare = requirements, spare
        self._limit_fraction = limit_fraction
        self._stiffness = _FIRST
        self._forces: list[np.ndarray] = []
        self._latest: list[np.ndarray] = []
        self._pressed: tuple[np.ndarray, np.ndarray] | None = None
        self._pushed: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, states: Sequence[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        """Return the price and its gradient by q, q̇, q̈ at every sample."""
        price, weights = self._limits(self._requirements.fractions(states))
        slopes = self._requirements.slopes(states, weights)
        clearance = self._requirements.clearance
        if clearance is not None:
            more, push = self._room(clearance, states[0])
            price += more
            # No encounter is close: its gradient need not be computed.
            if push is not None:
                slopes[0] = slopes[0] + clearance.slopes(states[0], push)
        return price, slopes

    def stiffen(self) -> None:
        """End a round: remember the forces of the latest call and press harder."""
        self._forces, self._pressed = self._latest, self._pushed
        self._stiffness = min(self._stiffness * _GROWTH, _MOST)

    def _limits(
        self, fractions: Sequence[np.ndarray]
    ) -> tuple[float, list[np.ndarray]]:
        """Price of limits, and the net force on each fraction."""
        most = self._limit_fraction
        broken = [c for s in fractions for c in (s - most, -s - most)]
        before = self._forces or [np.zeros_like(c) for c in broken]
        self._latest = []
        price = 0.0
        for force, c in zip(before, broken, strict=True):
            more, after = self._price(force, c)
            price += more
            self._latest.append(after)
        pairs = zip(self._latest[::2], self._latest[1::2], strict=True)
        return price, [up - down for up, down in pairs]

    def _room(
        self, clearance: Clearance, q: np.ndarray
    ) -> tuple[float, np.ndarray | None]:
        """Price of coming too close, and the force on each room, if there is any.

        Most encounters are far off most of the time: only the others are looked at.
        """
        room = clearance.room(q)
        close = np.any(room < self._spare, axis=1)
        if self._pressed is not None:
            # A multiplier from the last round must be able to fall again, even where
            # the arm has moved away since.
            close[self._pressed[0]] = True
        rows = np.flatnonzero(close)
        if not rows.size:
            self._pushed = None
            return 0.0, None
        before = np.zeros((len(room), len(q)))
        if self._pressed is not None:
            before[self._pressed[0]] = self._pressed[1]
        broken = (self._spare - room[rows]) / clearance.unit
        price, force = self._price(before[rows], broken)
        self._pushed = (rows, force)
        push = np.zeros_like(room)
        push[rows] = -force / clearance.unit
        return price, push

    def _price(self, before: np.ndarray, c: np.ndarray) -> tuple[float, np.ndarray]:
        after = np.maximum(0.0, before + self._stiffness * c)
        gained = float(np.vdot(after, after)) - float(np.vdot(before, before))
        return gained / (2.0 * self._stiffness), after


# Objective: lost information plus penalty, over the free numbers of the series.

# A sinusoid sampled n times a period peaks between samples by up to 1 − cos(π/n): 2 %
# of its amplitude at 16, 0.1 % at 64.
COARSE, FINE = 16, 64
"""Samples in a period of the highest harmonic: to optimise, and to repair at last."""

LARGEST_MOVE, MOST_SAMPLES = 0.12, 500
"""How far in [rad] or [m] a joint may move between samples of the coarse grid, so that
an arm does not leap over obstacles, unless that takes more samples than this."""

MISSED_FRACTION, MISSED_ROOM = 0.16, 0.06
"""Fraction of a limit, and distance in [m], by which a peak between two samples may
exceed them, times the samples in a period of the highest harmonic."""

ACCEPTED = 0.4
"""Part of that which is enough when a motion is judged on the same grid."""

# Judgement: half a nat for a free number that changes by the whole of a limit: cheap
# beside a violation, dear enough to stay near.
PULL = 1.0
"""What it costs to bend a motion while repairing it."""


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """Find the series with most information that violates no requirement.

    Attributes:
        series: The motions to choose from.
        model: Their information.
        requirements: What they must respect.
        prior: What is known before, scaled and per sample like the model's.
        limit_fraction: Fraction of every limit that may be used.
        density: Samples in a period of the highest harmonic.
    """

    series: RestingSeries
    model: InformationModel
    requirements: Requirements
    prior: Float[np.ndarray, "count count"]
    limit_fraction: float
    density: int = COARSE

    def simplified(self) -> SearchProblem:
        """Return the same problem without what the arm hardly ever comes near."""
        return replace(self, requirements=self.requirements.nearby())

    def refined(self) -> SearchProblem:
        """Return the same problem on a finer grid."""
        return replace(self, density=FINE)

    @cached_property
    def basis(self) -> Basis:
        """The series on the grid of the optimisation."""
        series = self.series
        moves = series.period * float(series.bounds.velocity.max()) / LARGEST_MOVE
        # Per sample of the coarse grid, so that the finer grid scales with it.
        count = max(series.harmonics, min(moves, MOST_SAMPLES) / COARSE)
        count = int(np.ceil(self.density * count))
        return series.basis(np.arange(count) * (series.period / count))

    def states(self, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """q, q̇, q̈ on that grid."""
        return self.basis.states(self.series.coefficients(z))

    def excess(self, z: np.ndarray) -> float:
        """How far a motion is outside on that grid; negative if it is inside."""
        usage = self.requirements.usage(self.states(z))
        missed = ACCEPTED * MISSED_FRACTION / self.density
        return float(usage.excess(self.limit_fraction * (1.0 - missed)).max())

    def penalty(self) -> Penalty:
        """Return a new price of breaking requirements on that grid."""
        limit_fraction = self.limit_fraction * (1.0 - MISSED_FRACTION / self.density)
        return Penalty(self.requirements, limit_fraction, MISSED_ROOM / self.density)

    def log_det(self, z: np.ndarray) -> float:
        """Regularised log det of all that would be known."""
        information = self.model.of_states(self.states(z))
        return regularised_log_det(information + self.prior)

    def lost(
        self, penalty: Penalty, shape: tuple[int, int]
    ) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Return −log det + price and its gradient, as a function of flat z."""

        def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
            states = self.states(flat.reshape(shape))
            information, columns = self.model.softened(states)
            total = information + self.prior + RIDGE * np.eye(len(information))
            # Positive definite by the ridge; log det and inverse share the factor.
            factor = np.linalg.cholesky(total)
            inverse = np.linalg.inv(factor)
            value = -2.0 * float(np.log(np.diag(factor)).sum())
            slopes = self.model.slopes(states, columns, -inverse.T @ inverse)
            price, forces = penalty(states)
            sums = tuple(a + b for a, b in zip(slopes, forces, strict=True))
            pulled = self.series.pull_back(self.basis.gather(sums))
            return value + price, pulled.ravel()

        return evaluate

    def broken(
        self, penalty: Penalty, near: np.ndarray
    ) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Return the price, and that of leaving `near`, as a function of flat z."""

        def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
            price, forces = penalty(self.states(flat.reshape(near.shape)))
            pulled = self.series.pull_back(self.basis.gather(tuple(forces)))
            away = flat - near.ravel()
            return price + 0.5 * PULL * float(away @ away), pulled.ravel() + PULL * away

        return evaluate


# Random starting points: as large as the requirements allow.

_HALVINGS = 12
"""Bisections of the way to rest: 1/4096 of it is far below what a motion uses."""


def resting(
    series: RestingSeries, posture: np.ndarray
) -> Float[np.ndarray, "dof free"]:
    """Free numbers of an arm that stays in a posture."""
    z = np.zeros((series.bounds.dof, series.free))
    z[:, 0] = (posture - series.bounds.middle) / series.bounds.half_range
    return z


def random_start(
    problem: SearchProblem, posture: np.ndarray, rng: np.random.Generator
) -> Float[np.ndarray, "dof free"]:
    """Shake the arm around a posture at random, as far as the requirements allow.

    Each joint first takes all that its own limits of position, velocity and
    acceleration allow; then all shrink together until the rest holds too.
    """
    still = resting(problem.series, posture)
    shake = rng.normal(size=still.shape)
    shake[:, 0] = 0.0
    used = _used(problem, posture, still + shake)
    return shrink(still, still + shake / used[:, None], problem.excess)


def _used(
    problem: SearchProblem, posture: np.ndarray, z: np.ndarray
) -> Float[np.ndarray, " dof"]:
    """Largest fraction of its own limits that each joint uses around a posture."""
    q, qd, qdd = problem.states(z)
    b, away = problem.series.bounds, np.abs(q - posture).max(axis=0)
    free = problem.limit_fraction * b.half_range - np.abs(posture - b.middle)
    fast = np.abs(qd).max(axis=0) / (problem.limit_fraction * b.velocity)
    hard = np.abs(qdd).max(axis=0) / (problem.limit_fraction * b.acceleration)
    return np.maximum(np.maximum(away / free, fast), hard)


def shrink(
    still: np.ndarray,
    target: np.ndarray,
    excess: Callable[[np.ndarray], float],
) -> Float[np.ndarray, "dof free"]:
    """Move from a motion towards rest until it respects the requirements.

    At rest they hold with room to spare, so there is always such a motion.
    """
    if excess(target) <= 0.0:
        return target
    good, bad = 0.0, 1.0
    for _ in range(_HALVINGS):
        fraction = 0.5 * (good + bad)
        if excess(still + fraction * (target - still)) <= 0.0:
            good = fraction
        else:
            bad = fraction
    motion: np.ndarray = still + good * (target - still)
    return motion


# The search: several starts, the best of them to the end.

# Judgement: each stage keeps about a quarter to a third; later stages cost most.
FINISHED, STARTS, TRIED = 2, 6, 24
"""Starts optimised to the end, the best of those optimised a little, the best of so
many random motions."""

FIRST_STEPS, STEPS, ROUNDS = 50, 60, 7
"""Quasi-Newton steps of a start, of a round, and rounds for the best start."""

# Judgement: 0.05 nats over some forty base parameters is less than a tenth of a per
# cent of each standard deviation.
ENOUGH = 0.05
"""A round that gains less than this, in nats, is the last."""

REPAIRS, REPAIR_STEPS = 6, 20
"""Rounds, and steps of a round, of the way back when requirements are broken."""

FIRST_STEP = 0.05
"""Length of the first step of a descent, in units of the free numbers."""

Evaluation = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A motion that respects everything on the grid of the optimisation.

    Attributes:
        z: Its free numbers.
        still: Free numbers of a posture at rest that it can be shrunk towards.
        log_det: log det of its information.
    """

    z: Float[np.ndarray, "dof free"]
    still: Float[np.ndarray, "dof free"]
    log_det: float


@dataclass(frozen=True)
class SearchReport:
    """How a search went.

    Attributes:
        evaluations: Motions tried.
        ran_out: Whether the time budget ended it.
    """

    evaluations: int
    ran_out: bool


class Search:
    """One search for a problem's best motion; ends when done or out of time."""

    def __init__(
        self, problem: SearchProblem, deadline: float, progress: Progress | None
    ) -> None:
        self._whole, self._deadline = problem, deadline
        self._problem = problem.simplified()
        self._progress = progress or (lambda what, fraction: None)
        self._steps = 0
        self._evaluations = 0
        self._ran_out = False

    @property
    def report(self) -> SearchReport:
        """How it went so far."""
        return SearchReport(self._evaluations, self._ran_out)

    def run(self, postures: np.ndarray, rng: np.random.Generator) -> Candidate:
        """Search from random motions around some postures.

        The answer depends on the generator alone unless time runs out.
        """
        starts = self._starts(postures, rng)
        first = [self._improve(start, 1, FIRST_STEPS) for start in starts[:STARTS]]
        first = sorted([starts[0], *first], key=_log_det, reverse=True)
        final = [self._improve(start, ROUNDS, STEPS) for start in first[:FINISHED]]
        # A start that could not be improved is still a candidate.
        final = sorted([first[0], *final], key=_log_det, reverse=True)
        self._problem = self._whole.refined()
        best = max((self._restore(each.z, each) for each in final), key=_log_det)
        self._progress("optimising", 1.0)
        return best

    def _starts(
        self, postures: np.ndarray, rng: np.random.Generator
    ) -> list[Candidate]:
        """Random motions within the requirements, most informative first."""
        p = self._problem
        candidates: list[Candidate] = []
        for k in range(TRIED):
            posture = postures[k % len(postures)]
            z = random_start(p, posture, rng)
            candidates.append(Candidate(z, resting(p.series, posture), p.log_det(z)))
            self._progress("random motions", (k + 1) / TRIED)
            if self._is_late():
                break
        return sorted(candidates, key=_log_det, reverse=True)

    def _improve(self, start: Candidate, rounds: int, steps: int) -> Candidate:
        """Optimise from a start; keep the best that respects the requirements."""
        penalty = self._problem.penalty()
        evaluate = self._problem.lost(penalty, start.z.shape)
        best, z = start, start.z
        for _ in range(rounds):
            if self._is_late():
                break
            z = self._descend(evaluate, z, steps, ftol=1e-7)
            penalty.stiffen()
            improved = self._restore(z, start)
            gain = improved.log_det - best.log_det
            best = max(best, improved, key=_log_det)
            # A negative gain goes on: an early, soft round may end outside the limits
            # and lose by shrinking what a stiffer one keeps.
            if 0.0 <= gain < ENOUGH:
                break
        return best

    def _descend(
        self, evaluate: Evaluation, z: np.ndarray, steps: int, ftol: float
    ) -> np.ndarray:
        """Take quasi-Newton steps; the first is short, for the price is steep."""
        from scipy.optimize import minimize

        def scaled(flat: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = evaluate(FIRST_STEP * flat)
            return value, FIRST_STEP * slope

        answer = minimize(
            scaled, z.ravel() / FIRST_STEP, jac=True, method="L-BFGS-B",
            callback=self._step,
            # Judgement: maxcor twice SciPy's default, since memory is small beside one
            # evaluation.
            options={"maxiter": steps, "maxcor": 20, "ftol": ftol, "gtol": 1e-6},
        )  # fmt: skip
        self._evaluations += int(answer.nfev) + 1
        # L-BFGS may end on a rejected trial point.
        evaluate(FIRST_STEP * answer.x)  # so that the price is that of the answer
        return np.reshape(FIRST_STEP * answer.x, z.shape)

    def _restore(self, z: np.ndarray, start: Candidate) -> Candidate:
        """Bend a motion, then shrink it, until it respects the requirements."""
        p = self._problem
        z = self._repair(z)
        still = self._still(z, start)
        allowed = shrink(still, z, p.excess)
        return Candidate(allowed, still, p.log_det(allowed))

    def _still(self, z: np.ndarray, start: Candidate) -> np.ndarray:
        """A posture at rest, close to a motion if it can be, to shrink it towards."""
        p = self._problem
        if p.excess(z) <= 0.0:
            return start.still
        mean = p.series.coefficients(z)[0]
        settled = SETTLED * p.limit_fraction
        near = resting_posture_near(self._whole.requirements, settled, mean)
        return start.still if near is None else resting(p.series, near)

    def _repair(self, z: np.ndarray) -> np.ndarray:
        """Take a short way back to where the requirements hold."""
        p, penalty = self._problem, self._problem.penalty()
        evaluate = p.broken(penalty, z)
        for _ in range(REPAIRS):
            if p.excess(z) <= 0.0 or self._is_late():
                break
            z = self._descend(evaluate, z, REPAIR_STEPS, ftol=0.0)
            penalty.stiffen()
        return z

    def _step(self, intermediate_result: object) -> None:
        self._steps += 1
        planned = STARTS * FIRST_STEPS + FINISHED * ROUNDS * STEPS
        self._progress("optimising", min(1.0, self._steps / planned))
        if self._is_late():
            raise StopIteration

    def _is_late(self) -> bool:
        self._ran_out = self._ran_out or time.monotonic() > self._deadline
        return self._ran_out


def _log_det(candidate: Candidate) -> float:
    return candidate.log_det


def retreats() -> Sequence[float]:
    """How far to shrink a motion that fails on a finer grid, step by step."""
    # Fine steps first: a grid of 64 samples per period misses 0.1 % of a peak.
    return (1.0, 0.998, 0.995, 0.99, 0.98, 0.96, 0.92, 0.85, 0.7, 0.5, 0.3, 0.1, 0.01)
