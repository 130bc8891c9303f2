"""Torques that a set of parameters predicts, and what is left of the measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.columns import Columns
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


def relative_error(
    measured: Sequence[np.ndarray], predicted: Sequence[np.ndarray]
) -> Float[np.ndarray, " dof"]:
    """‖τ − τ̂‖ / ‖τ‖ of every joint, as a fraction."""
    error = np.sqrt(
        sum(
            np.sum((m - p) ** 2, axis=0)
            for m, p in zip(measured, predicted, strict=True)
        )
    )
    size = np.sqrt(sum(np.sum(m**2, axis=0) for m in measured))
    return np.asarray(error / np.where(size > 0, size, 1.0))
