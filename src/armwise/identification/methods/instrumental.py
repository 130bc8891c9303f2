"""Instrumental variables: unbiased although the measured motion is noisy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.recordings import Samples
from armwise.regression import Solution, StretchScores

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.problem import Problem

Instruments = Callable[[Arm], Sequence[Samples]]
"""Noise-free motion for an arm, sample for sample as the data: its simulation, or the
motion that was asked for."""


@dataclass(frozen=True)
class InstrumentalVariables:
    """Solve Zᵀ W (Y β − τ) = 0 with Z the regressor of a motion free of noise.

    Least squares takes the noise of measured motion for motion and shrinks inertias;
    instruments know nothing of that noise (Janot, Vandanjon and Gautier 2014).

    Attributes:
        instruments: Gives the noise-free motion for the current estimate of the arm:
            simulated with the same controller, or simply the motion that was planned.
        iterations: How often the instruments are made anew.
    """

    instruments: Instruments = field(repr=False)
    # Judgement: the first instruments come from least squares and share its bias, the
    # second from an estimate that has little of it.
    iterations: int = 2

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        solution = WeightedLeastSquares().solve(problem)
        if solution.rank < solution.values.size:
            raise NotIdentifiable(
                "The recording does not determine every parameter; instruments cannot "
                "help. Excite every joint, or estimate fewer terms."
            )
        for _ in range(self.iterations):
            arm = problem.columns.arm.with_parameters(
                problem.parameters(solution.values)[
                    : problem.columns.arm.parameters.size
                ]
            )
            solution = _solve(problem, solution, self.instruments(arm))
        return solution


def _solve(problem: Problem, last: Solution, motions: Sequence[Samples]) -> Solution:
    instruments = list(motions)
    _check(problem, instruments)
    # Two passes: scores need the residuals of the new β.
    crossed, right = _moments(problem, instruments, last.torque_std, None)[:2]
    # Square moment equations, not a least-squares problem: there is no R factor to
    # take.
    values = np.linalg.solve(crossed, right)
    scores = _moments(problem, instruments, last.torque_std, values)[2]
    sensitivity = np.linalg.inv(crossed)
    # The sandwich of the method of moments; Zᵀ W Y is not symmetric, hence the
    # transpose on the right.
    scatter = scores.T @ scores
    return replace(
        last,
        values=values,
        covariance=sensitivity @ scatter @ sensitivity.T,
        sensitivity=sensitivity,
        scores=scores,
    )


def _moments(
    problem: Problem,
    instruments: Sequence[Samples],
    torque_std: np.ndarray,
    values: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, "stretches base"]]:
    """Return Zᵀ W Y, Zᵀ W τ and, for given values, the scores of every stretch."""
    columns = problem.columns
    leaders, fixed = problem.leaders, problem.fixed
    weights = fixed if values is None else problem.column_weights(values)
    size = problem.base.count
    crossed, right = np.zeros((size, size)), np.zeros(size)
    sums = StretchScores(sum(len(s) for s in problem.data), columns.count)
    pairs = zip(columns.blocks(problem.data), columns.blocks(instruments), strict=True)
    for block, ideal in pairs:
        parts = sums.parts(block.rows.stop - block.rows.start)
        for i, support in enumerate(columns.support):
            Y, Z = block.joints[i][:-1], ideal.joints[i][:-1]
            error = (block.joints[i][-1] - weights[support] @ Y) / torque_std[i] ** 2
            for row, part in parts:
                sums.values[row, support] += Z[:, part] @ error[part]
            if values is None:
                cross = leaders[support].T @ (Z @ Y.T) @ leaders[support]
                crossed += cross / torque_std[i] ** 2
                right += leaders[support].T @ (Z @ error)
    return crossed, right, sums.values @ leaders


def _check(problem: Problem, instruments: Sequence[Samples]) -> None:
    lengths = [len(s) for s in problem.data]
    if [len(s) for s in instruments] != lengths:
        raise ArgumentError(
            f"The instruments have {[len(s) for s in instruments]} samples, the data "
            f"{lengths}: sample the noise-free motion at the data's own times."
        )
