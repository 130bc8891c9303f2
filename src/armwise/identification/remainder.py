"""Further columns less what was fitted: products per stretch, gains and delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings import LEAST_KNOWN_LAG, UNKNOWN_LAG
from armwise.regression import STRETCHES, torque_rate

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.sampled_rows import WhitenedRows


ROWS_TRIED = 1000
"""Samples from which on every other is left out: neighbours repeat each other."""


def orthonormal_fit(
    rows: WhitenedRows, step: int
) -> tuple[Float[np.ndarray, "samples dof rank"], Float[np.ndarray, "base+1 rank"]]:
    """Orthonormal columns of all that was fitted, the lag last, and their root."""
    fitted = rows.regressor[:, ::step].transpose(1, 0, 2)
    late = np.zeros((*fitted.shape[:2], 1))
    shows_lag = rows.problem.columns.shows_lag
    if shows_lag.any():
        rate = np.vstack([torque_rate(run)[index] for run, index in rows.samples])
        late = (-rate * shows_lag * rows.trust / rows.std)[::step, :, None]
    flat = np.concatenate([fitted, late], axis=2).reshape(-1, fitted.shape[2] + 1)
    gram = flat.T @ flat
    size = np.sqrt(np.diag(gram))
    scale = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    # Half the digits are lost in the products: below that a direction is rounding.
    is_there = values > 1e-10 * max(values[-1], 1e-300)
    root = vectors[:, is_there] / np.sqrt(values[is_there]) / scale[:, None]
    return (flat @ root).reshape(*fitted.shape[:2], -1), root


@dataclass(frozen=True, eq=False)
class Remainder:
    """What some columns leave over of others, stretch by stretch; the torque is last.

    Attributes:
        values: The columns before any was taken out, one below another.
        edges: Rows at which stretches begin, and the end.
        squares: Squared size of what is left of every column.
        scores: Its product with what is left of the torque.
        taken: Columns taken out, as what those before them left, and the fraction of
            each that was in every column.
    """

    values: Float[np.ndarray, "columns rows"]
    edges: np.ndarray
    squares: Float[np.ndarray, "stretches columns"]
    scores: Float[np.ndarray, "stretches columns"]
    taken: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    @classmethod
    def of(cls, values: np.ndarray, edges: np.ndarray) -> Remainder:
        """Of columns of which nothing was taken out yet."""
        parts = [values[:, a:b] for a, b in pairwise(edges.tolist())]
        squares = np.stack([np.einsum("kr,kr->k", part, part) for part in parts])
        return cls(values, edges, squares, _by_stretch(values, edges, values[-1]))

    def column(self, k: int) -> Float[np.ndarray, " rows"]:
        """What is left of a column."""
        value = self.values[k]
        for one, fraction in self.taken:
            value = value - fraction[k] * one
        return value

    def without(self, k: int) -> Remainder:
        """What is left once a column was taken out as well."""
        own = self.column(k)
        products = _by_stretch(self.values, self.edges, own)
        for one, fraction in self.taken:
            shared = _by_stretch(one[None], self.edges, own)
            products = products - shared * fraction
        total = products.sum(axis=0)
        fraction = total / total[k]
        size, torque = products[:, k, None], products[:, -1, None]
        crossed = fraction * torque + fraction[-1] * products
        squares = self.squares - 2.0 * fraction * products + fraction**2 * size
        return replace(
            self,
            # Of a column that is wholly explained rounding leaves less than nothing.
            squares=np.maximum(squares, 0.0),
            scores=self.scores - crossed + fraction * fraction[-1] * size,
            taken=(*self.taken, (own, fraction)),
        )


def _by_stretch(
    values: Float[np.ndarray, "columns rows"],
    edges: np.ndarray,
    column: Float[np.ndarray, " rows"],
) -> Float[np.ndarray, "stretches columns"]:
    """Products of columns with one, stretch by stretch."""
    spans = pairwise(edges.tolist())
    return np.stack([values[:, a:b] @ column[a:b] for a, b in spans])


def own_coefficients(
    squares: Float[np.ndarray, "stretches columns"],
    scores: Float[np.ndarray, "stretches columns"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each column's own coefficient, its jackknife, and whether it is one at all."""
    total = squares.sum(axis=0)
    is_known = total > 0.0
    power = np.where(is_known, total, 1.0)
    value = np.where(is_known, scores.sum(axis=0) / power, 0.0)
    # As in `jackknife_covariance`, of one unknown; 0.95 there and here.
    moves = (scores - squares * value) / (power - 0.95 * squares)
    std = np.sqrt(np.sum(moves**2, axis=0) * (STRETCHES - 1) / STRETCHES)
    return value, std, is_known


