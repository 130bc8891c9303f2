"""What changes with time from outside: carried targets and sampled efforts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from armwise.errors import ArgumentError
from armwise.motions import Motion
from armwise.worlds.constraints import Relation
from armwise.worlds.forces import Force, JointMotor, PointForce, Torque
from armwise.worlds.layout import Layout
from armwise.worlds.world import World


@dataclass(frozen=True, eq=False)
class Signals:
    """The numbers a world is told from outside at each instant.

    Attributes:
        targets: Name of a carried constraint → its slice: place, velocity,
            acceleration of the target.
        efforts: Name of a force that is a function → its slice.
        alive: Name of a constraint that may go → the place of its 1 (or 0).
        size: How many numbers in all.
    """

    world: World
    layout: Layout
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
        for name, place in self.alive.items():
            values[place] = name not in broken
        for force in self._forces:
            if force.name in self.efforts:
                values[self.efforts[force.name]] = self._effort(force, t, state)
        return values

    def _effort(self, force: Force, t: float, state: np.ndarray) -> np.ndarray:
        if isinstance(force, JointMotor):
            q = state[self.layout.positions[force.body]]
            qd = state[self.layout.velocities[force.body]]
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
    world: World, layout: Layout, releasable: Collection[str] = ()
) -> Signals:
    """List what a world must be told from outside."""
    place = 0
    targets: dict[str, slice] = {}
    for relation in world.relations:
        if relation.is_moving:
            targets[relation.name] = slice(place, place + 9)
            place += 9
    efforts: dict[str, slice] = {}
    for force in world.forces:
        size = _effort_size(force)
        if size:
            efforts[force.name] = slice(place, place + size)
            place += size
    mortal = [
        relation.name
        for relation in world.relations
        if np.isfinite(relation.max_deviation) or relation.name in releasable
    ]
    alive = {name: place + k for k, name in enumerate(mortal)}
    return Signals(world, layout, targets, efforts, alive, place + len(mortal))


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
