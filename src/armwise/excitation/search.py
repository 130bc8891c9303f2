"""The search for the motion that tells most: several starts, then one to the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.excitation.postures import SETTLED, resting_posture_near
from armwise.excitation.problem import Problem
from armwise.excitation.starts import random_motion, rest, shrink

if TYPE_CHECKING:
    from jaxtyping import Float

FINISHED, STARTS, TRIED = 2, 6, 24
"""Starts optimised to the end, the best of those optimised a little, the best of so
many random motions."""

FIRST_STEPS, STEPS, ROUNDS = 50, 60, 7
"""Quasi-Newton steps of a start, of a round, and rounds for the best start."""

ENOUGH = 0.05
"""A round that gains less than this, in nats, is the last."""

REPAIRS, REPAIR_STEPS = 6, 20
"""Rounds, and steps of a round, of the way back when requirements are broken."""

FIRST_STEP = 0.05
"""Length of the first step of a descent, in units of the free numbers."""

Evaluation = Callable[[np.ndarray], tuple[float, np.ndarray]]
Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class Found:
    """A motion that respects everything on the grid of the optimisation.

    Attributes:
        z: Its free numbers.
        still: Free numbers of a posture at rest that it can be shrunk towards.
        log_det: What it tells.
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
        self, problem: Problem, deadline: float, progress: Progress | None
    ) -> None:
        self._whole, self._deadline = problem, deadline
        self._problem = problem.simplified()
        self._progress = progress or (lambda what, share: None)
        self._steps = 0
        self._evaluations = 0
        self._ran_out = False

    @property
    def report(self) -> SearchReport:
        """How it went so far."""
        return SearchReport(self._evaluations, self._ran_out)

    def run(self, postures: np.ndarray, rng: np.random.Generator) -> Found:
        """Search from random motions around some postures.

        The answer depends on the generator alone unless time runs out.
        """
        starts = self._starts(postures, rng)
        first = [self._improve(start, 1, FIRST_STEPS) for start in starts[:STARTS]]
        first = sorted([starts[0], *first], key=_told, reverse=True)
        final = [self._improve(start, ROUNDS, STEPS) for start in first[:FINISHED]]
        final = sorted([first[0], *final], key=_told, reverse=True)
        self._problem = self._whole.refined()
        found = max((self._restore(each.z, each) for each in final), key=_told)
        self._progress("optimising", 1.0)
        return found

    def _starts(self, postures: np.ndarray, rng: np.random.Generator) -> list[Found]:
        """Random motions within the requirements, those that tell most first."""
        p = self._problem
        found: list[Found] = []
        for k in range(TRIED):
            posture = postures[k % len(postures)]
            z = random_motion(p, posture, rng)
            found.append(Found(z, rest(p.series, posture), p.log_det(z)))
            self._progress("random motions", (k + 1) / TRIED)
            if self._is_late():
                break
        return sorted(found, key=_told, reverse=True)

    def _improve(self, start: Found, rounds: int, steps: int) -> Found:
        """Optimise from a start; keep the best that respects the requirements."""
        penalty = self._problem.penalty()
        evaluate = self._problem.lost(penalty, start.z.shape)
        best, z = start, start.z
        for _ in range(rounds):
            if self._is_late():
                break
            z = self._descend(evaluate, z, steps, ftol=1e-7)
            penalty.stiffen()
            kept = self._restore(z, start)
            gain, best = kept.log_det - best.log_det, max(best, kept, key=_told)
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
            options={"maxiter": steps, "maxcor": 20, "ftol": ftol, "gtol": 1e-6},
        )  # fmt: skip
        self._evaluations += int(answer.nfev) + 1
        evaluate(FIRST_STEP * answer.x)  # so that the price is that of the answer
        return np.reshape(FIRST_STEP * answer.x, z.shape)

    def _restore(self, z: np.ndarray, start: Found) -> Found:
        """Bend a motion, then shrink it, until it respects the requirements."""
        p = self._problem
        z = self._repair(z)
        still = self._still(z, start)
        kept = shrink(still, z, p.excess)
        return Found(kept, still, p.log_det(kept))

    def _still(self, z: np.ndarray, start: Found) -> np.ndarray:
        """A posture at rest, close to a motion if it can be, to shrink it towards."""
        p = self._problem
        if p.excess(z) <= 0.0:
            return start.still
        mean = p.series.coefficients(z)[0]
        near = resting_posture_near(self._whole.requirements, SETTLED * p.share, mean)
        return start.still if near is None else rest(p.series, near)

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


def _told(found: Found) -> float:
    return found.log_det


def retreats() -> Sequence[float]:
    """How far to shrink a motion that fails on a finer grid, step by step."""
    return (1.0, 0.998, 0.995, 0.99, 0.98, 0.96, 0.92, 0.85, 0.7, 0.5, 0.3, 0.1, 0.01)
