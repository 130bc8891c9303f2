"""Online identification: constant memory, an estimate at any time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from armwise.arms import Arm
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification.estimate import Estimate, build_estimate
from armwise.identification.methods import Method, WeightedLeastSquares
from armwise.identification.problem import TERMS, pose_problem
from armwise.identification.validation import Review, fit_from_sums
from armwise.recordings import Samples
from armwise.regression import Accumulator, Columns, FrictionTerm


class OnlineIdentification:
    """Takes samples as they come and estimates from all so far.

    It keeps R factors, never samples, so its methods are those that need no second
    look at the data, and its intervals take samples for independent: thin filtered data
    to their own bandwidth first.

    Args:
        arm: The description.
        terms: What to estimate, as for `identify`.
        friction: Further friction terms.
        forgetting: Weight that a sample keeps from each sample to the next.
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
        self._columns = Columns(arm, tuple(friction))
        self._accumulator = Accumulator(self._columns)
        self._terms = tuple(terms)

    @property
    def samples(self) -> float:
        """How many samples it remembers, faded ones by their weight."""
        return self._accumulator.samples

    def update(self, data: Samples) -> None:
        """Add samples; those before fade by their number."""
        self._columns.check(data)
        if self._forgetting < 1:
            # All new samples at once: within an update none is older than another.
            self._accumulator.forget(self._forgetting ** len(data))
        self._accumulator.add(data)

    def merge(self, other: OnlineIdentification) -> None:
        """Add the samples of another one, of the same arm."""
        self._accumulator = self._accumulator.merge(other._accumulator)

    def estimate(self, method: Method | None = None) -> Estimate:
        """Estimate from all samples so far."""
        if self.samples <= 0:
            raise NotIdentifiable("No samples have come yet.")
        solver = method or WeightedLeastSquares()
        problem = pose_problem(self._columns, (), self._terms, self._accumulator)
        solution = solver.solve(problem)
        # No second pass: the covariance is the textbook one, for independent samples.
        review = Review(solution.covariance, fit_from_sums(problem, solution.values))
        return build_estimate(problem, solution, review, type(solver).__name__)
