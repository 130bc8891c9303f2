"""Generalised least squares: torque and every column through one filter a joint."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.identification.methods.least_squares import Method, WeightedLeastSquares
from armwise.identification.methods.physical import PhysicallyConsistent
from armwise.regression import Accumulator, Prefilter, Solution, StretchScores

if TYPE_CHECKING:
    from armwise.identification.problem import Problem


@dataclass(frozen=True)
class Prefiltered:
    """Weigh every frequency by how well it is explained (`atkeson1986` ch. 5).

    A first fit's residuals show the spectrum of all errors: noise of torque and motion,
    friction that is not quite as modelled, something that shakes. The filter that makes
    them white passes torque and columns alike, joint by joint, and the method behind it
    fits what comes out.

    Attributes:
        order: Samples that the filter remembers; rows near a reversal of friction are
            not used, and so many after it.
        iterations: How often filter and parameters are estimated in turn.
        method: How to solve behind the filter.
    """

    # Judgement: two resonances, or a slow drift and one of them. Each costs rows after
    # every reversal.
    order: int = 4
    # The filter depends on the parameters only weakly.
    iterations: int = 2
    method: Method = field(default_factory=PhysicallyConsistent)

    def __post_init__(self) -> None:
        if self.order < 1 or self.iterations < 1:
            raise ArgumentError("order and iterations are at least 1.")

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        plain = WeightedLeastSquares().solve(problem)
        solution, data = plain, problem.data
        for _ in range(self.iterations):
            weights = problem.column_weights(solution.values)
            prefilter = Prefilter.whitening(problem.columns, data, weights, self.order)
            accumulator = Accumulator(problem.columns)
            for block in prefilter.blocks(problem.columns, data):
                accumulator.add_block(block)
            accumulator.settle()
            filtered = replace(problem, accumulator=accumulator)
            solution = self.method.solve(filtered)
        scores = _scores(filtered, prefilter, solution)
        # Torques are predicted as they are, not as the filter shows them.
        return replace(solution, scores=scores, torque_std=plain.torque_std)


def _scores(
    problem: Problem, prefilter: Prefilter, solution: Solution
) -> StretchScores:
    """Gradient of the cost and information over stretches, behind the filter."""
    columns = problem.columns
    weights = problem.column_weights(solution.values)
    sums = StretchScores(sum(len(run) for run in problem.data), columns.count)
    for block in prefilter.blocks(columns, problem.data):
        parts = sums.parts(block.count)
        errors = [
            x[-1] - weights[support] @ x[:-1]
            for support, x in zip(columns.support, block.joints, strict=True)
        ]
        sums.add(columns, block, np.stack(errors, axis=1), solution.torque_std, parts)
    return sums
