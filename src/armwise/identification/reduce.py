"""Reduction of a model to the parameters whose torque matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import BaseParameters
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification import Estimate, Method, WeightedLeastSquares
from armwise.identification.estimate import build_estimate
from armwise.identification.problem import Problem, pose_problem
from armwise.identification.validation import base_to_parameters, review
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float


def reduce(
    estimate: Estimate,
    data: Samples | Sequence[Samples],
    # Judgement: one per cent is below what torques are measured to.
    threshold: float = 0.01,
    *,
    largest_relative_std: float | None = None,
    method: Method | None = None,
) -> Estimate:
    """Drop parameters whose torque never matters, and identify the others again.

    A parameter stays if, somewhere in the data, its torque reaches `threshold` of the
    largest torque measured at that joint (`izaguirre1992` §6). What remains leads
    its combination alone, all else is zero: the fewest operations in generated code.

    Args:
        estimate: What to reduce.
        data: Motion that shows what matters.
        threshold: Fraction of a joint's largest torque.
        largest_relative_std: Also drop, worst first, what is less certain than this
            fraction of its value.
        method: How to identify the others; weighted least squares if None.
    """
    if not 0 <= threshold < 1:
        raise ArgumentError(f"threshold is a fraction in [0, 1), not {threshold}.")
    from threadpoolctl import threadpool_limits

    runs = [data] if isinstance(data, Samples) else list(data)
    solver = method or WeightedLeastSquares()
    with threadpool_limits(limits=1, user_api="blas"):  # small blocks: one is faster
        # The largest torque anywhere, not the mean: a parameter may matter in one
        # posture.
        rows = np.flatnonzero(significance(estimate, runs) >= threshold)
        small = _search(_problem(estimate, runs), rows, solver, largest_relative_std)
    note = f"{small.base.count} of {estimate.base.count} base parameters matter."
    names, remaining = estimate.base.names, set(small.base.indices)
    dropped = tuple(names[i] for i in estimate.base.indices if i not in remaining)
    return replace(
        small,
        notes=(*small.notes, note),
        left_out=(*estimate.left_out, *dropped),
    )


def _search(
    problem: Problem, rows: np.ndarray, method: Method, largest: float | None
) -> Estimate:
    """Identify what matters; while something is too uncertain, drop the worst."""
    small = _identify(_restricted(problem, rows), method)
    while largest is not None and len(rows) > 1:
        # One at a time: without the worst, others may become certain.
        # 1e-300: a value of zero is infinitely uncertain, and goes first.
        relative_std = small.base_std / np.maximum(np.abs(small.base_values), 1e-300)
        if relative_std.max() <= largest:
            break
        rows = np.delete(rows, int(np.argmax(relative_std)))
        small = _identify(_restricted(problem, rows), method)
    return small


def significance(
    estimate: Estimate, data: Sequence[Samples]
) -> Float[np.ndarray, " base"]:
    """Largest torque of each base parameter, as a fraction of its joint's largest."""
    columns = estimate.columns
    torques = columns.user[:, list(estimate.base.indices)] * estimate.base_values
    size = np.zeros((columns.arm.dof, estimate.base.count))
    largest = np.zeros(columns.arm.dof)
    for block in columns.blocks(data):
        for i, support in enumerate(columns.support):
            torque = torques[support].T @ block.joints[i][:-1]
            size[i] = np.maximum(size[i], np.abs(torque).max(axis=1))
            largest[i] = max(largest[i], float(np.abs(block.joints[i][-1]).max()))
    # A joint without torque makes no parameter matter.
    return (size / np.where(largest > 0, largest, np.inf)[:, None]).max(axis=0)


def _problem(estimate: Estimate, runs: Sequence[Samples]) -> Problem:
    problem = pose_problem(estimate.columns, runs)
    hidden = np.isin(estimate.base.names, estimate.base.unidentifiable)
    # What never shows is free as well: in the reduced model it is zero, not described.
    free = np.any(estimate.base.matrix != 0, axis=0) | hidden
    return replace(problem, base=estimate.base, is_estimated=free)


def _restricted(problem: Problem, rows: np.ndarray) -> Problem:
    if not len(rows):
        raise NotIdentifiable("No parameter reaches the threshold. Lower it.")
    base = problem.base
    small = BaseParameters(
        base.names,
        tuple(base.indices[k] for k in rows),
        base.matrix[rows],
        base.unidentifiable,
    )
    return replace(problem, base=small)


def _identify(problem: Problem, method: Method) -> Estimate:
    solution = method.solve(problem)
    # All but the leaders are zero: generated code has no operation for them.
    alone = base_to_parameters(problem, solution.values)
    solution = replace(solution, parameters=alone)
    name = type(method).__name__
    return build_estimate(problem, solution, review(problem, solution), name)
