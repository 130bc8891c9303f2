"""Symbolic solution of the constraint equation, with health bounds.

A is symmetric and positive semidefinite. It may be singular where constraints repeat
each other, as in a hinge of two points, so a trace of ρ is added to its diagonal and
the error of that removed by refinement: where forces are not unique, the smallest are
found. The caller looks at the residual and knows whether the answer holds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armwise.programs import Number
from armwise.worlds.body_protocol import Answer, Array, Moving, dot, symbols, zeros
from armwise.worlds.equations import Equations
from armwise.worlds.layout import StateLayout
from armwise.worlds.world import World

# Sparse symbolic factorisation.

REGULARISATION = 1e-8
"""ρ relative to the mean of A's diagonal: the square root of rounding, so that factors
of a singular A keep half their digits, and refinement restores the others."""

REFINEMENTS = 2
"""How often the error of ρ is removed: each time it shrinks by about ρ."""


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
            for m, entry in work.items():
                if m in self._lower[j]:
                    value = value - entry * self._lower[j][m]
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
            residual = right - symbols([dot(row, answer) for row in self._matrix])
            answer = answer + self._substitute(residual)
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


# Rates with constraint forces, and their health.

RESIDUAL = 1e-8
"""Largest ‖A F + β + …‖ relative to the right side, plus 1 m/s², of a good solution.

Beyond it refinement has not converged: A is singular and cannot give that side."""


def solved_rate(
    world: World,
    layout: StateLayout,
    moving: dict[str, Moving],
    equations: Equations,
    alive: dict[str, Number],
) -> tuple[Array, list[Number]]:
    """Return the rate of the state with constraint forces, and how healthy it is.

    Each number of the health is above 1 when something needs a closer look: the
    equation's residual, a force or a deviation above its bound. A constraint whose
    number in `alive` is 0 exerts no force.
    """
    rate = equations.rate.copy()
    if not layout.rows:
        return rate, []
    equations = _living(layout, equations, alive)
    matrix = _living_matrix(layout, moving, equations, alive)
    factors = Factors(matrix)
    ideal = factors.solve(-equations.free)
    stabilising = factors.solve(-equations.pull)
    force = ideal + stabilising
    for name, body in moving.items():
        terms: list[tuple[Number, Answer]] = [(1.0, equations.free_answers[name])]
        for k, row in enumerate(equations.answers):
            if name in row:
                terms.append((force[k], row[name]))
        rate[layout.velocities[name]] = body.combine(terms)
    for relation in world.relations:
        rows = layout.rows[relation.name]
        for kind, f, velocity in (
            ("constraint", ideal, equations.error),
            ("stabilisation", stabilising, equations.error),
            ("carrier", force, equations.carrier),
        ):
            if kind != "carrier" or relation.is_moving or relation.is_velocity:
                account = layout.account(kind, relation.name)
                rate[account] = dot(f[rows], velocity[rows])
    return rate, _health(world, layout, equations, matrix, force)


def _health(
    world: World, layout: StateLayout, equations: Equations, matrix: Array, force: Array
) -> list[Number]:
    right = equations.free + equations.pull
    residual = symbols([dot(row, force) for row in matrix]) + right
    scale = (dot(right, right) + 1.0) * RESIDUAL**2
    health = [dot(residual, residual) / scale]
    for relation in world.relations:
        rows = layout.rows[relation.name]
        for bound, values in (
            (relation.max_force, force[rows]),
            (relation.max_deviation, equations.deviation[rows]),
        ):
            if np.isfinite(bound):
                health.append(dot(values, values) * (1.0 / bound**2))
    return health


def _living(
    layout: StateLayout, equations: Equations, alive: dict[str, Number]
) -> Equations:
    """Ask nothing of constraints that are gone."""
    if not alive:
        return equations
    weights = symbols([alive.get(name, 1.0) for name in _owners(layout)])
    return replace(
        equations,
        free=equations.free * weights,
        pull=equations.pull * weights,
        deviation=equations.deviation * weights,
    )


def _living_matrix(
    layout: StateLayout,
    moving: dict[str, Moving],
    equations: Equations,
    alive: dict[str, Number],
) -> Array:
    """A = J M⁻¹ Jᵀ, symmetric, with rows of constraints that are gone as F = 0."""
    size = layout.row_count
    A = zeros(size, size)
    owners = _owners(layout)
    weights = [alive.get(name, 1.0) for name in owners]
    for i in range(size):
        for j in range(i + 1):
            value: Number = 0.0
            for name, one in equations.answers[i].items():
                if name in equations.answers[j]:
                    other = equations.answers[j][name]
                    value = value + moving[name].product(one, other)
            value = value * weights[i]
            if owners[i] != owners[j]:
                value = value * weights[j]
            A[i, j] = A[j, i] = value
        # A row of zeros with 1 on the diagonal reads F = 0.
        A[i, i] = A[i, i] + (1.0 - weights[i])
    return A


def _owners(layout: StateLayout) -> list[str]:
    """Return the name of the constraint of every row."""
    return [
        name for name, rows in layout.rows.items() for _ in range(rows.start, rows.stop)
    ]
