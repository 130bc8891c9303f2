"""Recursive: an estimate that is always up to date, and forgets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.identification.accumulator import Accumulator
from armwise.identification.methods.weighted import WeightedLeastSquares
from armwise.identification.prediction import base_to_parameters
from armwise.identification.problem import Problem
from armwise.identification.solution import Solution
from armwise.identification.uncertainty import Stretches

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class Recursive:
    """Weighted least squares in which samples lose weight as they age.

    Attributes:
        forgetting: Weight that a sample keeps from each sample to the next; one
            forgets nothing.
    """

    forgetting: float = 0.9999

    def __post_init__(self) -> None:
        if not 0 < self.forgetting <= 1:
            raise ArgumentError(
                f"forgetting must lie in (0, 1], not {self.forgetting}."
            )

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        accumulator = Accumulator(problem.columns)
        for block in problem.columns.blocks(problem.data):
            width = block.rows.stop - block.rows.start
            accumulator.forget(self.forgetting**width)
            accumulator.add_block(block)
        accumulator.settle()
        aged = replace(problem, accumulator=accumulator)
        found = WeightedLeastSquares().solve(aged)
        return replace(found, scores=self._scores(problem, found))

    def _scores(
        self, problem: Problem, found: Solution
    ) -> Float[np.ndarray, "stretches base"]:
        """Gradient of the cost over stretches, each sample at its worth."""
        columns = problem.columns
        weights = columns.user @ base_to_parameters(problem, found.values)
        total = sum(len(samples) for samples in problem.data)
        sums = Stretches(total, columns.count)
        age = total
        for block in columns.blocks(problem.data):
            width = block.rows.stop - block.rows.start
            parts = sums.parts(width)
            age -= width
            worth = self.forgetting ** np.arange(age + width - 1, age - 1, -1)
            for support, matrix, std in zip(
                columns.support, block.joints, found.torque_std, strict=True
            ):
                error = worth * (matrix[-1] - weights[support] @ matrix[:-1]) / std**2
                for row, part in parts:
                    sums.values[row, support] += matrix[:-1, part] @ error[part]
        return sums.values @ columns.user[:, list(problem.base.indices)]
