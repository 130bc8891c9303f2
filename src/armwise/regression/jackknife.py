"""Delete-a-stretch jackknife: covariance under residuals that are correlated in time.

Filtered data repeat themselves: a thousand samples a second at a bandwidth of ten hertz
hold twenty facts, not a thousand. The scores Yᵀ W e are summed over stretches of time
long enough to be independent; their scatter, not the residuals' size, gives the
covariance: what β would have been without each stretch in turn (the delete-a-group
jackknife, or CR3 of cluster-robust statistics). It holds for few stretches, too.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.regression.columns import Block, Columns
    from armwise.regression.solution import Solution

STRETCHES = 40
"""Stretches a log is cut into: enough that the variance itself is known to a quarter
(√(2/40)), few enough that one of them is longer than residuals stay correlated."""

# With three, the variance would be as uncertain as it is large: √(2/2).
_FEWEST_STRETCHES = 4
"""Fewer stretches than these say nothing of correlation."""

# 1/(1 − 0.95): one stretch may count twenty times its score, and no more.
_LARGEST_FRACTION = 0.95
"""A stretch that holds all information on a direction counts as holding this much: what
β would be without it is not defined, and the scatter shall stay finite."""

# Judgement: enough samples that every phase of a stretch's motion is among them.
_LOOKS_PER_STRETCH = 32
"""Samples of a stretch whose products stand for all of it: Yᵀ W Y of a stretch only
corrects for its leverage, and a few per cent of error do not matter there."""


def interval_factor(confidence: float = 0.95) -> float:
    """Standard deviations to each side of an interval from so many stretches."""
    # Student's t: the jackknife's variance is itself an estimate from few stretches.
    return student_factor(STRETCHES - 1, confidence)


@cache
def student_factor(freedom: int, confidence: float) -> float:
    """Half width that holds Student's t with whole degrees of freedom so often."""
    low, high = 0.0, 0.5 * math.pi
    while high - low > 1e-15:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        is_below = _within(middle, freedom) < confidence
        low, high = (middle, high) if is_below else (low, middle)
    return math.sqrt(freedom) * math.tan(0.5 * (low + high))


def student_tails(value: float, freedom: int) -> float:
    """Probability that Student's t is further from zero, to 1e-15 of one."""
    return 1.0 - _within(math.atan(abs(value) / math.sqrt(freedom)), freedom)


def _within(angle: float, freedom: int) -> float:
    """Probability that t = √ν tan θ is within ±angle.

    It is ∫cosᵛ⁻¹ from 0 to θ over that to π/2, and integrals of powers of a cosine
    follow from those two powers lower (Abramowitz and Stegun 26.7.3, 26.7.4).
    `scipy.special` would take a fifth of a second to load.
    """

    def integral(end: float) -> float:
        power = (freedom - 1) % 2
        total = math.sin(end) if power else end
        for n in range(power + 2, freedom, 2):
            step = math.sin(end) * math.cos(end) ** (n - 1)
            total = (step + (n - 1) * total) / n
        return total

    return integral(angle) / integral(0.5 * math.pi)


def jackknife_covariance(
    scores: Float[np.ndarray, "stretches unknowns"],
    fractions: Float[np.ndarray, "stretches determined determined"],
    root: Float[np.ndarray, "unknowns determined"],
) -> Float[np.ndarray, "unknowns unknowns"]:
    """Scatter of what an estimate would be without each stretch in turn.

    Without stretch g the estimate moves by −(H − H_g)⁻¹ s_g to first order, for any
    estimate that minimises a sum of squares, linear or linearised.

    Args:
        scores: s_g = Aᵀ r, each stretch's gradient of half the cost, in whitened rows.
        fractions: Gᵀ H_g G, each stretch's part of all information (H_g = Aᵀ A), at
            least roughly.
        root: Any G with G Gᵀ = H⁻¹, the inverse of all information; directions that
            nothing determines left out.
    """
    count = len(scores)
    # (I − GᵀH_gG)⁻¹ Gᵀ s = Gᵀ (I − H_g H⁻¹)⁻¹ s, and the left one is symmetric.
    others = np.eye(root.shape[1]) - _LARGEST_FRACTION * fractions
    moves = np.linalg.solve(others, (scores @ root)[..., None])
    steps = moves[..., 0] @ root.T
    # Tukey's factor for g groups: pseudo-values g β − (g − 1) β₋ scatter (g − 1) times
    # as far as the estimates β₋ without a group, and β is the mean of g of them.
    return np.asarray(steps.T @ steps * (count - 1) / count)


