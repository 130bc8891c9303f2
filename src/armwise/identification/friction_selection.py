"""Selection of friction terms by prediction of stretches left out.

The columns of all candidates are accumulated once, stretch by stretch; trying one
beside those selected is then a small linear step. Of a long log the candidates see
every so manieth sample, and only the selected columns all of them. A term stays only if
it lowers the error on most stretches that were left out, by more than rounding, and
spoils none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.identification.friction_candidates import (
    first_load,
    friction_candidates,
    motor_periods,
)
from armwise.identification.friction_ripples import rows_apart
from armwise.identification.friction_search import FrictionSearch, TermScale
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.identification.problem import TERMS, Problem, pose_problem
from armwise.recordings import Samples
from armwise.regression import (
    RIPPLES,
    STRETCHES,
    Accumulator,
    Columns,
    FoldSums,
    FrictionTerm,
    Solution,
    accumulate,
    accumulate_folds,
    even_stretches,
    few_threads,
    folds_of_runs,
    sticking_joints,
    student_tails,
)

if TYPE_CHECKING:
    from jaxtyping import Float


# A term that is worth 5 % of the error's power stands out of the 1300 samples of a fold
# by four standard deviations (2 √0.05 / √1300 = 1.2 %).
_ENOUGH_SAMPLES = 8_000
"""Samples from which on a selection is made on every so manieth: candidates make half
of the columns, and neighbours repeat each other after the low-pass."""

_LOAD_STEPS = 3
"""Fits by which the load of the gears, and with it friction that depends on it, settle:
each step shrinks the error by about the friction coefficient."""

_SETTLED = 0.01
"""Relative change of friction coefficients in a step at which the load has settled."""


@dataclass(frozen=True, eq=False)
class FrictionSelection:
    """Friction terms that predict better than none.

    Attributes:
        terms: The terms selected.
        candidates: All that were tried.
        accumulator: R factors of all samples, over the columns with these terms.
        spread: What other terms in place of these would move the base parameters by,
            a row for each (`FrictionSearch.spread`); None: nothing was selected from.
    """

    terms: tuple[FrictionTerm, ...]
    candidates: tuple[FrictionTerm, ...]
    accumulator: Accumulator
    spread: Float[np.ndarray, "alternatives base"] | None = None

    @property
    def tried(self) -> int:
        """How many candidates there were."""
        return len(self.candidates)


def select_friction(
    arm: Arm,
    data: Samples | Sequence[Samples],
    terms: Sequence[str] = TERMS,
    forms: Sequence[str] | None = None,
) -> FrictionSelection:
    """Select friction terms that help each joint on stretches left out.

    Args:
        arm: The arm.
        data: The samples to fit.
        terms: What else is estimated, as for `identify`.
        forms: Forms to try, as for `friction_candidates`.
    """
    runs = [data] if isinstance(data, Samples) else [run for run in data if len(run)]
    with few_threads():
        is_late = any(run.lag_std is not None for run in runs)
        plain = Columns(arm, has_lags=is_late)
        load = first_load(plain, runs, terms)
        candidates = friction_candidates(plain, runs, load, forms)
        if not candidates:
            return FrictionSelection((), (), accumulate(plain, runs))
        # Candidates are no reason to fit rows that only some of them explain.
        columns = replace(plain, friction=candidates, load=load, fits_reversals=False)
        folds, total = _folds(columns, runs)
        # Of two stretches no scatter is known.
        is_long = len(folds) > 2
        shown = (_reversing(columns, runs), _sticking(runs))
        search = (
            FrictionSearch(columns, folds, total, terms, *shown) if is_long else None
        )
        selection = [] if search is None else search.run()
        selected = tuple(candidates[k] for k in selection)
        refined, doubt = _with_scales(columns, runs, terms, selected)
        smaller = replace(columns, fits_reversals=True).with_friction(refined)
        # Sums of all rows serve, unless more of them are fitted with these terms.
        is_whole = total.samples == sum(len(run) for run in runs)
        is_whole &= refined == selected
        is_whole &= not _reversing(smaller, runs)
        sums = total.restrict(smaller) if is_whole else accumulate(smaller, runs)
        if search is None:
            return FrictionSelection(refined, candidates, sums)
        spread = np.vstack([search.spread(selection), *doubt])
        return FrictionSelection(refined, candidates, sums, spread)


def _reversing(columns: Columns, runs: Sequence[Samples]) -> frozenset[int]:
    """Which terms show while friction reverses in some run."""
    return frozenset(
        k
        for k, term in enumerate(columns.friction)
        if any(columns.shows_reversing(term, run) for run in runs)
    )


def _sticking(runs: Sequence[Samples]) -> frozenset[int]:
    """Joints whose raw position shows them to stick for a good part of a log."""
    return frozenset(
        int(j) for run in runs for j in np.flatnonzero(sticking_joints(run))
    )


# Judgement: of a radian of phase at the end of the range, or of a width. Slopes are
# then known to a hundredth.
_SHIFT = 0.02
"""Change of a scale by which the slope of its columns is taken."""


# Judgement: a sine is a line up to about there.
_MOST_TURNED = 1.0
"""Phase in [rad] at the end of the range that a step to another period may turn."""


def _with_scales(
    columns: Columns,
    runs: Sequence[Samples],
    terms: Sequence[str],
    selected: tuple[FrictionTerm, ...],
) -> tuple[tuple[FrictionTerm, ...], list[Float[np.ndarray, " base"]]]:
    """Terms with the periods of ripples fitted beside all else, and scales' doubt.

    The first fit that a period comes from knows nothing of the other terms. What is
    left of its error turns the phase, the more the further from zero a joint moves.
    Widths of hysteresis stay those that were tried; how far off they look is doubt.

    Returns:
        The terms, and what a standard deviation of each scale moves the base parameters
        and terms by.
    """
    ripples, widths = _ripple_scales(columns, runs, selected), _width_scales(selected)
    scales = [*ripples, *widths]
    if not scales:
        return selected, []
    shifted = [term for scale in scales for term in scale.shifted]
    wide = replace(columns, friction=(*selected, *shifted))
    shown = _reversing(wide, runs)
    search = FrictionSearch(wide, *_folds(wide, runs), terms, shown)
    changes, std, slopes = search.scales(len(selected), scales)
    refined = list(selected)
    is_kept = np.ones(len(scales), dtype=bool)
    for i, scale in enumerate(ripples):
        # Steps are _SHIFT of a radian at the end of the range.
        if abs(changes[i]) * _SHIFT > _MOST_TURNED * scale.step:
            continue
        is_kept[i] = False
        old = selected[scale.terms[0]].scale
        period = 2.0 * np.pi / (2.0 * np.pi / old + float(changes[i]))
        for k in scale.terms:
            refined[k] = replace(selected[k], scale=period)
    # About what is taken: a ripple's own period, a width as it was tried.
    std = np.where(is_kept, np.hypot(std, changes), std)
    return tuple(refined), list(std[:, None] * slopes)


def _ripple_scales(
    columns: Columns, runs: Sequence[Samples], selected: tuple[FrictionTerm, ...]
) -> list[TermScale]:
    """Wave numbers of ripples that have both of their waves, unless they are known."""
    rows = columns.dynamics.mechanism.drive_rows
    scales = []
    for k, term in enumerate(selected):
        cosine = replace(term, form=RIPPLES[1])
        if term.form != RIPPLES[0] or cosine not in selected:
            continue
        if term.scale in motor_periods(columns.arm, term.joint):
            continue
        farthest = max(np.abs(run.q @ rows[term.joint]).max() for run in runs)
        step = _SHIFT / max(float(farthest), 1e-9)
        period = 2.0 * np.pi / (2.0 * np.pi / term.scale + step)
        both = tuple(replace(wave, scale=period) for wave in (term, cosine))
        scales.append(TermScale((k, selected.index(cosine)), both, step))
    return scales


def _width_scales(selected: tuple[FrictionTerm, ...]) -> list[TermScale]:
    """Widths of drives that have one; several are a sum that any width is near."""
    owners = [term.joint for term in selected if term.form == "hysteresis"]
    return [
        TermScale((k,), (replace(term, scale=(1.0 + _SHIFT) * term.scale),), _SHIFT)
        for k, term in enumerate(selected)
        if term.form == "hysteresis" and owners.count(term.joint) == 1
    ]


def chance_covariance(
    covariance: Float[np.ndarray, "base base"],
    coefficients: Float[np.ndarray, " terms"],
    tried: int,
) -> Float[np.ndarray, "base base"]:
    """What is not known because terms were chosen: they may be there by luck.

    The surest of many candidates looks sure by chance, too. Two models are averaged,
    with a term and without it; the odds of the latter are how many of the candidates
    that were tried would look as sure by luck alone (a t-test of each). Leaving a term
    out takes its coefficient to zero, and others as far as they are correlated with it.

    Args:
        covariance: Of the base parameters with all terms, which are its last.
        coefficients: Of the terms.
        tried: How many candidates there were.
    """
    extra = np.zeros(covariance.shape)
    is_known = np.isfinite(np.diag(covariance))
    finite = np.where(np.outer(is_known, is_known), covariance, 0.0)
    first = len(covariance) - len(coefficients)
    for k, value in enumerate(coefficients, first):
        if not is_known[k] or finite[k, k] <= 0.0:
            continue
        sureness = abs(float(value)) / np.sqrt(finite[k, k])
        # Two-sided, with the jackknife's degrees of freedom.
        luck = tried * student_tails(sureness, STRETCHES - 1)
        change = finite[k] * (float(value) / finite[k, k])
        extra += luck / (1.0 + luck) * np.outer(change, change)
    return extra


def settle_load(problem: Problem, terms: Sequence[str] = TERMS) -> Problem:
    """Repeat a fit until the load of the gears is that of the estimate itself."""
    before = np.full(len(problem.columns.friction), np.inf)
    for _ in range(_LOAD_STEPS if problem.columns.follows_estimate else 0):
        solution = WeightedLeastSquares().solve(problem)
        every = problem.parameters(solution.values)
        load = every[: problem.columns.arm.layout.size]
        friction = every[load.size :]
        # The next step would change it by a tenth of this.
        if np.all(np.abs(friction - before) <= _SETTLED * np.abs(friction)):
            break
        before = friction
        columns = replace(problem.columns, load=load)
        settled = pose_problem(columns, problem.data, terms)
        problem = replace(problem, columns=columns, accumulator=settled.accumulator)
    return problem


# A load of 100 N m that is off by as much moves its friction by 0.01 N m, below noise.
_SAME_LOAD = 1e-3
"""Relative change of the links' columns at which the load is that of the solution."""


