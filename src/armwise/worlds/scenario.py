"""Worlds as TOML files: what there is, and how long to run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from armwise.arms.toml import Table, read_toml
from armwise.errors import ArgumentError, ArmwiseError
from armwise.worlds.integrators import (
    CashKarp,
    Integrator,
    RungeKutta4,
    SemiImplicit,
)
from armwise.worlds.methods import (
    DampedLeastSquares,
    ForceMethod,
    Pseudoinverse,
    SingularValueDropping,
    Yielding,
)
from armwise.worlds.run import Run
from armwise.worlds.scenario_bodies import read_body
from armwise.worlds.scenario_constraints import read_constraint
from armwise.worlds.scenario_forces import read_force
from armwise.worlds.simulation import simulate
from armwise.worlds.world import EARTH, World

_Chosen = TypeVar("_Chosen")

INTEGRATORS: dict[str, type[Integrator]] = {
    "rk4": RungeKutta4,
    "cash-karp": CashKarp,
    "semi-implicit": SemiImplicit,
}
METHODS: dict[str, type[ForceMethod]] = {
    "singular-value-dropping": SingularValueDropping,
    "yielding": Yielding,
    "damped-least-squares": DampedLeastSquares,
    "pseudoinverse": Pseudoinverse,
}


@dataclass(frozen=True, eq=False)
class Scenario:
    """A world and how to run it.

    Attributes:
        world: The world.
        duration, step: In [s].
        integrator, method: How it is run.
        record_every: Keep every so many-th state.
    """

    world: World
    duration: float = 10.0
    step: float = 1e-3
    integrator: Integrator = field(default_factory=RungeKutta4)
    method: ForceMethod = field(default_factory=SingularValueDropping)
    record_every: int = 1

    def run(self) -> Run:
        """Simulate it."""
        return simulate(
            self.world,
            self.duration,
            step=self.step,
            integrator=self.integrator,
            method=self.method,
            record_every=self.record_every,
        )


def read_world(path: str | Path) -> Scenario:
    """Read a world and how to run it from a TOML file.

    Raises:
        ArmwiseError: If the file cannot be used; file, table and key are named.
    """
    file = Path(path)
    table = read_toml(file).only(
        "name", "gravity", "duration", "step", "integrator", "method",
        "record_every", "body", "constraint", "force",
    )  # fmt: skip
    try:
        bodies = tuple(read_body(row, file.parent) for row in table.tables("body"))
        world = World(
            bodies,
            tuple(read_constraint(row) for row in table.tables("constraint")),
            tuple(read_force(row) for row in table.tables("force")),
            table.vector("gravity", EARTH),  # type: ignore[arg-type]
            table.text("name", file.stem),
        )
    except ArmwiseError as problem:
        if str(file) in str(problem):
            raise
        raise ArgumentError(f"{file}: {problem}") from problem
    return Scenario(
        world,
        table.number("duration", 10.0),
        table.number("step", 1e-3),
        _choose(table, "integrator", "rk4", INTEGRATORS),
        _choose(table, "method", "singular-value-dropping", METHODS),
        int(table.number("record_every", 1)),
    )


def _choose(
    table: Table, key: str, default: str, known: dict[str, type[_Chosen]]
) -> _Chosen:
    name = table.text(key, default)
    if name not in known:
        raise table.error(f'has the unknown {key} "{name}". Known: {", ".join(known)}.')
    return known[name]()