def jackknife(
    scores: Float[np.ndarray, "stretches base"],
    fractions: Float[np.ndarray, "stretches determined determined"],
    solution: Solution,
) -> Float[np.ndarray, "base base"]:
    """Covariance of a linear solution from its scores; infinite where undetermined.

    Args:
        scores: As for `jackknife_covariance`.
        fractions: Likewise, for the solution's own `inverse_root`.
        solution: The solution.
    """
    # Only the textbook covariance is left, as if residuals were independent.
    if len(scores) < _FEWEST_STRETCHES:
        return solution.covariance
    covariance = jackknife_covariance(scores, fractions, solution.inverse_root)
    return _with_undetermined(covariance, solution)


def sandwich(
    scores: Float[np.ndarray, "stretches base"], solution: Solution
) -> Float[np.ndarray, "base base"]:
    """Covariance H⁻¹ (Σ s sᵀ) H⁻ᵀ, for methods that have scores of their own."""
    count = len(scores)
    if count < _FEWEST_STRETCHES:
        return solution.covariance
    # g/(g − 1): the small-sample factor of cluster-robust covariance (CR1).
    scatter = scores.T @ scores * count / (count - 1)
    covariance = solution.sensitivity @ scatter @ solution.sensitivity.T
    return _with_undetermined(covariance, solution)


def _with_undetermined(
    covariance: Float[np.ndarray, "base base"], solution: Solution
) -> Float[np.ndarray, "base base"]:
    """Leave infinite what the solution does not determine."""
    undetermined = ~np.isfinite(np.diag(solution.covariance))
    covariance[undetermined, :] = 0.0
    covariance[:, undetermined] = 0.0
    covariance[undetermined, undetermined] = np.inf
    return covariance


class StretchScores:
    """Scores and information of stretches of equal length, filled in order.

    Args:
        samples: How many samples there will be.
        width: Number of columns.
    """

    def __init__(self, samples: int, width: int) -> None:
        self._length = max(1, -(-samples // STRETCHES))
        self._stride = -(-self._length // _LOOKS_PER_STRETCH)
        self._filled = 0
        self.values = np.zeros((-(-samples // self._length), width))
        # Rows and not their products: of many joints a product has far more entries
        # than the few rows that it is made of.
        self._rows: list[list[tuple[int, np.ndarray]]] = [[] for _ in self.values]

    def parts(self, count: int) -> list[tuple[int, slice]]:
        """Assign the next samples: (number of the stretch, which of the samples)."""
        parts = []
        start = 0
        while start < count:
            row, inside = divmod(self._filled + start, self._length)
            stop = min(count, start + self._length - inside)
            parts.append((row, slice(start, stop)))
            start = stop
        self._filled += count
        return parts

    def add(
        self,
        columns: Columns,
        block: Block,
        errors: Float[np.ndarray, "samples dof"],
        torque_std: Float[np.ndarray, " dof"],
        parts: list[tuple[int, slice]],
    ) -> None:
        """Add the scores Yᵀ W e of a block, and some of its rows for Yᵀ W Y."""
        for i, support in enumerate(columns.support):
            matrix = block.joints[i][:-1]
            if block.trust is not None:
                # Rows that the fit ignored must not contribute a score either.
                matrix = matrix * block.trust[:, i]
            error = errors[:, i] / torque_std[i] ** 2
            for row, part in parts:
                self.values[row, support] += matrix[:, part] @ error[part]
                some = matrix[:, part.start : part.stop : self._stride]
                # Thinned rows stand for those between them.
                weight = np.sqrt((part.stop - part.start) / some.shape[1])
                self._rows[row].append((i, some.T * (weight / torque_std[i])))

    def covariance(
        self,
        columns: Columns,
        selection: Float[np.ndarray, "columns base"],
        solution: Solution,
    ) -> Float[np.ndarray, "base base"]:
        """Jackknife of a solution for combinations of the columns."""
        root = selection @ solution.inverse_root
        roots = [root[support] for support in columns.support]
        fractions = []
        for rows in self._rows:
            turned = [some @ roots[i] for i, some in rows]
            every = np.concatenate(turned) if turned else np.zeros((1, root.shape[1]))
            fractions.append(every.T @ every)
        return jackknife(self.values @ selection, np.array(fractions), solution)
