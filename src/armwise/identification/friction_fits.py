"""Fits to all stretches of a log but one, and errors of that one, by Gram matrices.

What is fitted are the lag, base parameters and friction terms; a trial of further terms
is a small linear step from a fit without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.regression import FoldSums

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.problem import Problem


RIDGE = 1e-9
"""Ridge beside columns of one: what other stretches leave undetermined is zero."""


class Train(NamedTuple):
    """Gram matrices that are fitted.

    Attributes:
        grams: One for each fit.
        columns: Which columns of the search they hold, in their order.
    """

    grams: Float[np.ndarray, "fits held held"]
    columns: np.ndarray

    def at(self, columns: np.ndarray) -> np.ndarray:
        """Where columns of the search are held."""
        return np.searchsorted(self.columns, columns)


class StretchFits:
    """Gram matrices of the stretches of a log, and fits of what they hold.

    Attributes:
        own: How many unknowns there are before the terms: the lag, base parameters.
        width: How many columns: the unknowns, and the torque as the last.
        moved: For each joint, which columns move its torque.
        grams: For each joint, those of its rows that are fitted and of all, per
            stretch, over the columns that move it.
        scale: What columns were divided by.
        count: How many stretches.
    """

    def __init__(
        self, problem: Problem, std: Float[np.ndarray, " joints"], folds: FoldSums
    ) -> None:
        self.own = 1 + problem.base.count - len(problem.columns.friction)
        self.width, self.count = problem.base.count + 2, len(folds)
        # Gram matrices are enough: gains of 5 % are compared, which needs few digits,
        # and leaving a fold out is a subtraction. Those of a joint hold the columns
        # that move it and no others: of many joints most move none of its torque.
        self.moved: list[np.ndarray] = []
        # Errors are those of the rows that are fitted, and of every row: around
        # reversals a joint that sticks would else be explained by friction it has not,
        # and friction with a memory shows nowhere else.
        self.grams: list[Float[np.ndarray, "2 folds moved moved"]] = []
        for change, fitted, every in zip(
            _changes(problem, std), folds.fitted, folds.every, strict=True
        ):
            used = np.flatnonzero(np.any(change != 0.0, axis=0))
            self.moved.append(used)
            self.grams.append(_combined(np.stack([fitted, every]), change[:, used]))
        self._rescale()
        self._fitted = np.zeros((self.count, self.width, self.width))
        for used, grams in zip(self.moved, self.grams, strict=True):
            self._fitted[:, used[:, None], used] += grams[0]

    def _rescale(self) -> None:
        """Scale columns to one, so that the ridge means the same for all of them."""
        squares = np.zeros(self.width)
        for used, grams in zip(self.moved, self.grams, strict=True):
            squares[used] += np.diagonal(grams[0].sum(axis=0))
        self.scale = np.sqrt(np.maximum(squares, 1e-300))
        for used, grams in zip(self.moved, self.grams, strict=True):
            grams /= np.outer(self.scale[used], self.scale[used])

    def without_each(self, whole: frozenset[int], terms: Sequence[int]) -> Train:
        """Gram matrices of all stretches but one, each left out in turn.

        Args:
            whole: Joints of which all rows are fitted.
            terms: Which terms they are to hold.
        """
        own = self.own + np.unique(np.array(terms, dtype=int))
        columns = np.concatenate([np.arange(self.own), own, [self.width - 1]])
        grams = gathered(self._rest, columns, columns)
        for j in whole:
            is_held = np.isin(self.moved[j], columns)
            used = np.flatnonzero(is_held)
            index = np.searchsorted(columns, self.moved[j][used])
            more = gathered(self._rest_masked[j], used, used)
            if len(index) == len(columns):
                grams += more
            else:
                grams[:, index[:, None], index] += more
        return Train(grams, columns)

    @cached_property
    def _rest(self) -> Float[np.ndarray, "folds width width"]:
        """Gram matrices of the rows that are always fitted, without each stretch."""
        return np.asarray(self._fitted.sum(axis=0) - self._fitted)

    @cached_property
    def _rest_masked(self) -> list[Float[np.ndarray, "folds moved moved"]]:
        """Those of each joint's other rows, without each stretch."""
        masked = [grams[1] - grams[0] for grams in self.grams]
        return [one.sum(axis=0) - one for one in masked]

    def fits(
        self, train: Train, selection: Sequence[int], candidates: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fit any Gram matrices: (β, −1), zero where not selected.

        Also returns, per fit and candidate, the direction in which adding it moves
        that fit, and how far.
        """
        grams, width = train.grams, self.width
        own = np.r_[: self.own, self.own + np.array(selection, dtype=int)]
        added = self.own + np.array(candidates, dtype=int)
        inside, beside = train.at(own), train.at(added)
        inner = gathered(grams, inside, inside)
        inner[:, np.arange(len(own)), np.arange(len(own))] += RIDGE
        right = gathered(grams, inside, np.append(beside, grams.shape[2] - 1))
        solved = np.linalg.solve(inner, right)
        x = np.zeros((len(grams), width))
        x[:, own], x[:, -1] = solved[..., -1], -1.0
        moves = np.zeros((len(grams), width, len(added)))
        moves[:, own] = -solved[..., :-1]
        moves[:, added, np.arange(len(added))] += 1.0
        # The bordered system: what a candidate still correlates with the residual,
        # over what of it the others do not explain.
        cross = right[..., :-1]
        free = grams[:, beside, beside] - np.sum(solved[..., :-1] * cross, axis=1)
        slope = np.matmul(x[:, None, own], cross)[:, 0] - grams[:, -1, beside]
        # 1e-6 of a column: what the others explain to this digit is not determined.
        steps = np.where(free > 1e-6, -slope / np.where(free > 1e-6, free, 1.0), 0.0)
        return x, moves, steps

    def total(self, whole: frozenset[int], *stretches: slice) -> Train:
        """Gram matrices of each of some stretches together, or of the whole log."""
        spans = stretches or (slice(None),)
        grams = np.stack([self._sum(whole, span) for span in spans])
        return Train(grams, np.arange(self.width))

    def _sum(
        self, whole: frozenset[int], stretches: slice
    ) -> Float[np.ndarray, "width width"]:
        """Gram matrix of some stretches, all rows of some joints in them."""
        total = self._fitted[stretches].sum(axis=0)
        for j in whole:
            used, grams = self.moved[j], self.grams[j][:, stretches].sum(axis=1)
            total[used[:, None], used] += grams[1] - grams[0]
        return np.asarray(total)

    def trial_errors(
        self, joints: np.ndarray, solved: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> Float[np.ndarray, "rows folds candidates"]:
        """Squared errors of joints, as `errors`, with each candidate added."""
        x, moves, steps = solved
        trial = np.zeros((2, *steps.shape))
        for j in joints:
            # All candidates of a drive in one product.
            grams, used = self.grams[j], self.moved[j]
            v, u = x[:, used], moves[:, used]
            products = np.matmul(grams, v[..., None])[..., 0]
            error = np.sum(products * v, axis=-1)[..., None]
            linear = np.einsum("fic,rfi->rfc", u, products)
            square = np.einsum("fic,rfic->rfc", u, np.matmul(grams, u))
            trial += error + 2.0 * steps * linear + steps**2 * square
        return trial

    def errors(
        self, x: np.ndarray, joints: Sequence[int] | np.ndarray | None = None
    ) -> Float[np.ndarray, "rows folds joints"]:
        """Squared error of fitted rows and of all, per stretch left out and joint."""
        errors = []
        for j in range(len(self.grams)) if joints is None else joints:
            used, grams = self.moved[j], self.grams[j]
            products = np.matmul(grams, x[:, used, None])[..., 0]
            errors.append(np.sum(products * x[:, used], axis=-1))
        return np.stack(errors, axis=2)


def gathered(
    grams: Float[np.ndarray, "fits width width"], rows: np.ndarray, columns: np.ndarray
) -> Float[np.ndarray, "fits rows columns"]:
    """Some rows and columns of matrices, by one index: forty times faster than two."""
    index = rows[:, None] * grams.shape[2] + columns
    return grams.reshape(len(grams), -1).take(index, axis=1)


def _combined(
    grams: Float[np.ndarray, "... columns columns"],
    change: Float[np.ndarray, "columns unknowns"],
) -> Float[np.ndarray, "... unknowns unknowns"]:
    """Cᵀ G C; nearly all unknowns are one column each, which is no product."""
    alone = np.count_nonzero(change, axis=0) == 1
    leader = np.argmax(change[:, alone] != 0.0, axis=0)
    size = change[leader, np.flatnonzero(alone)]
    others = change[:, ~alone]
    halves = np.empty((*grams.shape[:-1], change.shape[1]))
    halves[..., alone] = grams[..., leader] * size
    halves[..., ~alone] = grams @ others
    whole = np.empty((*grams.shape[:-2], change.shape[1], change.shape[1]))
    whole[..., alone, :] = halves[..., leader, :] * size[:, None]
    whole[..., ~alone, :] = others.T @ halves
    return whole


def _changes(
    problem: Problem, std: Float[np.ndarray, " joints"]
) -> Iterator[Float[np.ndarray, "columns unknowns"]]:
    """For each joint, the unknowns' columns as sums of its own, in units of noise."""
    columns = problem.columns
    leaders = columns.user[:, list(problem.base.indices)]
    fixed = columns.user @ np.where(problem.is_estimated, 0.0, problem.prior)
    for support, deviation in zip(columns.support, std, strict=True):
        change = np.zeros((support.size + 1, leaders.shape[1] + 2))
        # One lag for all joints.
        change[:-1, 0] = np.isin(support, columns.lags)
        change[:-1, 1:-1] = leaders[support]
        change[:-1, -1] = -fixed[support]
        change[-1, -1] = 1.0
        yield change / deviation
