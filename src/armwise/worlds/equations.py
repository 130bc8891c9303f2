"""Equations of motion of a world, over symbolic scalars.

Constraint forces F follow from A F + β = −2λḊ − λ²D (Eq. 2.21, 2.22, 2.41): A says
how forces accelerate the deviations, β is how they accelerate without, and the right
side is the critically damped return to zero.

A is symmetric and positive semidefinite. It may be singular where constraints repeat
each other, as in a hinge of two points, so a trace of ρ is added to its diagonal and
the error of that removed by refinement: where forces are not unique, the smallest are
found. The caller looks at the residual and knows whether the answer holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.worlds.body_protocol import (
    Answer,
    Array,
    CheckedMotion,
    Moving,
    PointMotion,
    Pushes,
    dot,
    symbols,
    zeros,
)
from armwise.worlds.force_evaluation import Deviation, Push, deviation_of, push_of

if TYPE_CHECKING:
    from armwise.programs import Number
    from armwise.worlds.bodies import Point
    from armwise.worlds.constraints import Relation
    from armwise.worlds.layout import StateLayout, WorldSignals
    from armwise.worlds.world import World

OUTPUTS = (
    "rate",
    "response",
    "jacobian",
    "free",
    "pull",
    "deviation",
    "error",
    "carrier",
)
"""What of the equations is evaluated when they are to be solved elsewhere."""


@dataclass(frozen=True, eq=False)
class Equations:
    """A world's equations at one state.

    Attributes:
        rate: Rate of the state without constraint forces.
        response: U = M⁻¹Jᵀ, acceleration of all velocities by constraint forces.
        jacobian: J, rows of every relation against all velocities; A = J U.
        free: β.
        pull: 2λḊ + λ²D.
        deviation: D, rows of every relation.
        error: Velocity of the deviations, which does the work of violation.
        carrier: Velocity of the targets, which does real work.
        answers: For each row, how the bodies it holds answer it.
        free_answers: How each body answers everything else.
    """

    rate: Array
    response: Array
    jacobian: Array
    free: Array
    pull: Array
    deviation: Array
    error: Array
    carrier: Array
    answers: list[dict[str, Answer]]
    free_answers: dict[str, Answer]


def move_bodies(world: World, layout: StateLayout, state: Array) -> dict[str, Moving]:
    """Build every body's motion from a state."""
    gravity = symbols(world.gravity)
    moving: dict[str, Moving] = {}
    for body in world.bodies:
        position = state[layout.positions[body.name]]
        velocity = state[layout.velocities[body.name]]
        if body.is_traced:
            moving[body.name] = body.move(position, velocity, gravity)
        else:
            numbers = (x.astype(float) for x in (position, velocity, gravity))
            sizes = len(position), len(velocity)
            moving[body.name] = CheckedMotion(body, body.move(*numbers), sizes)
    return moving


def equations_of(
    world: World,
    layout: StateLayout,
    signals: WorldSignals,
    moving: dict[str, Moving],
    state: Array,
    signal: Array,
) -> Equations:
    """Write down the equations of a world whose bodies are moved to one state."""
    pushes = {
        force.name: push_of(force, world, moving, _effort(signals, force.name, signal))
        for force in world.forces
    }
    free = _free_answers(moving, pushes)
    held = [
        deviation_of(
            relation, moving, *_outside(relation, layout, signals, state, signal)
        )
        for relation in world.relations
    ]
    rows = _row_pushes(world, held)
    answers = [
        {name: moving[name].answer(push) for name, push in row.items()} for row in rows
    ]
    jacobian = _by_velocity(layout, rows, lambda name, push: _load(moving[name], push))
    response = _by_velocity(
        layout, rows, lambda name, push: moving[name].respond(_load(moving[name], push))
    )
    return Equations(
        _rate(world, layout, moving, pushes, free, held),
        response.T,
        jacobian,
        _bias(moving, answers, free, held),
        _stack([one.pull for one in held]),
        _stack([one.value for one in held]),
        _stack([one.error for one in held]),
        _stack([one.carrier for one in held]),
        answers,
        free,
    )


def energies_of(
    world: World, layout: StateLayout, state: Array
) -> dict[str, list[Number]]:
    """Return kinetic and gravitational energy by body, stored by force and body."""
    moving = move_bodies(world, layout, state)
    held = [force for force in world.forces if hasattr(force, "stiffness")]
    stored = [push_of(force, world, moving, None).stored for force in held]
    return {
        "kinetic": [moving[body.name].kinetic_energy for body in world.bodies],
        "gravitational": [
            moving[body.name].gravitational_energy for body in world.bodies
        ],
        "stored": [
            *stored,
            *(moving[body.name].stored_energy for body in world.bodies),
        ],
    }


def _effort(signals: WorldSignals, name: str, signal: Array) -> Array | None:
    return signal[signals.efforts[name]] if name in signals.efforts else None


