"""Plain least squares, and the shape of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import NotIdentifiable
from armwise.identification.load.generalized import WORST_CONDITION, Solution
from armwise.identification.load.problem import WrenchProblem
from armwise.identification.load.spectrum import NoiseModel

if TYPE_CHECKING:
    from jaxtyping import Float


def solve_plain(
    problem: WrenchProblem,
    regressor: Float[np.ndarray, "rows channels 10"],
    target: Float[np.ndarray, "rows channels"],
) -> Solution:
    """Minimise the sum of all squared errors.

    Args:
        problem: Where the rows come from.
        regressor, target: Its rows, unknown biases already taken out.

    Raises:
        NotIdentifiable: If columns of the regressor depend on each other.
    """
    flat, right = regressor.reshape(-1, 10), target.reshape(-1)
    scale = np.linalg.norm(flat, axis=0)
    seen = scale > 1e-9 * max(float(scale.max()), 1e-300)
    Q, R = np.linalg.qr(flat[:, seen] / scale[seen])
    condition = float(np.linalg.cond(R))
    if condition > WORST_CONDITION:
        raise NotIdentifiable(
            f"The motion does not tell {int(seen.sum())} parameters apart (condition "
            f"number {condition:.1e}). Turn the load about every axis."
        )
    inverse = np.linalg.inv(R) / scale[seen][:, None]
    found = inverse @ (Q.T @ right)
    left = right - flat[:, seen] @ found
    freedom = max(1, right.size - int(seen.sum()))
    variance = float(left @ left) / freedom
    values, covariance = np.full(10, np.nan), np.full((10, 10), np.nan)
    values[seen] = found
    covariance[np.ix_(seen, seen)] = variance * inverse @ inverse.T
    return _solution(problem, values, covariance, freedom, condition)


def _solution(
    problem: WrenchProblem,
    values: np.ndarray,
    covariance: np.ndarray,
    freedom: int,
    condition: float,
) -> Solution:
    rows = problem.rows()
    known = np.isfinite(values)
    residual = rows.target - rows.regressor[:, :, known] @ values[known]
    shape = (len(rows.starts), len(rows.channels))
    bias = np.zeros(shape)
    if problem.bias == "segment":
        bias = np.stack([residual[part].mean(axis=0) for part in rows.segments])
    elif problem.bias == "common":
        bias = np.tile(residual.mean(axis=0), (shape[0], 1))
    for part, offset in zip(rows.segments, bias, strict=True):
        residual[part] -= offset
    white = np.mean(residual**2, axis=0)
    noise = NoiseModel(
        np.column_stack([0 * white, white, 0 * white]),
        np.array([rows.rate_hz / 2]),
        np.ones((shape[1], 1)),
        rows.rate_hz,
    )
    information = np.zeros((10, 10))
    inner = np.ix_(known, known)
    information[inner] = np.linalg.pinv(covariance[inner])
    return Solution(
        values=values,
        covariance=covariance,
        degrees_of_freedom=np.where(known, float(freedom), np.nan),
        noise=noise,
        residual=residual,
        bias=bias,
        bias_std=np.tile(np.sqrt(white / len(rows)), (shape[0], 1)),
        condition_number=condition,
        information=information,
    )
