"""Torques that a set of parameters predicts, and what is left of the measured ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.columns import Block, Columns
from armwise.identification.problem import Problem
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float


def predict_torque(
    columns: Columns, parameters: np.ndarray, samples: Samples
) -> Float[np.ndarray, "samples dof"]:
    """Torque in [N m] that parameters (friction terms last) predict for a motion."""
    weights = columns.user @ parameters
    torque = np.empty((len(samples), columns.arm.dof))
    for block in columns.blocks([samples]):
        for i, (support, matrix) in enumerate(
            zip(columns.support, block.joints, strict=True)
        ):
            torque[block.rows, i] = weights[support] @ matrix[:-1]
    return torque


def block_errors(
    columns: Columns, block: Block, weights: np.ndarray
) -> Float[np.ndarray, "samples dof"]:
    """Measured minus predicted torque of a block, for weights of the columns."""
    errors = np.empty((block.rows.stop - block.rows.start, columns.arm.dof))
    for i, (support, matrix) in enumerate(
        zip(columns.support, block.joints, strict=True)
    ):
        errors[:, i] = matrix[-1] - weights[support] @ matrix[:-1]
    return errors


def residuals(
    problem: Problem, values: np.ndarray
) -> list[Float[np.ndarray, "samples dof"]]:
    """Measured minus predicted torque of every run, for base parameters β."""
    parameters = base_to_parameters(problem, values)
    return [
        s.tau - predict_torque(problem.columns, parameters, s) for s in problem.data
    ]


def base_to_parameters(problem: Problem, values: np.ndarray) -> np.ndarray:
    """Some parameters with these combinations: leaders carry them, the rest is zero."""
    parameters = np.where(problem.is_estimated, 0.0, problem.prior)
    parameters[list(problem.base.indices)] = values
    return parameters
