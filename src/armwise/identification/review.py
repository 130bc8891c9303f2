"""The second pass over the data: residuals, their correlation, and the description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.problem import Problem
from armwise.identification.validation import (
    Tally,
    Validation,
    base_to_parameters,
    predicted_block,
)
from armwise.regression import Columns, Solution, StretchScores, jackknife, sandwich

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.recordings import Samples


@dataclass(frozen=True, eq=False)
class Review:
    """What a second pass over the data shows, with the solution in hand.

    Attributes:
        covariance: Covariance of β, correlation of the residuals accounted for.
        fit: How well the data are explained.
        agreement: The description's own torques beside the measured ones; None where
            samples were not looked at again.
    """

    covariance: Float[np.ndarray, "base base"]
    fit: Validation
    agreement: Agreement | None = None


class Agreement:
    """Inner products of the torques an arm predicts with those measured.

    Attributes:
        products: Sum of predicted torque of joint i × measured torque of joint j.
        predicted, measured: Norms of each joint's torques.
    """

    def __init__(self, dof: int) -> None:
        self.products = np.zeros((dof, dof))
        self._squares = np.zeros((2, dof))

    def add(
        self,
        predicted: Float[np.ndarray, "samples dof"],
        measured: Float[np.ndarray, "samples dof"],
    ) -> None:
        """Add a block of torques."""
        self.products += predicted.T @ measured
        for sums, torque in zip(self._squares, (predicted, measured), strict=True):
            sums += np.einsum("nj,nj->j", torque, torque)

    @property
    def predicted(self) -> Float[np.ndarray, " dof"]:
        """Norm of each joint's predicted torque."""
        return np.asarray(np.sqrt(self._squares[0]))

    @property
    def measured(self) -> Float[np.ndarray, " dof"]:
        """Norm of each joint's measured torque."""
        return np.asarray(np.sqrt(self._squares[1]))

    @property
    def cosines(self) -> Float[np.ndarray, "dof dof"]:
        """Cosine between predicted torque i and measured torque j; 0 where none is."""
        sizes = np.outer(self.predicted, self.measured)
        return np.where(sizes > 0, self.products / np.where(sizes > 0, sizes, 1.0), 0.0)


def compare_description(columns: Columns, data: Sequence[Samples]) -> Agreement:
    """Compare an arm's own torques with those measured, in a pass of its own."""
    extra = np.zeros(len(columns.friction))
    weights = columns.user @ np.concatenate([columns.arm.parameters, extra])
    agreement = Agreement(columns.arm.dof)
    for block in columns.blocks(data):
        measured = block.samples.tau[block.rows]
        agreement.add(predicted_block(columns, block, weights), measured)
    return agreement


def review(problem: Problem, solution: Solution) -> Review:
    """Predict the torques that were fitted; see how the residuals are correlated."""
    columns = problem.columns
    weights = columns.user @ base_to_parameters(problem, solution.values)
    # The description's torques ride along: diagnosis needs no third pass.
    described = columns.user @ problem.prior
    sums = StretchScores(sum(len(samples) for samples in problem.data), columns.count)
    tally = Tally(columns.arm.dof)
    agreement = Agreement(columns.arm.dof)
    for block in columns.blocks(problem.data):
        parts = sums.parts(block.rows.stop - block.rows.start)
        measured = block.samples.tau[block.rows]
        errors = measured - predicted_block(columns, block, weights)
        tally.add(measured, errors)
        agreement.add(predicted_block(columns, block, described), measured)
        if solution.scores is None:
            sums.add(columns, block, errors, solution.torque_std, parts)
    if solution.scores is not None:
        covariance = sandwich(solution.scores, solution)
    else:
        selection = columns.user[:, list(problem.base.indices)]
        information = sums.information(columns, selection)
        covariance = jackknife(sums.values @ selection, information, solution)
    return Review(covariance, tally.result(), agreement)
