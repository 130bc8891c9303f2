"""Solve the constraint equation symbolically, zeros left out.

A is symmetric and positive semidefinite. It may be singular where constraints repeat
each other, as in a hinge of two points, so a trace of ρ is added to its diagonal and
the error of that removed by refinement: where forces are not unique, the smallest are
found. The caller looks at the residual and knows whether the answer holds.
"""

from __future__ import annotations

from armwise.programs.scalars import Number
from armwise.worlds.vectors import Array, dot, symbols

REGULARISATION = 1e-8
"""ρ relative to the mean of A's diagonal."""

REFINEMENTS = 2
"""How often the error of ρ is taken out."""


class Factors:
    """A + ρ = L D Lᵀ of the rows that are not structurally zero."""

    def __init__(self, A: Array) -> None:
        self.size = len(A)
        self.rows = [i for i in range(self.size) if _is_used(A[i, i])]
        mean: Number = 0.0
        for i in self.rows:
            mean = mean + A[i, i]
        rho = mean * (REGULARISATION / max(1, len(self.rows)))
        self._matrix = A
        self._lower: list[dict[int, Number]] = []
        self._pivots: list[Number] = []
        for k, i in enumerate(self.rows):
            self._eliminate(k, [A[i, j] for j in self.rows[: k + 1]], rho)

    def _eliminate(self, k: int, row: list[Number], rho: Number) -> None:
        """Add one row of L and its pivot."""
        work: dict[int, Number] = {}
        for j in range(k):
            value = row[j]
            for m, left in work.items():
                if m in self._lower[j]:
                    value = value - left * self._lower[j][m]
            if _is_used(value):
                work[j] = value
        pivot = row[k] + rho
        lower: dict[int, Number] = {}
        for j, value in work.items():
            lower[j] = value / self._pivots[j]
            pivot = pivot - lower[j] * value
        self._lower.append(lower)
        self._pivots.append(pivot)

    def solve(self, right: Array) -> Array:
        """Return the smallest F with A F = right.

        Each refinement multiplies what ρ has left of the error by ρ/σ once more.
        """
        answer = self._substitute(right)
        for _ in range(REFINEMENTS):
            rest = right - symbols([dot(row, answer) for row in self._matrix])
            answer = answer + self._substitute(rest)
        return answer

    def _substitute(self, right: Array) -> Array:
        values: list[Number] = [right[i] for i in self.rows]
        for k, lower in enumerate(self._lower):
            for j, factor in lower.items():
                values[k] = values[k] - factor * values[j]
        values = [x / d for x, d in zip(values, self._pivots, strict=True)]
        for k in reversed(range(len(values))):
            for j, factor in self._lower[k].items():
                values[j] = values[j] - factor * values[k]
        answer = symbols([0.0] * self.size)
        for i, value in zip(self.rows, values, strict=True):
            answer[i] = value
        return answer


def _is_used(value: Number) -> bool:
    return not (isinstance(value, float | int) and value == 0)
