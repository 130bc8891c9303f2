"""Keep an eye on a simulation: what breaks, what is hopeless, what blows up."""

from __future__ import annotations

import numpy as np

from armwise.worlds.diagnosis import unsatisfied
from armwise.worlds.engine import Engine
from armwise.worlds.events import Happening
from armwise.worlds.methods import ForceSolution
from armwise.worlds.snapshot import Snapshot

_PATIENCE = 50.0
"""An equation that stays unsolved for this many times 1/λ is a contradiction."""

_WRONG_ENERGY = 0.5
"""Largest part of the energy in play that may have come from nowhere."""


class Watch:
    """Looks at the steps that the compiled loop would not take.

    Args:
        engine: The world.
        step: The step in [s], for messages.
        state: The state at the start.
    """

    def __init__(self, engine: Engine, step: float, state: np.ndarray) -> None:
        self.engine, self.step = engine, step
        self.trouble: str | None = None
        self._unsolved_since: float | None = None
        self._first, self._height, _ = self._energies(state)
        self._most = 0.0

    def is_solved(self) -> None:
        """Forget about equations that could not be solved for a while."""
        self._unsolved_since = None

    def look(
        self, t: float, state: np.ndarray
    ) -> tuple[ForceSolution | None, list[Happening]]:
        """Solve with care unless all is well; break what must.

        Returns:
            The forces, if they needed care, and what broke.
        """
        engine = self.engine
        engine.held = None
        if len(engine.broken) == len(engine.bounds):
            return None, []
        signal = engine.signal(t, state)
        if engine.is_well(state, signal):
            self.is_solved()
            return None, []
        with np.errstate(over="ignore", invalid="ignore"):
            _, found, solution = engine.careful_rates(state, signal)
            assert solution is not None
            happened = self._break(t, found, solution)
            self._notice_hopeless(t, found, solution)
        return solution, happened

    def _break(
        self, t: float, found: Snapshot, solution: ForceSolution
    ) -> list[Happening]:
        """Remove constraints whose deviation has passed its bound."""
        engine, happened = self.engine, []
        for relation in engine.world.relations:
            gap = found.deviation[0, engine.layout.rows[relation.name]]
            size = float(np.linalg.norm(gap))
            if relation.name in engine.broken or size <= relation.max_deviation:
                continue
            engine.remove(relation.name)
            cause = f"its deviation {size:.4g} passed {relation.max_deviation:g} m"
            if relation.name in solution.at_bound:
                cause += f" with its force at the bound of {relation.max_force:g} N"
            happened.append(Happening(t, "broken", relation.name, cause))
        return happened

    def _notice_hopeless(
        self, t: float, found: Snapshot, solution: ForceSolution
    ) -> None:
        """Call an equation that stays unsolved, though no force is bounded, trouble."""
        engine, force = self.engine, solution.force
        solved = engine.is_satisfied(found, 0, force)
        if solved or solution.at_bound or not engine.method.is_exact:
            self.is_solved()
            return
        if self._unsolved_since is None:
            self._unsolved_since = t
        slowest = min(r.frequency for r in engine.world.relations)
        if t - self._unsolved_since > _PATIENCE / slowest:
            rest = engine.residual(found, 0, force)
            self.trouble = unsatisfied(engine, rest, found.deviation[0])

    def energy_trouble(self, state: np.ndarray) -> str | None:
        """Say so when much of the energy in play came from nowhere."""
        total, height, moving = self._energies(state)
        self._most = max(self._most, moving + abs(height - self._height))
        work = float(state[self.engine.layout.works].sum())
        gap = abs(total - self._first - work)
        if gap <= _WRONG_ENERGY * self._most + 1e-6:
            return None
        return (
            f"the energy ledger no longer closes: {gap:.3g} J of {self._most:.3g} J "
            f"came from the steps, not from forces. The step {self.step:g} s is too "
            "large: use a smaller one, CashKarp, or lower frequencies, stiffnesses "
            "and force bounds"
        )

    def _energies(self, state: np.ndarray) -> tuple[float, float, float]:
        """Return all energy, gravitational energy, and kinetic and stored energy."""
        kinetic, gravitational, stored = self.engine.energies(state[None])
        height, moving = float(gravitational.sum()), float(kinetic.sum() + stored.sum())
        return height + moving, height, moving