def joint_coefficients(
    remainder: Remainder, columns: Sequence[int]
) -> tuple[np.ndarray, Float[np.ndarray, "columns stretches"]]:
    """Coefficients of columns in one regression, and a root of their covariance.

    Columns that are alike explain the same residual: one by one they would count it as
    often as there are of them. The covariance is the jackknife's.
    """
    if not columns:
        return np.zeros(0), np.zeros((0, STRETCHES))
    values = np.stack([remainder.column(k) for k in [*columns, -1]])
    unit = np.sqrt(np.sum(values[:-1] ** 2, axis=1))
    values[:-1] /= unit[:, None]
    spans = pairwise(remainder.edges.tolist())
    grams = np.stack([values[:, a:b] @ values[:, a:b].T for a, b in spans])
    products, scores = grams[:, :-1, :-1], grams[:, :-1, -1]
    # Of the products, which have half the digits: columns may be nearly alike.
    total = products.sum(axis=0) + 1e-9 * np.eye(len(unit))
    value = np.linalg.solve(total, scores.sum(axis=0))
    # As in `own_coefficients`, of several unknowns.
    moves = np.linalg.solve(
        total - 0.95 * products, (scores - products @ value)[..., None]
    )
    scatter = moves[..., 0].T * np.sqrt((STRETCHES - 1) / STRETCHES)
    return value / unit, scatter / unit[:, None]


def second_moment(value: float, std: float, before: float) -> float:
    """Root of it, of a coefficient that is 0 ± `before` and was seen as value ± std."""
    precision = 1.0 / std**2
    variance = before**2 / (1.0 + precision * before**2)
    return float(np.hypot(np.sqrt(variance), variance * precision * value))


_CHANCE = 0.01
"""Fraction of logs in which chance alone would pass the bound of any column."""

_DRAWS = 500
"""Logs drawn for that: the fifth largest of them is the bound."""


def reached_by_chance(
    squares: Float[np.ndarray, "stretches columns"],
    scores: Float[np.ndarray, "stretches columns"],
) -> Float[np.ndarray, " columns"]:
    """Standard errors of each column that chance reaches where none is followed.

    The score of every stretch with a sign of its own at random is what a residual that
    follows nothing would show (wild bootstrap with the null hypothesis imposed:
    Cameron, Gelbach and Miller 2008). A column that is large in a few stretches only
    reaches far more standard errors so than Student's t of all stretches says; bounds
    are balanced, so that it does not raise those of others.
    """
    power = squares.sum(axis=0)
    power = np.where(power > 0.0, power, 1.0)
    others = power - 0.95 * squares
    signs = _signs()
    value = signs @ scores / power
    # As in `own_coefficients`, multiplied out: signs squared are one.
    variance = np.sum((scores / others) ** 2, axis=0)
    variance = variance - 2.0 * value * (signs @ (scores * squares / others**2))
    variance += value**2 * np.sum((squares / others) ** 2, axis=0)
    variance *= (STRETCHES - 1) / STRETCHES
    # Rounding may leave nothing of a variance whose moves cancel.
    variance = np.maximum(variance, 1e-12 * value**2)
    ratio = np.abs(value) / np.sqrt(np.where(variance > 0.0, variance, np.inf))
    own = np.quantile(ratio, 1.0 - _CHANCE, axis=0)
    size = np.where(own > 0.0, own, 1.0)
    largest = (ratio / size).max(axis=1, initial=0.0)
    return np.asarray(own * np.quantile(largest, 1.0 - _CHANCE))


