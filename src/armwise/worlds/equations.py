"""Equations of motion of a world, over symbolic scalars.

Constraint forces F follow from A F + β = −2λḊ − λ²D (Eq. 2.21, 2.22, 2.41): A says
how forces accelerate the deviations, β is how they accelerate without, and the right
side is the critically damped return to zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from armwise.programs import Number
from armwise.worlds.articulated import ArticulatedMotion
from armwise.worlds.bodies import Point, RigidBody
from armwise.worlds.body_protocol import (
    Answer,
    Array,
    Moving,
    PointMotion,
    Pushes,
    symbols,
    zeros,
)
from armwise.worlds.constraints import Relation
from armwise.worlds.force_evaluation import Deviation, Push, deviation_of, push_of
from armwise.worlds.layout import StateLayout, WorldSignals
from armwise.worlds.rigid import RigidMotion
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
        kind = RigidMotion if isinstance(body, RigidBody) else ArticulatedMotion
        moving[body.name] = kind(body, position, velocity, gravity)  # type: ignore[arg-type]
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
    """Return kinetic and gravitational energy of each body, stored of each force."""
    moving = move_bodies(world, layout, state)
    held = [force for force in world.forces if hasattr(force, "stiffness")]
    stored = [push_of(force, world, moving, None).stored for force in held]
    return {
        "kinetic": [moving[body.name].kinetic_energy for body in world.bodies],
        "gravitational": [
            moving[body.name].gravitational_energy for body in world.bodies
        ],
        "stored": stored or [0.0],
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
