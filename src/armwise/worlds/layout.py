"""Layout of a world's state and signal vectors, and the initial state.

The state is [positions | velocities | curve parameters | work of each account].
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from armwise.errors import ArgumentError
from armwise.motions import Motion
from armwise.worlds.articulated import ArticulatedBody
from armwise.worlds.body_protocol import Body
from armwise.worlds.constraints import Relation
from armwise.worlds.forces import (
    Drag,
    Force,
    JointLimit,
    JointMotor,
    PointForce,
    Spring,
    Torque,
)
from armwise.worlds.world import World


@dataclass(frozen=True)
class Account:
    """A line of the ledger whose work is integrated along with the motion.

    Attributes:
        kind: "actuator", "damper", "drag", "friction", "constraint",
            "stabilisation" or "carrier" (a target that moves).
        name: The force, body or constraint it belongs to.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, eq=False)
class StateLayout:
    """The parts of the state vector.

    Attributes:
        positions, velocities: Body name → its slice of the state.
        curves: Constraint name → index of its curve's parameter s.
        accounts: Accounts, in the order of the work states.
        works: The slice of the work states.
        quaternions: First index of each quaternion.
        rows: Relation name → its slice of the constraint equation.
        size: Length of the state.
    """

    positions: dict[str, slice]
    velocities: dict[str, slice]
    curves: dict[str, int]
    accounts: tuple[Account, ...]
    works: slice
    quaternions: tuple[int, ...]
    rows: dict[str, slice]
    size: int

    @property
    def position_count(self) -> int:
        """Number of position coordinates of all bodies."""
        return max((part.stop for part in self.positions.values()), default=0)

    @property
    def velocity_slice(self) -> slice:
        """The velocities of all bodies."""
        stop = max((part.stop for part in self.velocities.values()), default=0)
        return slice(self.position_count, stop)

    @property
    def row_count(self) -> int:
        """Number of rows of the constraint equation."""
        return max((part.stop for part in self.rows.values()), default=0)

    def account(self, kind: str, name: str) -> int:
        """Return the index in the state of an account's work."""
        return int(self.works.start) + self.accounts.index(Account(kind, name))


def layout_of(world: World) -> StateLayout:
    """Lay out the state of a world."""
    # Positions of all bodies, then velocities: both stay contiguous slices, which the
    # compiled loops and semi-implicit steps rely on.
    starts = [_start(body) for body in world.bodies]
    positions, index = _slices(world, 0, [len(position) for position, _ in starts])
    velocities, index = _slices(world, index, [len(speed) for _, speed in starts])
    curves: dict[str, int] = {}
    rows: dict[str, slice] = {}
    row = 0
    for relation in world.relations:
        rows[relation.name] = slice(row, row + relation.size)
        row += relation.size
        if relation.curve is not None:
            curves[relation.name] = index
            index += 1
    accounts = _accounts(world)
    works = slice(index, index + len(accounts))
    quaternions = tuple(
        positions[body.name].start + k
        for body in world.bodies
        for k in body.quaternions
    )
    return StateLayout(
        positions, velocities, curves, accounts, works, quaternions, rows, works.stop
    )


def _start(body: Body) -> tuple[np.ndarray, np.ndarray]:
    try:
        position, velocity = (np.array(row, dtype=float) for row in body.start())
    except (TypeError, ValueError):
        position = velocity = np.zeros((0, 0))
    if position.ndim != 1 or velocity.ndim != 1:
        raise ArgumentError(
            f"The start of the body {body.name!r} must be two rows of numbers: its "
            "position and its velocity coordinates."
        )
    return position, velocity


def _slices(world: World, index: int, sizes: list[int]) -> tuple[dict[str, slice], int]:
    slices = {}
    for body, size in zip(world.bodies, sizes, strict=True):
        slices[body.name] = slice(index, index + size)
        index += size
    return slices, index


def _accounts(world: World) -> tuple[Account, ...]:
    accounts = [
        Account("friction", body.name) for body in world.bodies if body.has_friction
    ]
    for force in world.forces:
        if isinstance(force, JointMotor | PointForce | Torque):
            accounts.append(Account("actuator", force.name))
        if isinstance(force, Drag):
            accounts.append(Account("drag", force.name))
        damped = isinstance(force, Spring | JointLimit) and force.damping > 0
        if damped or (isinstance(force, Torque) and force.viscous > 0):
            accounts.append(Account("damper", force.name))
    for relation in world.relations:
        accounts.append(Account("constraint", relation.name))
        # Apart from the constraint's own work: it is the energy that violation costs,
        # zero if all constraints held exactly.
        accounts.append(Account("stabilisation", relation.name))
        if relation.is_moving or relation.is_velocity:
            accounts.append(Account("carrier", relation.name))
    return tuple(accounts)


