"""Choose friction terms by how well they predict stretches they were not fitted to.

Every candidate is accumulated once, fold by fold; trying a set of them is then a small
linear solve. A term stays only if it helps on most of the folds left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.identification.problem import pose_problem
from armwise.recordings import Samples
from armwise.regression import Columns, FrictionTerm, accumulate

if TYPE_CHECKING:
    from jaxtyping import Float


FOLDS = 6
"""Stretches of the log, each left out once."""

_LEAST_GAIN = 0.05
"""Fall of the squared error below which a term is not worth having."""

_MOST_FOLDS = 0.75
"""Share of the stretches left out on which a term must help."""

_MOST_TERMS = 2
"""Terms per joint beyond viscous, Coulomb and offset."""


@dataclass(frozen=True, eq=False)
class FrictionChoice:
    """Friction terms that predict better than none.

    Attributes:
        terms: The terms chosen.
        error_before, error_after: Squared error on stretches left out, per joint,
            in units of its noise.
        tried: How many candidates there were.
    """

    terms: tuple[FrictionTerm, ...]
    error_before: Float[np.ndarray, " dof"]
    error_after: Float[np.ndarray, " dof"]
    tried: int


def select_friction(
    arm: Arm, data: Samples | Sequence[Samples], terms: Sequence[str]
) -> FrictionChoice:
    """Find friction terms that help each joint on stretches left out.

    Args:
        arm: The arm.
        data: The samples to fit.
        terms: What else is estimated, as for `identify`.
    """
    from threadpoolctl import threadpool_limits

    runs = [data] if isinstance(data, Samples) else list(data)
    candidates = _candidates(arm, runs)
    with threadpool_limits(limits=1, user_api="blas"):
        search = _Search(arm, runs, candidates, terms)
        chosen: list[int] = []
        before = error = search.error(chosen)
        for _ in range(_MOST_TERMS):
            added = search.best_additions(chosen, error)
            chosen += added
            error = search.error(chosen)
    picked = tuple(candidates[k] for k in chosen)
    return FrictionChoice(picked, before.sum(0), error.sum(0), len(candidates))


def _candidates(arm: Arm, runs: Sequence[Samples]) -> list[FrictionTerm]:
    """Every form for every joint; Stribeck speeds where the joint spends its time."""
    speeds = np.abs(np.concatenate([run.qd for run in runs]))
    found = []
    for j, name in enumerate(arm.coordinate_names):
        fastest = float(speeds[:, j].max(initial=0.0))
        if fastest <= 0.0:
            continue
        found += [FrictionTerm(j, name, f) for f in ("asymmetric", "root", "cubic")]
        for share in (0.02, 0.06, 0.2):
            found.append(FrictionTerm(j, name, "stribeck", share * fastest))
    return found


class _Search:
    """Cross-validated errors of sets of candidates, from small matrices only."""

    def __init__(
        self,
        arm: Arm,
        runs: Sequence[Samples],
        candidates: Sequence[FrictionTerm],
        terms: Sequence[str],
    ) -> None:
        self._candidates = candidates
        columns = Columns(arm, tuple(candidates))
        folds = [accumulate(columns, part) for part in _folds(runs)]
        total = folds[0]
        for fold in folds[1:]:
            total = total.merge(fold)
        plain = pose_problem(Columns(arm), runs, terms)
        self._std = WeightedLeastSquares().solve(plain).torque_std
        problem = pose_problem(columns, runs, terms, total)
        self._first_extra = problem.base.count - len(candidates)
        self._grams = np.stack([self._gram(problem.systems(f)) for f in folds])
        self._sums = self._grams.sum(axis=1)

    def _gram(
        self, systems: Sequence[np.ndarray]
    ) -> Float[np.ndarray, "joints base+1 base+1"]:
        return np.stack(
            [s.T @ s / d**2 for s, d in zip(systems, self._std, strict=True)]
        )

    def error(self, chosen: Sequence[int]) -> Float[np.ndarray, "folds joints"]:
        """Squared error of each joint on each fold when it is left out."""
        keep = [*range(self._first_extra), *[self._first_extra + k for k in chosen]]
        keep.append(self._grams.shape[-1] - 1)
        folds = self._sums[:, keep][:, :, keep]
        everything = folds.sum(axis=0)
        scale = np.sqrt(np.maximum(np.diag(everything), 1e-300))
        train = (everything - folds) / np.outer(scale, scale)
        train[:, :-1, :-1] += 1e-9 * np.eye(len(keep) - 1)
        x = np.linalg.solve(train[:, :-1, :-1], train[:, :-1, -1:])[..., 0]
        x = np.pad(x, ((0, 0), (0, 1)), constant_values=-1.0) / scale * scale[-1]
        full = np.zeros((len(x), self._grams.shape[-1]))
        full[:, keep] = x
        return np.einsum("fa,fjab,fb->fj", full, self._grams, full, optimize=True)

    def best_additions(
        self, chosen: Sequence[int], error: Float[np.ndarray, "folds joints"]
    ) -> list[int]:
        """For each joint the candidate that helps it most, if it helps enough."""
        best: dict[int, tuple[float, int]] = {}
        for k, term in enumerate(self._candidates):
            if k in chosen or self._has_form(chosen, term):
                continue
            trial = self.error([*chosen, k])[:, term.joint]
            known = error[:, term.joint]
            gain = 1.0 - trial.sum() / max(known.sum(), 1e-300)
            helps = np.mean(trial < known) >= _MOST_FOLDS
            if helps and gain > max(_LEAST_GAIN, best.get(term.joint, (0.0, 0))[0]):
                best[term.joint] = (gain, k)
        return [k for _, k in best.values()]

    def _has_form(self, chosen: Sequence[int], term: FrictionTerm) -> bool:
        known = [self._candidates[c] for c in chosen]
        return any(t.joint == term.joint and t.form == term.form for t in known)


def _folds(runs: Sequence[Samples]) -> list[list[Samples]]:
    """Cut the runs into stretches that are long enough to be different motions."""
    total = sum(len(run) for run in runs)
    length = max(1, -(-total // FOLDS))
    return [
        [run[start : start + length]]
        for run in runs
        for start in range(0, len(run), length)
    ]