@cache
def _signs() -> Float[np.ndarray, "draws stretches"]:
    return np.random.default_rng(0).choice([-1.0, 1.0], (_DRAWS, STRETCHES))


# The delay, where it was not fitted.


def lag_doubt(
    rows: WhitenedRows, is_tested: bool
) -> tuple[float | None, Float[np.ndarray, " base+1"]]:
    """What a delay that was not fitted may be off by, and move the parameters by."""
    nothing = np.zeros(rows.regressor.shape[2] + 1)
    shows_lag = rows.problem.columns.shows_lag
    if shows_lag.all():
        return None, nothing
    preparations = [run.preparation for run in rows.problem.data]
    # Friction with a memory keeps a delay that was to be fitted from being so.
    before = max(one.lag_doubt or one.lag_std or 0.0 for one in preparations)
    if not before:
        return None, nothing
    step = max(1, rows.log.size // ROWS_TRIED)
    basis, root = orthonormal_fit(rows, step)
    flat = basis.reshape(-1, basis.shape[2])
    # The links' torque: the measured one's slope may be noise, which would show a delay
    # of nothing.
    rate = np.where(shows_lag, 0.0, -rows.link_torque[1])
    late = (rate * rows.trust / rows.std)[::step].reshape(-1)
    both = np.stack([late, rows.torque[:, ::step].T.reshape(-1)])
    projected = both @ flat
    edges = np.searchsorted(rows.stretch[::step], np.arange(STRETCHES + 1))
    remainder = Remainder.of(both - projected @ flat.T, rows.torque.shape[0] * edges)
    value, std, is_known = own_coefficients(
        remainder.squares[:, :1], remainder.scores[:, :1]
    )
    doubt = before
    # All of the log and the friction that was chosen may say more than a part and plain
    # friction did. Its mean is not taken, so that it is part of the doubt.
    # Where delays far apart explain a log alike, no slope at one of them says which.
    # Nor do joints whose friction follows late, where others do.
    is_fitted = bool(shows_lag.any())
    is_tested &= before < UNKNOWN_LAG and not is_fitted
    if is_tested and is_known[0] and std[0] > 0.0:
        variance = 1.0 / (1.0 / std[0] ** 2 + 1.0 / before**2)
        doubt = float(np.hypot(np.sqrt(variance), variance / std[0] ** 2 * value[0]))
        # Both look at the same log, and this one at rows near reversals, too, as if
        # gains were exact: it is surer only than one that hardly knew.
        is_vague = before > LEAST_KNOWN_LAG
        doubt = max(doubt, min(before, float(std[0])) if is_vague else before)
    effect = root @ projected[0] * doubt if np.isfinite(doubt) else nothing
    # What was fitted has an error of its own.
    return None if is_fitted else doubt, effect


# Torque gains: unknowns that are known beforehand.

_GAIN_FACTORS = np.array([1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32])
"""Multiples of the assumed gain deviation that are compared."""

# A likelihood ratio of e² is χ² = 4 of one degree of freedom: 1 in 20 by chance.
GAIN_EVIDENCE = 2.0
"""Gain in log-likelihood from which on intervals count with a larger deviation."""

# χ² = 10: 1 in 600. Stretches in which a joint sticks are no Gaussian scatter: at 1 in
# 20, two of fifteen logs with exact gains were accused.
_GAIN_CERTAINTY = 5.0
"""Gain in log-likelihood from which on gains are said to differ."""


@dataclass(frozen=True, eq=False)
class GainsShown:
    """Torque gains as the joints show them.

    Attributes:
        std: Standard deviation that is counted with, per joint.
        is_seen: Whether the joints differ by more than was assumed.
        effects: Columns whose outer products add up to the parameters' covariance due
            to gains, the lag last.
        evidence: Gain in log-likelihood of what they differ by.
        is_sure: Whether that is worth a word.
    """

    std: Float[np.ndarray, " dof"]
    is_seen: bool
    effects: Float[np.ndarray, "base+1 dof"]
    evidence: float = 0.0
    is_sure: bool = False


def gains_shown(
    remainder: Remainder,
    gains: slice,
    own: Float[np.ndarray, "base+1 dof"],
    assumed: Float[np.ndarray, " dof"],
    least: float = GAIN_EVIDENCE,
) -> GainsShown:
    """Gains after a look at how far the joints' torques agree.

    A link moves several joints, so that gains can be compared; what all gains have in
    common no torque shows. Scores u = Gᵀ e have the covariance B + K S K with S that of
    the gains, K = Gᵀ G and B the scatter over stretches: their likelihood says whether
    S is as assumed; mean and covariance of the gains given u then follow.

    Args:
        remainder: What the fit leaves of columns, those of the gains among them.
        gains: Which they are.
        own: What a unit of each moves the parameters by, the lag last.
        assumed: Standard deviation of each gain beforehand.
        least: Evidence from which on they are taken to differ by more.
    """
    if not assumed.any():
        return GainsShown(assumed, False, np.zeros(own.shape))
    own_columns = range(gains.start, gains.stop)
    columns = np.stack([remainder.column(k) for k in own_columns])
    edges = remainder.edges
    parts = [columns[:, a:b] for a, b in pairwise(edges.tolist())]
    products = np.stack([part @ part.T for part in parts])
    scores = remainder.scores[:, gains]
    information, score = products.sum(axis=0), scores.sum(axis=0)
    fit = np.linalg.pinv(information, rcond=1e-6, hermitian=True) @ score
    scatter = scores - products @ fit
    noise = scatter.T @ scatter * STRETCHES / (STRETCHES - 1)
    # A millionth of its mean keeps what gains have in common, where both are zero,
    # from being divided by; a part of the gains' own does where data are exact.
    part = float(np.sum((information * assumed) ** 2))
    floor = max(1e-6 * float(np.trace(noise)), 1e-12 * part, 1e-300) / len(fit)
    noise += floor * np.eye(len(fit))
    likelihood = []
    for factor in _GAIN_FACTORS:
        spread = information * (factor * assumed) ** 2 @ information + noise
        size = np.linalg.slogdet(spread)[1]
        likelihood.append(-0.5 * (size + score @ np.linalg.solve(spread, score)))
    best = int(np.argmax(likelihood))
    # With few samples scatter says nothing.
    is_known = len(np.flatnonzero(np.abs(scores).sum(axis=1))) > 2 * len(fit)
    evidence = float(likelihood[best] - likelihood[0]) if is_known else 0.0
    is_seen = evidence > least
    std = assumed * (_GAIN_FACTORS[best] if is_seen else 1.0)
    second = np.diag(std**2)
    if is_seen:
        # Joints show how their gains differ, not what all have in common: that may be
        # off by as much, as one maker's constants or one supply's voltage are.
        second = second + np.outer(std, std)
    if is_known:
        # (S⁻¹ + K B⁻¹ K)⁻¹ without S⁻¹, which a gain that is exact has not.
        expected = information @ np.linalg.solve(noise, information)
        after = np.linalg.solve(np.eye(len(fit)) + second @ expected, second)
        mean = after @ (information @ np.linalg.solve(noise, score))
        second = after + np.outer(mean, mean)
    values, vectors = np.linalg.eigh(0.5 * (second + second.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    is_sure = is_seen and evidence > _GAIN_CERTAINTY
    return GainsShown(std, is_seen, own @ root, evidence, is_sure)
