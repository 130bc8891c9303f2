"""Solution methods for constraint forces, singular or bounded.

All take the symmetric, positive semidefinite A and return F for A F = −β − pull.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Bound:
    """The rows of one constraint and the most force it can exert in [N]."""

    name: str
    rows: slice
    max_force: float


@dataclass(frozen=True, eq=False)
class ForceSolution:
    """Constraint forces at one state.

    Attributes:
        ideal: Forces that answer β.
        stabilising: Forces that answer the pull back to zero deviation.
        singular_values: Of A, ascending.
        dropped: How many of them were left out.
        at_bound: Constraints that give all they have.
    """

    ideal: np.ndarray
    stabilising: np.ndarray
    singular_values: np.ndarray
    dropped: int
    at_bound: tuple[str, ...] = ()

    @property
    def force(self) -> np.ndarray:
        """All of it in [N]."""
        return np.asarray(self.ideal + self.stabilising)


class ForceMethod(Protocol):
    """A way to solve for constraint forces."""

    @property
    def is_exact(self) -> bool:
        """Whether, with no bound in reach, it gives the smallest exact forces."""
        ...

    def solve(
        self,
        A: np.ndarray,
        free: np.ndarray,
        pull: np.ndarray,
        bounds: Sequence[Bound],
        held: int | None = None,
    ) -> ForceSolution:
        """Return forces for A F = −free − pull.

        With `held`, the choice made at the start of a step is kept: that many singular
        values are dropped, so that the forces stay smooth within the step.
        """
        ...


@dataclass(frozen=True)
class SingularValueDropping:
    """Drop singular values, smallest first, until every force fits its bound.

    The scheme of `mitchell1997` §2.3.4.

    Attributes:
        cutoff: Singular values below this, relative to the largest, are zero: those
            of repeated constraints are rounding, 1e-16 or so.
    """

    cutoff: float = 1e-7
    is_exact: bool = True

    def solve(
        self,
        A: np.ndarray,
        free: np.ndarray,
        pull: np.ndarray,
        bounds: Sequence[Bound],
        held: int | None = None,
    ) -> ForceSolution:
        """Return the forces with the fewest singular values dropped."""
        values, vectors = np.linalg.eigh(A)
        # A is symmetric and positive semidefinite: eigenvalues are singular values.
        least = int(
            np.searchsorted(values, self.cutoff * max(values[-1], 0.0), "right")
        )
        weights = _weights(values, vectors, free, pull, least)
        if held is None:
            ideal, stabilising = (vectors @ weights).T
            over = _overloaded(ideal + stabilising, bounds)
            if not over:
                return ForceSolution(ideal, stabilising, values, least)
            # At least those that are zero anyway: they must not come back.
            k = max(_first_fit(vectors, weights.sum(axis=1), bounds), least)
        else:
            k, over = max(held, least), ()
        ideal, stabilising = (vectors[:, k:] @ weights[k:]).T
        return ForceSolution(ideal, stabilising, values, k, over)


@dataclass(frozen=True)
class Pseudoinverse:
    """Plain SVD with a cutoff near rounding and no bounds: what not to do.

    Attributes:
        cutoff: Singular values below this, relative to the largest, are zero.
    """

    cutoff: float = 1e-15
    is_exact: bool = False

    def solve(
        self,
        A: np.ndarray,
        free: np.ndarray,
        pull: np.ndarray,
        bounds: Sequence[Bound],
        held: int | None = None,
    ) -> ForceSolution:
        """Return the smallest forces, however large."""
        values, vectors = np.linalg.eigh(A)
        k = int(np.searchsorted(values, self.cutoff * max(values[-1], 0.0), "right"))
        ideal, stabilising = (vectors @ _weights(values, vectors, free, pull, k)).T
        return ForceSolution(ideal, stabilising, values, k)


@dataclass(frozen=True)
class DampedLeastSquares:
    """Replace 1/σ by σ/(σ² + ρ²) (Wampler and Leifer 1988): smooth, never exact.

    Attributes:
        damping: ρ relative to the largest singular value.
    """

    # Judgement: forces off by 1e-6 where A is regular, (ρ/σ)², and at most 1/(2ρ) times
    # the right side where it is not.
    damping: float = 1e-3
    is_exact: bool = False

    def solve(
        self,
        A: np.ndarray,
        free: np.ndarray,
        pull: np.ndarray,
        bounds: Sequence[Bound],
        held: int | None = None,
    ) -> ForceSolution:
        """Return forces that give way near a singularity."""
        values, vectors = np.linalg.eigh(A)
        # 1e-300: an A of zeros must give zero forces, not 0/0.
        rho = self.damping * max(values[-1], 1e-300)
        gains = values / (values**2 + rho**2)
        ideal, stabilising = (
            -vectors @ (gains * (vectors.T @ r)) for r in (free, pull)
        )
        return ForceSolution(ideal, stabilising, values, 0)


@dataclass(frozen=True)
class Yielding:
    """Let an overloaded constraint give all it has, and the others hold on.

    Its force keeps its direction at the bound while the rest is solved again, until
    no other is overloaded. Where the paper's scheme lets the whole structure slacken,
    this one lets go only where the load is too large.

    Attributes:
        cutoff: Singular values below this, relative to the largest, are zero.
    """

    cutoff: float = 1e-7
    is_exact: bool = True

    def solve(
        self,
        A: np.ndarray,
        free: np.ndarray,
        pull: np.ndarray,
        bounds: Sequence[Bound],
        held: int | None = None,
    ) -> ForceSolution:
        """Return forces with the overloaded constraints held at their bounds."""
        whole = SingularValueDropping(self.cutoff).solve(A, free, pull, ())
        if _worst(whole.force, bounds, ()) is None:
            return whole
        force = whole.force
        fixed = np.zeros(len(force), dtype=bool)
        yielded: list[str] = []
        while (worst := _worst(force, bounds, yielded)) is not None:
            yielded.append(worst.name)
            # One at a time, worst first: once it yields, the others may have to bear
            # more, or less.
            force[worst.rows] *= worst.max_force / np.linalg.norm(force[worst.rows])
            fixed[worst.rows] = True
            force[~fixed] = self._unbounded_force(A, free + pull, force, fixed)
        nothing = np.zeros(len(force))
        return ForceSolution(force, nothing, whole.singular_values, 0, tuple(yielded))

    def _unbounded_force(
        self, A: np.ndarray, right: np.ndarray, force: np.ndarray, fixed: np.ndarray
    ) -> np.ndarray:
        is_free = ~fixed
        load = right[is_free] + A[np.ix_(is_free, fixed)] @ force[fixed]
        values, vectors = np.linalg.eigh(A[np.ix_(is_free, is_free)])
        # Everything has yielded: there is no force left to solve for.
        if not len(values):
            return np.asarray(load)
        is_regular = values > self.cutoff * max(values[-1], 0.0)
        gains = np.where(is_regular, 1.0 / np.where(is_regular, values, 1.0), 0.0)
        return np.asarray(-vectors @ (gains * (vectors.T @ load)))


def _weights(
    values: np.ndarray,
    vectors: np.ndarray,
    free: np.ndarray,
    pull: np.ndarray,
    least: int,
) -> np.ndarray:
    """Return how much of each singular vector answers β and the pull: (rows, 2)."""
    weights = vectors.T @ np.array([free, pull]).T
    weights[:least] = 0.0
    weights[least:] /= -values[least:, None]
    return np.asarray(weights)


def _first_fit(
    vectors: np.ndarray, weights: np.ndarray, bounds: Sequence[Bound]
) -> int:
    """Return how few singular values must go, smallest first, for forces to fit."""
    # Row k is the force without the k smallest singular values; the last is none.
    tails = np.cumsum((vectors * weights).T[::-1], axis=0)[::-1]
    tails = np.concatenate([tails, np.zeros((1, len(weights)))])
    fits = np.ones(len(tails), dtype=bool)
    for bound in bounds:
        if np.isfinite(bound.max_force):
            fits &= np.linalg.norm(tails[:, bound.rows], axis=1) <= bound.max_force
    # argmax of booleans is the first that fits; the empty force always does.
    return int(np.argmax(fits))


def _overloaded(force: np.ndarray, bounds: Sequence[Bound]) -> tuple[str, ...]:
    return tuple(
        bound.name
        for bound in bounds
        if bound.max_force < np.inf
        and np.linalg.norm(force[bound.rows]) > bound.max_force
    )


def _worst(
    force: np.ndarray, bounds: Sequence[Bound], done: Sequence[str]
) -> Bound | None:
    """Return the most overloaded constraint that has not yielded yet."""
    ratios = [
        (float(np.linalg.norm(force[bound.rows])) / bound.max_force, bound)
        for bound in bounds
        if bound.name not in done and np.isfinite(bound.max_force)
    ]
    ratio, bound = max(ratios, key=lambda pair: pair[0], default=(0.0, None))
    # A force scaled to its bound may be above it by rounding, and must not yield twice.
    return bound if ratio > 1.0 + 1e-12 else None