def carry_own_load(
    problem: Problem, solution: Solution, solve: Callable[[Problem], Solution]
) -> tuple[Problem, Solution]:
    """Solve again until the gears carry what the solution's own links do.

    Torques alone do not tell a rotor from the links beyond it, but only links load a
    gear, and bodies that can exist share inertia otherwise than least squares.

    Args:
        problem: The problem as posed.
        solution: Its solution; one without parameters of its own is left as it is.
        solve: Solves a problem.
    """
    for _ in range(_LOAD_STEPS if problem.columns.follows_estimate else 0):
        columns, parameters = problem.columns, solution.parameters
        if parameters is None:
            break
        own = replace(columns, load=parameters[: columns.arm.layout.size])
        change = np.linalg.norm(own.rigid - columns.rigid)
        if change <= _SAME_LOAD * np.linalg.norm(own.rigid):
            break
        sums = accumulate(own, problem.data)
        problem = replace(problem, columns=own, accumulator=sums)
        solution = solve(problem)
    return problem, solution


def without_idle(
    problem: Problem, solution: Solution, solve: Callable[[Problem], Solution]
) -> tuple[Problem, Solution]:
    """Solve again without selected terms of which nothing is left at their bound.

    On stretches left out they helped; in the fit of all rows, whose friction only
    brakes, they do nothing but blur what stands beside them.

    Args:
        problem: The problem; terms that a user has named are left as they are.
        solution: Its solution.
        solve: Solves a problem.
    """
    parameters, columns = solution.parameters, problem.columns
    if not problem.friction_candidates or parameters is None:
        return problem, solution
    values = parameters[columns.arm.layout.size :]
    pairs = zip(columns.friction, values, strict=True)
    has_part = np.array([v > 0.0 or not t.kind.brakes for t, v in pairs], dtype=bool)
    if has_part.all():
        return problem, solution
    problem = problem.with_terms(has_part)
    return problem, solve(problem)


def _folds(columns: Columns, runs: Sequence[Samples]) -> tuple[FoldSums, Accumulator]:
    """Accumulate stretches that are long enough to be different motions.

    They are stretches of time even where a motion repeats: a term that shows in one
    part of a period alone could else never help.
    """
    # Stretches, not random rows: neighbours repeat each other after the low-pass, and
    # rows drawn at random would validate on what was fitted.
    count = sum(len(run) for run in runs)
    step = max(-(-count // _ENOUGH_SAMPLES), min(map(rows_apart, runs), default=1))
    pairs = [
        accumulate_folds(columns, run, even_stretches(len(run), number), step)
        for run, number in zip(runs, folds_of_runs(runs), strict=True)
    ]
    totals = [total for _, total in pairs]
    whole = totals[0].merge(*totals[1:]) if len(totals) > 1 else totals[0]
    return FoldSums.joined([folds for folds, _ in pairs]), whole