def starting_state(world: World, layout: StateLayout) -> np.ndarray:
    """Return the state at the start, except curve parameters, which are zero."""
    state = np.zeros(layout.size)
    for body in world.bodies:
        position, velocity = _start(body)
        state[layout.positions[body.name]] = position
        state[layout.velocities[body.name]] = velocity
    if not np.all(np.isfinite(state)):
        raise ArgumentError(f"The starting state of {world.name} is not finite.")
    return state


# External signals: moving targets and sampled efforts.


@dataclass(frozen=True, eq=False)
class WorldSignals:
    """The external numbers that enter a world at each instant.

    Attributes:
        targets: Name of a carried constraint → its slice: position, velocity,
            acceleration of the target.
        efforts: Name of a force that is a function → its slice.
        alive: Name of a constraint that may go → the index of its 1 (or 0).
        size: How many numbers in all.
    """

    world: World
    layout: StateLayout
    targets: dict[str, slice]
    efforts: dict[str, slice]
    alive: dict[str, int]
    size: int

    @property
    def needs_state(self) -> bool:
        """Whether a function of the state must be asked once per step."""
        return any(
            isinstance(f, JointMotor) and callable(f.effort) for f in self._forces
        )

    @property
    def is_constant(self) -> bool:
        """Whether nothing changes with time."""
        return not (self.targets or self.efforts)

    @property
    def _forces(self) -> tuple[Force, ...]:
        return self.world.forces

    def at(self, t: float, held: np.ndarray | None = None) -> np.ndarray:
        """Return the signals at a time [s], efforts as held since the step began."""
        values = np.zeros(self.size)
        if held is not None:
            values[:] = held
        for relation in self.world.relations:
            if relation.name in self.targets:
                values[self.targets[relation.name]] = _carried(relation, t)
        return values

    def sampled(
        self, t: float, state: np.ndarray, broken: Collection[str] = ()
    ) -> np.ndarray:
        """Ask every function for its effort at the start of a step."""
        values = np.zeros(self.size)
        for name, index in self.alive.items():
            values[index] = name not in broken
        for force in self._forces:
            if force.name in self.efforts:
                values[self.efforts[force.name]] = self._effort(force, t, state)
        return values

    def _effort(self, force: Force, t: float, state: np.ndarray) -> np.ndarray:
        if isinstance(force, JointMotor):
            body = self.world.body(force.body)
            assert isinstance(body, ArticulatedBody)
            # The joints come last, after a base that floats.
            q = state[self.layout.positions[force.body]][-body.arm.dof :]
            qd = state[self.layout.velocities[force.body]][-body.arm.dof :]
            value = np.asarray(_function(force.effort)(t, q, qd), dtype=float)
        elif isinstance(force, PointForce):
            value = np.asarray(_function(force.force)(t), dtype=float)
        else:
            assert isinstance(force, Torque)
            value = np.asarray(_function(force.effort)(t), dtype=float)
        if not np.all(np.isfinite(value)):
            raise ArgumentError(
                f"The effort of {force.name!r} at t = {t:.6g} s is {value}: "
                "it must be finite."
            )
        return value


def signals_of(
    world: World, layout: StateLayout, releasable: Collection[str] = ()
) -> WorldSignals:
    """List the external signals of a world."""
    index = 0
    targets: dict[str, slice] = {}
    for relation in world.relations:
        if relation.is_moving:
            # Position, velocity and acceleration of three coordinates.
            targets[relation.name] = slice(index, index + 9)
            index += 9
    efforts: dict[str, slice] = {}
    for force in world.forces:
        size = _effort_size(force)
        if size:
            efforts[force.name] = slice(index, index + size)
            index += size
    mortal = [
        relation.name
        for relation in world.relations
        # Only these can go: the others need no factor in the traced equations.
        if np.isfinite(relation.max_deviation) or relation.name in releasable
    ]
    alive = {name: index + k for k, name in enumerate(mortal)}
    return WorldSignals(world, layout, targets, efforts, alive, index + len(mortal))


def _effort_size(force: Force) -> int:
    if isinstance(force, JointMotor | Torque):
        return int(callable(force.effort))
    return 3 if isinstance(force, PointForce) and callable(force.force) else 0


def _carried(relation: Relation, t: float) -> np.ndarray:
    assert isinstance(relation.target, Motion)
    return np.concatenate(relation.target.sample(t))


def _function(effort: object) -> Callable[..., object]:
    assert callable(effort)
    return effort