def _outside(
    relation: Relation,
    layout: StateLayout,
    signals: WorldSignals,
    state: Array,
    signal: Array,
) -> tuple[PointMotion | None, Number | None]:
    """Return the target's motion, if carried, and the parameter of a curve, if any."""
    carried = None
    if relation.name in signals.targets:
        n = signal[signals.targets[relation.name]]
        carried = PointMotion(n[:3], n[3:6], n[6:])
    index = layout.curves.get(relation.name)
    return carried, None if index is None else state[index]


def _free_answers(
    moving: dict[str, Moving], pushes: dict[str, Push]
) -> dict[str, Answer]:
    """Return how bodies answer all but constraint forces."""
    loads: dict[str, Array] = {}
    for push in pushes.values():
        for name, load in push.loads:
            loads[name] = loads[name] + load if name in loads else load
    return {name: body.free_answer(loads.get(name)) for name, body in moving.items()}


def _rate(
    world: World,
    layout: StateLayout,
    moving: dict[str, Moving],
    pushes: dict[str, Push],
    free: dict[str, Answer],
    held: list[Deviation],
) -> Array:
    rate = zeros(layout.size)
    for body in world.bodies:
        there = moving[body.name]
        rate[layout.positions[body.name]] = there.position_rate
        rate[layout.velocities[body.name]] = there.combine([(1.0, free[body.name])])
    for relation, one in zip(world.relations, held, strict=True):
        if relation.name in layout.curves:
            rate[layout.curves[relation.name]] = one.slip
    for account in layout.accounts:
        if account.kind == "friction":
            power = moving[account.name].friction_power
        elif account.name in pushes:
            power = pushes[account.name].powers.get(account.kind, 0.0)
        else:
            continue
        rate[layout.account(account.kind, account.name)] = power
    return rate


def _row_pushes(
    world: World, held: list[Deviation]
) -> list[dict[str, list[tuple[Point, Array]]]]:
    """Return, for each row, the forces at points of each body that a unit of it is."""
    rows = []
    for relation, one in zip(world.relations, held, strict=True):
        for direction in one.directions:
            row: dict[str, list[tuple[Point, Array]]] = {}
            for point, s in zip(relation.points, relation.signs, strict=True):
                row.setdefault(point.body, []).append((point, direction * s))
            rows.append(row)
    return rows


def _load(body: Moving, pushes: Pushes) -> Array:
    """Return forces at points as one generalised force."""
    loads = [body.apply_point_force(point, force) for point, force in pushes]
    return sum(loads[1:], start=loads[0])


def _by_velocity(
    layout: StateLayout,
    rows: list[dict[str, list[tuple[Point, Array]]]],
    function: Callable[[str, Pushes], Array],
) -> Array:
    """Return a matrix of rows against all velocities, zero for bodies not held."""
    span = layout.velocity_slice
    matrix = zeros(len(rows), span.stop - span.start)
    for i, row in enumerate(rows):
        for name, pushes in row.items():
            part = layout.velocities[name]
            columns = slice(part.start - span.start, part.stop - span.start)
            matrix[i, columns] = function(name, pushes)
    return matrix


def _bias(
    moving: dict[str, Moving],
    answers: list[dict[str, Answer]],
    free: dict[str, Answer],
    held: list[Deviation],
) -> Array:
    """β = J M⁻¹(forces) + J̇v − n̈."""
    bias = _stack([one.turning for one in held])
    for i, row in enumerate(answers):
        for name, answer in row.items():
            bias[i] = bias[i] + moving[name].product(answer, free[name])
    return bias


def _stack(parts: list[Array]) -> Array:
    return np.concatenate([zeros(0), *parts])


# Symbolic solution of the constraint equation, with health bounds.

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
        # A diagonal that is structurally zero belongs to points that cannot move: no
        # force of that row matters.
        self.rows = [i for i in range(self.size) if _is_used(A[i, i])]
        mean: Number = 0.0
        for i in self.rows:
            mean = mean + A[i, i]
        # Relative to the mean diagonal: the same for grams and tonnes.
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
        # No pivoting: A + ρ is positive definite, and a traced program cannot branch.
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
    # Structural zeros are floats; a symbol always counts, whatever its value.
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
    # Solved apart, with the same factors: the ledger books both works separately.
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
                # Squares: no root in the compiled loop, and above 1 exactly when the
                # norm is above its bound.
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
            # Once within a constraint, twice between two: either may be gone.
            if owners[i] != owners[j]:
                value = value * weights[j]
            # One half computed, both written: A is symmetric to the last bit, as LDLᵀ
            # assumes.
            A[i, j] = A[j, i] = value
        # A row of zeros with 1 on the diagonal reads F = 0.
        A[i, i] = A[i, i] + (1.0 - weights[i])
    return A


def _owners(layout: StateLayout) -> list[str]:
    """Return the name of the constraint of every row."""
    return [
        name for name, rows in layout.rows.items() for _ in range(rows.start, rows.stop)
    ]
