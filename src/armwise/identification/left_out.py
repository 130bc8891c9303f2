"""Fits that leave out a stretch of the data each, and what they miss of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import NotConverged, NotIdentifiable
from armwise.identification.methods import (
    Method,
    OrdinaryLeastSquares,
    PhysicallyConsistent,
    PriorWeighted,
    Ridge,
    WeightedLeastSquares,
)
from armwise.identification.validation import part_masks, predicted_block
from armwise.recordings import ERROR_LEVELS, Samples, error_within
from armwise.regression import (
    FOLDS,
    STRETCHES,
    Accumulator,
    Columns,
    accumulate_folds,
    even_stretches,
    factor_of_gram,
    few_threads,
    folds_of_runs,
    stretches_of_period,
    student_factor,
)

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from armwise.identification.problem import Problem
    from armwise.regression import Cut

_ENOUGH_SAMPLES = 8_000
"""Samples from which on every so manieth is looked at: after the low-pass neighbours
repeat each other, and quantiles of these are known to half a per cent."""

_FEWEST_FOLDS = 4
"""Stretches below which their fits say nothing of scatter: with three, a variance is as
uncertain as it is large."""

_FROM_SUMS = (WeightedLeastSquares, OrdinaryLeastSquares, Ridge, PriorWeighted)
"""Methods that need R factors alone; for others weighted least squares stands in, as
ten passes over the samples would take ten times as long."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Fits without one stretch of the data each, and their errors on it.

    Stretches are a tenth of the log: errors of a wrong model last longer than the
    jackknife's fortieth, beside which its intervals are too narrow for other motions.
    Where a motion repeats, a stretch is the same part of every period.

    Attributes:
        parameters: Of each fit, friction terms last.
        moving: What `ERROR_LEVELS` of each joint's errors are within in [N m], while it
            moves, parameters being known (`_errors`).
        turning: The same while it rests or turns back: friction may have any value.
        steady: A fit without friction that changes with work, if that has any: of one
            log no stretch says how it changes in another.
    """

    parameters: Float[np.ndarray, "folds parameters"]
    moving: Float[np.ndarray, "dof levels"]
    turning: Float[np.ndarray, "dof levels"]
    steady: Float[np.ndarray, " parameters"] | None = None

    def half_width(
        self,
        columns: Columns,
        parameters: Float[np.ndarray, " parameters"],
        samples: Samples,
        level: float,
    ) -> Float[np.ndarray, "samples dof"]:
        """Error in [N m] that so many predictions of a measured torque stay within.

        What no parameters would explain, and how far the fits without a stretch
        disagree about this motion: a delete-a-group jackknife of the prediction itself.

        Args:
            columns: What the torque is explained by.
            parameters: The estimate.
            samples: The motion.
            level: Fraction of samples.
        """
        steady = parameters if self.steady is None else self.steady
        weights = np.vstack([parameters, steady, self.parameters]) @ columns.user.T
        turns = _is_turning(samples)
        moving, turning = (error_within(x, level) for x in (self.moving, self.turning))
        count = len(self.parameters)
        # Student's t: of n squares of normal deviations as many as E (Σ d²)² / E Σ d⁴ =
        # (n + 2) / 3 count, for the largest are most of their sum.
        factor = student_factor((count + 2) // 3, level)
        half = np.empty((len(samples), columns.arm.dof))
        for block in columns.blocks([samples]):
            estimate, unchanged, *others = predicted_block(columns, block, weights)
            # Tukey's factor for groups, as in `jackknife_covariance`.
            variance = np.mean((others - estimate) ** 2, axis=0) * (count - 1)
            error = np.where(turns[block.rows], turning, moving)
            variance = factor**2 * variance + (unchanged - estimate) ** 2
            half[block.rows] = np.sqrt(error**2 + variance)
        return half


def leave_out(
    problem: Problem, method: Method, parameters: Float[np.ndarray, " parameters"]
) -> LeftOut | None:
    """Fit a problem without each of its stretches in turn, and predict that stretch.

    None if the data are too short for it.

    Args:
        problem: The problem.
        method: What it was solved with.
        parameters: The fit to all of it.
    """
    runs = [run for run in problem.data if len(run)]
    count = sum(len(run) for run in runs)
    step = max(1, -(-count // _ENOUGH_SAMPLES))
    cuts = _cuts(runs)
    numbers = sorted({k for cut in cuts for _, k in cut})
    if len(numbers) < _FEWEST_FOLDS:
        return None
    with few_threads():
        sums = _sums_without(problem.columns, runs, cuts, step)
        fits = dict(_fits(problem, method, sums))
        if len(fits) < _FEWEST_FOLDS:
            return None
        errors, turns = _errors(problem.columns, runs, cuts, step, parameters, fits)
    return LeftOut(
        np.stack(list(fits.values())),
        _error_levels(errors, ~turns),
        _error_levels(errors, turns),
        _steady(problem, method),
    )


def _steady(
    problem: Problem, method: Method
) -> Float[np.ndarray, " parameters"] | None:
    """Fit without friction that changes with work; None if there is none."""
    is_steady = np.array([not t.kind.uses_heat for t in problem.columns.friction], bool)
    if is_steady.all():
        return None
    posed = problem.with_terms(is_steady)
    solver = method if isinstance(method, _FROM_SUMS) else WeightedLeastSquares()
    own = np.ones(problem.columns.arm.layout.size, dtype=bool)
    parameters = np.zeros(problem.is_estimated.size)
    parameters[np.append(own, is_steady)] = posed.parameters(solver.solve(posed).values)
    return parameters


def _fits(
    problem: Problem, method: Method, sums: Iterable[Accumulator]
) -> Iterator[tuple[int, Float[np.ndarray, " parameters"]]]:
    """Yield the number and the parameters of each fit that is possible."""
    if isinstance(method, PhysicallyConsistent):
        yield from enumerate(method.refits(problem, sums))
        return
    solver = method if isinstance(method, _FROM_SUMS) else WeightedLeastSquares()
    for k, others in enumerate(sums):
        try:
            solution = solver.solve(replace(problem, accumulator=others))
        except (NotConverged, NotIdentifiable, np.linalg.LinAlgError):
            continue  # what only this stretch determines cannot be predicted
        own = solution.parameters
        yield k, problem.parameters(solution.values) if own is None else own


def _is_turning(samples: Samples) -> Bool[np.ndarray, "samples dof"]:
    _, resting, reversing = part_masks(samples)
    return np.asarray(resting | reversing)


def _cuts(runs: Sequence[Samples]) -> list[Cut]:
    """Cut runs into some ten stretches altogether, numbered through."""
    cuts: list[Cut] = []
    first = 0
    for run, number in zip(runs, folds_of_runs(runs), strict=True):
        own = stretches_of_period(run, number) if number > 1 else None
        own = own or even_stretches(len(run), number)
        cuts.append([(rows, first + k) for rows, k in own])
        first += 1 + max(k for _, k in own)
    # Of many short runs several are left out together: as many fits as of one.
    together = max(first, FOLDS)
    return [[(rows, k * FOLDS // together) for rows, k in cut] for cut in cuts]


def _sums_without(
    columns: Columns, runs: Sequence[Samples], cuts: Sequence[Cut], step: int
) -> Iterator[Accumulator]:
    """Yield the sums of all rows but those of each stretch."""
    number = 1 + max(k for cut in cuts for _, k in cut)
    widths = [support.size + 1 for support in columns.support]
    grams = [np.zeros((number, width, width)) for width in widths]
    rows = np.zeros(number)
    for run, cut in zip(runs, cuts, strict=True):
        # Sums are numbered from zero in every run.
        first = min(k for _, k in cut)
        own = [(part, k - first) for part, k in cut]
        folds, _ = accumulate_folds(columns, run, own, step)
        for total, sums in zip(grams, folds.fitted, strict=True):
            total[first : first + len(sums)] += sums
        for part, k in cut:
            rows[k] += len(range(part.start, part.stop, step))
    whole = [total.sum(axis=0) for total in grams]
    for k in range(number):
        factors = [
            factor_of_gram(total - own[k])
            for total, own in zip(whole, grams, strict=True)
        ]
        yield Accumulator(columns, float(rows.sum() - rows[k]), factors)


def _errors(
    columns: Columns,
    runs: Sequence[Samples],
    cuts: Sequence[Cut],
    step: int,
    parameters: Float[np.ndarray, " parameters"],
    fits: dict[int, np.ndarray],
) -> tuple[Float[np.ndarray, "rows dof"], Bool[np.ndarray, "rows dof"]]:
    """Errors of torques if parameters were known, and where joints rest or turn.

    A fit follows the errors ε of its own data: (1 − H) ε is left, H being a stretch's
    part of the hat matrix. The fit without that stretch misses it by (1 − H)⁻¹ times
    that, its own uncertainty included. The expected product of both is that of ε.

    Args:
        columns: What the torque is explained by.
        runs: The data.
        cuts: Their stretches.
        step: One row in so many counts.
        parameters: The fit to all of them.
        fits: Those without a stretch each, by its number.
    """
    weights = {
        k: np.vstack([parameters, own]) @ columns.user.T for k, own in fits.items()
    }
    errors, turns = [], []
    for run, cut in zip(runs, cuts, strict=True):
        number: Int[np.ndarray, " samples"] = np.empty(len(run), dtype=int)
        for part, k in cut:
            number[part] = k
        is_turning = _is_turning(run)
        parts = [slice(p.start, p.stop, step) for p, k in cut if k in weights]
        for block in columns.blocks([run], parts):
            own = weights[int(number[block.rows][0])]
            predicted = predicted_block(columns, block, own)
            fitted, left_out = run.tau[block.rows] - predicted
            errors.append(np.sqrt(np.abs(fitted * left_out)))
            turns.append(is_turning[block.rows])
    return np.concatenate(errors), np.concatenate(turns)


def _error_levels(
    errors: Float[np.ndarray, "rows dof"], mask: Bool[np.ndarray, "rows dof"]
) -> Float[np.ndarray, "dof levels"]:
    """What so many errors of some rows are within; few rows lean on all of them."""
    levels = []
    for error, own in zip(errors.T, mask.T, strict=True):
        common = np.quantile(error, ERROR_LEVELS)
        # As much as one stretch of the jackknife: a joint that turned back once or
        # twice has not shown what it may do there. Squares: five times as much has.
        part = own.sum() ** 2 / (own.sum() ** 2 + (error.size / STRETCHES) ** 2)
        alone = np.quantile(error[own], ERROR_LEVELS) if own.any() else common
        # By logarithms: errors of the other rows may be many times as large.
        levels.append(alone**part * common ** (1.0 - part))
    return np.stack(levels)
