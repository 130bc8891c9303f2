"""Identification while the arm works: constant memory, an estimate at any time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification.estimate import Estimate, build_estimate
from armwise.identification.methods import Method, WeightedLeastSquares
from armwise.identification.problem import TERMS, pose_problem
from armwise.identification.uncertainty import Review
from armwise.identification.validation import Validation
from armwise.recordings import Samples
from armwise.regression import Accumulator, Columns, FrictionTerm, Solution


class OnlineIdentification:
    """Takes samples as they come and tells what they say so far.

    It keeps R factors, never samples, so its methods are those that need no second
    look at the data, and its intervals take samples for independent: thin filtered data
    to their own bandwidth first.

    Args:
        arm: The description.
        terms: What to estimate, as for `identify`.
        friction: Further friction terms.
        forgetting: Weight that what is known keeps from one sample to the next.
    """

    def __init__(
        self,
        arm: Arm,
        *,
        terms: Iterable[str] = TERMS,
        friction: Sequence[FrictionTerm] = (),
        forgetting: float = 1.0,
    ) -> None:
        if not 0 < forgetting <= 1:
            raise ArgumentError(f"forgetting must lie in (0, 1], not {forgetting}.")
        self._forgetting = forgetting
        self._accumulator = Accumulator(Columns(arm, tuple(friction)))
        self._terms = tuple(terms)

    @property
    def samples(self) -> float:
        """How many samples its knowledge is worth."""
        return self._accumulator.samples

    def update(self, data: Samples) -> None:
        """Add samples; what was known before fades by their number."""
        self._accumulator.columns.check(data)
        if self._forgetting < 1:
            self._accumulator.forget(self._forgetting ** len(data))
        self._accumulator.add(data)

    def merge(self, other: OnlineIdentification) -> None:
        """Take over what another one, of the same arm, has learnt."""
        self._accumulator = self._accumulator.merge(other._accumulator)

    def estimate(self, method: Method | None = None) -> Estimate:
        """Tell what is known now."""
        if self.samples <= 0:
            raise NotIdentifiable("No samples have come yet.")
        chosen = method or WeightedLeastSquares()
        problem = pose_problem(
            self._accumulator.columns, (), self._terms, self._accumulator
        )
        solution = chosen.solve(problem)
        fit = _fit(problem.systems(), solution, self.samples)
        review = Review(solution.covariance, fit)
        return build_estimate(problem, solution, review, type(chosen).__name__)


def _fit(
    systems: Sequence[np.ndarray], solution: Solution, samples: float
) -> Validation:
    """Errors from the factors alone; what they do not hold is not evaluated."""
    errors = np.array(
        [np.linalg.norm(s[:, :-1] @ solution.values - s[:, -1]) for s in systems]
    )
    sizes = np.array([np.linalg.norm(s[:, -1]) for s in systems])
    unknown = np.full(len(errors), np.nan)
    return Validation(
        relative_error=errors / np.where(sizes > 0, sizes, 1.0),
        rmse=errors / np.sqrt(samples),
        r2=unknown,
        whiteness=unknown,
        samples=round(samples),
    )
