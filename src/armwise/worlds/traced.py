"""A world's equations, traced."""

from __future__ import annotations

from functools import cached_property

from armwise.programs.program import Program, trace
from armwise.programs.scalars import Number
from armwise.worlds.bodies import Point
from armwise.worlds.equations import (
    OUTPUTS,
    Equations,
    energies_of,
    equations_of,
    move_bodies,
)
from armwise.worlds.layout import Layout
from armwise.worlds.moving import Moving
from armwise.worlds.signals import Signals
from armwise.worlds.solution import solved_rate
from armwise.worlds.vectors import symbols
from armwise.worlds.world import World


class TracedWorld:
    """The programs of a world, each traced when first asked for."""

    def __init__(self, world: World, layout: Layout, signals: Signals) -> None:
        self.world, self.layout, self.signals = world, layout, signals

    @cached_property
    def rates(self) -> Program:
        """Rate of the state with constraint forces, and its health."""

        def rates(state: list[Number], signal: list[Number]) -> dict[str, object]:
            moving, equations = self._write_down(state, signal)
            alive = {name: signal[k] for name, k in self.signals.alive.items()}
            rate, health = solved_rate(
                self.world, self.layout, moving, equations, alive
            )
            return {"rate": rate.tolist(), "health": health}

        return trace("world_rates", rates, self._inputs)

    @cached_property
    def equations(self) -> Program:
        """The constraint equation at a state, unsolved."""

        def equations(state: list[Number], signal: list[Number]) -> dict[str, object]:
            _, found = self._write_down(state, signal)
            return {name: getattr(found, name).tolist() for name in OUTPUTS}

        return trace("world_equations", equations, self._inputs)

    @cached_property
    def energies(self) -> Program:
        """Kinetic and gravitational energy by body, stored by force."""

        def energies(state: list[Number]) -> dict[str, object]:
            return dict(energies_of(self.world, self.layout, symbols(state)))

        return trace("world_energies", energies, {"state": self.layout.size})

    def places(self, points: tuple[Point, ...]) -> Program:
        """Where points are in the world."""

        def places(state: list[Number]) -> dict[str, object]:
            moving = move_bodies(self.world, self.layout, symbols(state))
            found = [moving[p.body].point(p).position.tolist() for p in points]
            return {"places": found}

        return trace("world_places", places, {"state": self.layout.size})

    @property
    def _inputs(self) -> dict[str, int]:
        return {"state": self.layout.size, "signal": self.signals.size}

    def _write_down(
        self, state: list[Number], signal: list[Number]
    ) -> tuple[dict[str, Moving], Equations]:
        """Write the equations at a symbolic state."""
        x, s = symbols(state), symbols(signal)
        moving = move_bodies(self.world, self.layout, x)
        found = equations_of(self.world, self.layout, self.signals, moving, x, s)
        return moving, found


def coupled_entries(world: World) -> int:
    """Count the entries of A that are not zero: rows whose constraints share a body."""
    bodies = [{point.body for point in r.points} for r in world.relations]
    sizes = [relation.size for relation in world.relations]
    return sum(
        m * n
        for one, m in zip(bodies, sizes, strict=True)
        for other, n in zip(bodies, sizes, strict=True)
        if one & other
    )
