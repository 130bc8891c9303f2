"""Selection of friction terms by cross-validation over stretches of the log.

The columns of all candidates are accumulated once, stretch by stretch; trying a set of
them is then a small linear solve, and the factor of those selected is a sub-matrix of
the candidates'. Of a long log the candidates see every so manieth sample, and only the
selected columns all of them. A term stays only if it helps on most of the stretches
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.identification.problem import TERMS, pose_problem
from armwise.recordings import Samples
from armwise.regression import (
    Accumulator,
    Columns,
    FrictionTerm,
    accumulate,
    accumulate_folds,
    accumulate_thinned,
)

if TYPE_CHECKING:
    from jaxtyping import Float


# Judgement: at six, a fit still has five sixths of the log; at two, motions that one
# half lacks would decide.
FOLDS = 6
"""Stretches of the log, each left out once: few enough to be different motions."""

# A term that is worth 5 % of the error's power stands out of the 1300 samples of a fold
# by four standard deviations (2 √0.05 / √1300 = 1.2 %).
_ENOUGH_SAMPLES = 8_000
"""Samples from which on a selection is made on every so manieth: candidates make half
of the columns, and neighbours repeat each other after the low-pass."""

# Judgement: 5 % in power is 2.5 % of the residual's size.
_LEAST_GAIN = 0.05
"""Fall of the squared error below which a term is not worth its column and what it
adds to the uncertainty of the others."""

# A sign test over the folds: 0.75 asks for five of six, which pure luck reaches with a
# probability of 7/64. It stands beside the least gain, not alone.
_MOST_FOLDS = 0.75
"""Fraction of the stretches left out on which a term must help: by luck alone it would
help on half of them."""

_MOST_TERMS = 2
"""Terms per joint beyond viscous, Coulomb and offset: the forms overlap, and more of
them would only trade coefficients."""

# Judgement: about a factor of three apart.
_STRIBECK_SPEEDS = (0.02, 0.06, 0.2)
"""Stribeck speeds that are tried, as fractions of a joint's top speed: the fall of
friction lies well below it, at a speed that differs between drives."""


@dataclass(frozen=True, eq=False)
class FrictionSelection:
    """Friction terms that predict better than none.

    Attributes:
        terms: The terms selected.
        candidates: All that were tried.
        error_before, error_after: Squared error on stretches left out, per joint,
            in units of its noise.
        accumulator: R factors of all samples, over the columns with these terms.
    """

    terms: tuple[FrictionTerm, ...]
    candidates: tuple[FrictionTerm, ...]
    error_before: Float[np.ndarray, " dof"]
    error_after: Float[np.ndarray, " dof"]
    accumulator: Accumulator

    @property
    def tried(self) -> int:
        """How many candidates there were."""
        return len(self.candidates)


def select_friction(
    arm: Arm, data: Samples | Sequence[Samples], terms: Sequence[str] = TERMS
) -> FrictionSelection:
    """Select friction terms that help each joint on stretches left out.

    Args:
        arm: The arm.
        data: The samples to fit.
        terms: What else is estimated, as for `identify`.
    """
    from threadpoolctl import threadpool_limits

    runs = [data] if isinstance(data, Samples) else list(data)
    candidates = _candidates(arm, runs)
    with threadpool_limits(limits=1, user_api="blas"):
        columns = Columns(arm, candidates)
        folds, total = _folds(columns, runs)
        search = _FoldErrors(columns, folds, total, terms)
        selection: list[int] = []
        before = error = search.error(selection)
        # Forward selection: the best single term of each joint, then the best beside
        # it.
        for _ in range(_MOST_TERMS):
            selection += search.best_additions(selection, error)
            error = search.error(selection)
        selected = tuple(candidates[k] for k in selection)
        smaller = Columns(arm, selected, columns.dynamics)
        is_thinned = total.samples < sum(len(run) for run in runs)
        return FrictionSelection(
            selected,
            candidates,
            before.sum(0),
            error.sum(0),
            accumulate(smaller, runs) if is_thinned else total.restrict(smaller),
        )


def _candidates(arm: Arm, runs: Sequence[Samples]) -> tuple[FrictionTerm, ...]:
    """Every form for every joint that moves."""
    fastest = np.max([np.abs(run.qd).max(axis=0) for run in runs], axis=0)
    terms: list[FrictionTerm] = []
    for j, name in enumerate(arm.coordinate_names):
        # A joint that never moves has columns of zeros.
        if fastest[j] <= 0.0:
            continue
        terms += [FrictionTerm(j, name, f) for f in ("asymmetric", "root", "quadratic")]
        for fraction in _STRIBECK_SPEEDS:
            speed = fraction * float(fastest[j])
            terms.append(FrictionTerm(j, name, "stribeck", speed))
    return tuple(terms)


def _folds(
    columns: Columns, runs: Sequence[Samples]
) -> tuple[list[Accumulator], Accumulator]:
    """Accumulate stretches that are long enough to be different motions, and all."""
    # Stretches, not random rows: neighbours repeat each other after the low-pass, and
    # rows drawn at random would validate on what was fitted.
    count = sum(len(run) for run in runs)
    length = max(1, -(-count // FOLDS))
    if count > _ENOUGH_SAMPLES:
        step = -(-count // _ENOUGH_SAMPLES)
        parts = [accumulate_thinned(columns, run, length, step) for run in runs]
        folds = [fold for part in parts for fold in part]
        return folds, folds[0].merge(*folds[1:])
    pairs = [accumulate_folds(columns, run, length) for run in runs if len(run)]
    totals = [total for _, total in pairs]
    return [fold for folds, _ in pairs for fold in folds], totals[0].merge(*totals[1:])


class _FoldErrors:
    """Cross-validated errors of sets of candidates, from small matrices only."""

    def __init__(
        self,
        columns: Columns,
        folds: Sequence[Accumulator],
        total: Accumulator,
        terms: Sequence[str],
    ) -> None:
        self._candidates = columns.friction
        # Noise from the fit without further terms, the same for every trial: errors
        # before and after are then in the same unit.
        linear = Columns(columns.arm, (), columns.dynamics)
        first = pose_problem(linear, (), terms, total.restrict(linear))
        self._std = WeightedLeastSquares().solve(first).torque_std
        problem = pose_problem(columns, (), terms, total)
        self._first_term = problem.base.count - len(self._candidates)
        self._grams = np.stack([self._gram(problem.systems(f)) for f in folds])
        self._sums = self._grams.sum(axis=1)

    def _gram(
        self, systems: Sequence[np.ndarray]
    ) -> Float[np.ndarray, "joints base+1 base+1"]:
        return np.stack(
            # Gram matrices are enough: gains of 5 % are compared, which needs few
            # digits, and leaving a fold out is a subtraction.
            [s.T @ s / d**2 for s, d in zip(systems, self._std, strict=True)]
        )

    def error(self, selection: Sequence[int]) -> Float[np.ndarray, "folds joints"]:
        """Squared error of each joint on each fold when it is left out."""
        # xᵀ G x with x = (β, −1) is the squared residual of the fold.
        x = self._solutions(selection)[:, None, :, 0]
        products = np.matmul(self._grams, x[..., None])[..., 0]
        return np.asarray(np.sum(products * x, axis=-1))

    def trial_errors(
        self, selection: Sequence[int], trials: Sequence[int]
    ) -> Float[np.ndarray, "folds trials"]:
        """Squared error of a trial's own joint on each fold, for one more term each."""
        solutions = self._solutions(selection, trials)
        errors = np.empty((len(solutions), len(trials)))
        for i in range(self._grams.shape[1]):
            mine = [c for c, k in enumerate(trials) if self._candidates[k].joint == i]
            x = solutions[:, :, mine]
            errors[:, mine] = np.sum((self._grams[:, i] @ x) * x, axis=1)
        return errors

    def _solutions(
        self, selection: Sequence[int], trials: Sequence[int] | None = None
    ) -> Float[np.ndarray, "folds base+1 trials"]:
        """Fit without each fold in turn: (β, −1), zero where not selected.

        With trials, one solution for each of them beside the selection.
        """
        size = self._grams.shape[-1]
        index = [*range(self._first_term), *[self._first_term + k for k in selection]]
        extra = [] if trials is None else [self._first_term + k for k in trials]
        every = [*index, *extra, size - 1]
        folds = self._sums[:, every][:, :, every]
        everything = folds.sum(axis=0)
        # Columns scaled to one, so that the ridge means the same for all of them.
        scale = np.sqrt(np.maximum(np.diag(everything), 1e-300))
        train = (everything - folds) / np.outer(scale, scale)
        # A ridge of 1e-9 of a column: what the other folds leave undetermined is zero.
        train[:, :-1, :-1] += 1e-9 * np.eye(len(every) - 1)
        width = len(index)
        # The columns that all trials share are eliminated once; a trial is then one
        # division (the Schur complement of its own column).
        shared = np.linalg.solve(train[:, :width, :width], train[:, :width, width:])
        own = train[:, width:, width:] - train[:, width:, :width] @ shared
        full = np.zeros((len(train), size, max(1, len(extra))))
        full[:, index] = shared[:, :, -1:]
        if extra:
            steps = own[:, :-1, -1] / np.diagonal(own, axis1=1, axis2=2)[:, :-1]
            full[:, index] -= shared[:, :, :-1] * steps[:, None]
            full[:, extra, range(len(extra))] = steps
        full[:, every] *= (scale[-1] / scale)[:, None]
        full[:, -1] = -1.0
        return full

    def best_additions(
        self, selection: Sequence[int], error: Float[np.ndarray, "folds joints"]
    ) -> list[int]:
        """For each joint the candidate that helps it most, if it helps enough."""
        best: dict[int, tuple[float, int]] = {}
        trials = [
            k
            for k, term in enumerate(self._candidates)
            if k not in selection and not self._has_form(selection, term)
        ]
        errors = self.trial_errors(selection, trials)
        for k, trial in zip(trials, errors.T, strict=True):
            joint = self._candidates[k].joint
            before = error[:, joint]
            # 1e-300: a joint without residual gains nothing instead of dividing by
            # zero.
            gain = 1.0 - trial.sum() / max(before.sum(), 1e-300)
            helps = np.mean(trial < before) >= _MOST_FOLDS
            if helps and gain > max(_LEAST_GAIN, best.get(joint, (0.0, 0))[0]):
                best[joint] = (gain, k)
        return [k for _, k in best.values()]

    def _has_form(self, selection: Sequence[int], term: FrictionTerm) -> bool:
        """Whether a joint has the form already: Stribeck speeds exclude each other."""
        selected = [self._candidates[c] for c in selection]
        return any(t.joint == term.joint and t.form == term.form for t in selected)
