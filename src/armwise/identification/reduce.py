"""Reduction of a model to the parameters whose torque matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import BaseParameters
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification import Estimate, Method, WeightedLeastSquares
from armwise.identification.estimate import build_estimate
from armwise.identification.problem import Problem, pose_problem, structural_base
from armwise.identification.validation import base_to_parameters, review
from armwise.recordings import Samples
from armwise.regression import few_threads

if TYPE_CHECKING:
    from jaxtyping import Float


Reference = Literal["joint", "arm"]
"""Whose largest measured torque a parameter's torque is compared with."""


def reduce(
    estimate: Estimate,
    data: Samples | Sequence[Samples],
    # Judgement: one per cent is below what torques are measured to.
    threshold: float = 0.01,
    *,
    of: Reference = "joint",
    largest_relative_std: float | None = None,
    method: Method | None = None,
) -> Estimate:
    """Drop parameters whose torque never matters, and identify the others again.

    A parameter stays if, somewhere in the data, its torque reaches `threshold` of the
    largest torque measured. What remains leads its combination alone, all else is
    zero: the fewest operations in generated code. `izaguirre1992` §6 compares with the
    largest torque of the whole arm, which drops nearly all of a light wrist; compared
    with the joint's own, every joint keeps its accuracy.

    Args:
        estimate: What to reduce.
        data: Motion that shows what matters.
        threshold: Fraction of the largest torque.
        of: "joint": the joint's own largest torque; "arm": the largest of all joints.
        largest_relative_std: Also drop, worst first, what is less certain than this
            fraction of its value.
        method: How to identify the others; weighted least squares if None.
    """
    if not 0 <= threshold < 1:
        raise ArgumentError(f"threshold is a fraction in [0, 1), not {threshold}.")
    if of not in get_args(Reference):
        raise ArgumentError(f'of is "joint" or "arm", not {of!r}.')
    if largest_relative_std is not None and not largest_relative_std > 0:
        raise ArgumentError(
            f"largest_relative_std is a positive fraction, not {largest_relative_std}."
        )
    runs = [data] if isinstance(data, Samples) else list(data)
    solver = method or WeightedLeastSquares()
    with few_threads():
        # The largest torque anywhere, not the mean: a parameter may matter in one
        # posture.
        rows = np.flatnonzero(significance(estimate, runs, of) >= threshold)
        small = _search(_problem(estimate, runs), rows, solver, largest_relative_std)
    note = f"{small.base.count} of {estimate.base.count} base parameters matter."
    names, remaining = estimate.base.names, set(small.base.indices)
    dropped = tuple(names[i] for i in estimate.base.indices if i not in remaining)
    return replace(
        small,
        notes=(*small.notes, note),
        left_out=(*estimate.left_out, *dropped),
    )


@dataclass(frozen=True, eq=False)
class ReductionCost:
    """How far the torques of a reduced model are from those of the whole one.

    Attributes:
        rms: Root mean square of the difference per joint in [N m].
        largest: Its largest value per joint in [N m].
        peak: Largest measured torque per joint in [N m].
    """

    rms: Float[np.ndarray, " dof"]
    largest: Float[np.ndarray, " dof"]
    peak: Float[np.ndarray, " dof"]


def reduction_cost(
    whole: Estimate, small: Estimate, data: Samples | Sequence[Samples]
) -> ReductionCost:
    """Compare the torques that two estimates of one arm predict for a motion."""
    runs = [data] if isinstance(data, Samples) else list(data)
    square, rows = np.zeros(whole.prior_arm.dof), 0
    largest, peak = np.zeros_like(square), np.zeros_like(square)
    for run in runs:
        change = small.predict(run) - whole.predict(run)
        square += (change**2).sum(axis=0)
        rows += len(change)
        largest = np.maximum(largest, np.abs(change).max(axis=0, initial=0.0))
        peak = np.maximum(peak, np.abs(run.tau).max(axis=0, initial=0.0))
    return ReductionCost(np.sqrt(square / max(rows, 1)), largest, peak)


def standing_of(
    published: Arm, whole: Estimate, small: Estimate
) -> dict[str, str | None]:
    """Say which parameters of another reduced model are in ours.

    Args:
        published: The other model: a parameter that is not zero is in it.
        whole: Our estimate before reduction.
        small: The reduced one.

    Returns:
        For each of its parameters, the one of ours that stands for it: itself, or the
        leader of a combination it is part of; None if that was dropped.
    """
    if published.parameter_names != whole.prior_arm.parameter_names:
        raise ArgumentError(
            f"{published.name} has other parameters than {whole.prior_arm.name}: "
            "give a model of the same arm."
        )
    base, remaining = whole.base, set(small.base.indices)
    standing: dict[str, str | None] = {}
    for k in np.flatnonzero(published.parameters):
        leaders = [base.indices[row] for row in np.flatnonzero(base.matrix[:, k])]
        leading = [i for i in leaders if i in remaining]
        first = k if k in leading else next(iter(leading), None)
        name = base.names[k]
        standing[name] = None if first is None else base.names[first]
    return standing


def led_from_tip(estimate: Estimate) -> Estimate:
    """Express an estimate in combinations led by motors and the links at the tip.

    As in `izaguirre1992`. Another choice of leaders may leave fewer to `reduce`.
    """
    old = estimate.base
    free = np.any(old.matrix != 0, axis=0) | np.isin(old.names, old.unidentifiable)
    base = structural_base(estimate.columns, free, from_tip=True)
    # Leaders have a unit column each, so T of K' = T K are the new rows there.
    T = base.matrix[:, list(old.indices)]
    # Infinity times zero is not a number: undetermined rows are set afterwards.
    is_known = np.isfinite(estimate.base_std)
    finite = np.where(np.outer(is_known, is_known), estimate.base_covariance, 0.0)
    covariance = T @ finite @ T.T
    undetermined = np.any(np.abs(T[:, ~is_known]) > 0, axis=1)
    covariance[undetermined, undetermined] = np.inf
    effects = estimate.same_effects
    return replace(
        estimate,
        base=base,
        base_values=T @ estimate.base_values,
        base_covariance=covariance,
        same_effects=None if effects is None else T @ effects,
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
    estimate: Estimate, data: Sequence[Samples], of: Reference = "joint"
) -> Float[np.ndarray, " base"]:
    """Largest torque of each base parameter, as a fraction of the largest measured.

    Args:
        estimate: Whose parameters.
        data: Motion that shows what matters.
        of: "joint": of the joint it acts on, whichever it matters most for; "arm": of
            all joints, that of the arm's strongest.
    """
    columns = estimate.columns
    torques = columns.user[:, list(estimate.base.indices)] * estimate.base_values
    size = np.zeros((columns.arm.dof, estimate.base.count))
    largest = np.zeros(columns.arm.dof)
    for block in columns.blocks(data):
        for i, support in enumerate(columns.support):
            torque = torques[support].T @ block.joints[i][:-1]
            size[i] = np.maximum(size[i], np.abs(torque).max(axis=1))
            largest[i] = max(largest[i], float(np.abs(block.joints[i][-1]).max()))
    if of == "arm":
        largest[:] = largest.max(initial=0.0)
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
