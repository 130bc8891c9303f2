"""Run a world: the compiled loop while all is well, step by careful step else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

from armwise.errors import ArgumentError, WorldError
from armwise.programs.kernel import Backend
from armwise.worlds.diagnosis import check_step, contradiction, unsatisfied
from armwise.worlds.engine import Engine, Snapshot
from armwise.worlds.events import Event, Happening, Moment
from armwise.worlds.integrators import CashKarp, Integrator, require_integrator
from armwise.worlds.methods import (
    ForceMethod,
    ForceSolution,
    SingularValueDropping,
)
from armwise.worlds.run import Run, StepCount
from armwise.worlds.world import World

_BLOCK = 4096
"""Steps of the compiled loop between looks at the energy."""

_LOOK = 16
"""Single steps between looks at the energy."""

_PATIENCE = 50.0
"""An equation that stays unsolved for this many times 1/λ is a contradiction."""

_WRONG_ENERGY = 0.5
"""Largest part of the energy in play that may have come from nowhere."""

_LARGEST_RUN = 2 * 1024**3
"""Largest size of the kept states in bytes."""


def simulate(
    world: World,
    duration: float,
    *,
    step: float = 1e-3,
    integrator: object = None,
    method: ForceMethod | None = None,
    record_every: int = 1,
    events: Sequence[Event] = (),
    backend: Backend = "auto",
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Let a world run for a while.

    Args:
        world: What to run.
        duration: How long in [s].
        step: Step in [s]; for CashKarp the largest, at whose ends states are kept.
        integrator: How steps are taken; RungeKutta4 if not given.
        method: How constraint forces are found; SingularValueDropping if not given.
        record_every: Keep every so many-th state.
        events: Things to look for.
        backend: What runs traced programs.
        progress: Told the fraction done now and then.

    Raises:
        ArgumentError: If the step or the duration make no sense.
        WorldError: If the world cannot go on; its `run` holds all up to there.
    """
    chosen = require_integrator(integrator)
    check_step(world, chosen, step)
    if not (np.isfinite(duration) and duration > 0):
        raise ArgumentError(f"The duration must be positive in [s], not {duration!r}.")
    releasable = {name for event in events for name in event.releases}
    engine = Engine(world, method or SingularValueDropping(), backend, releasable)
    count = ceil(duration / step - 1e-9)
    if (
        record_every < 1
        or count // record_every * engine.layout.size * 8 > _LARGEST_RUN
    ):
        raise ArgumentError(
            f"Keeping every {record_every}. of {count} states of {engine.layout.size} "
            "numbers is too much or too little: choose another record_every."
        )
    runner = _Runner(engine, chosen, step, count, record_every, tuple(events))
    return runner.go(progress or (lambda fraction: None))


class _Runner:
    """The state of a simulation under way."""

    def __init__(
        self,
        engine: Engine,
        integrator: Integrator,
        step: float,
        count: int,
        every: int,
        events: tuple[Event, ...],
    ) -> None:
        self.engine, self.integrator, self.step = engine, integrator, step
        self.count, self.every, self.events = count, every, events
        self.index, self.block = 0, _BLOCK
        self.t = 0.0
        self.state = engine.start()
        self.kept: list[np.ndarray] = [self.state[None].copy()]
        self.times: list[np.ndarray] = [np.zeros(1)]
        self.log: list[Happening] = []
        self.fast = self.careful = self.rejected = self.unlooked = 0
        self.unsolved_since: float | None = None
        self.adapted = step
        self.energy = self._energy(self.state)
        self.most_energy = 0.0
        self.crossings = [event.function(self._moment()) for event in events]

    def go(self, progress: Callable[[float], None]) -> Run:
        """Take all steps."""
        if (trouble := contradiction(self.engine.world)) is not None:
            raise self._failure(trouble)
        while self.index < self.count:
            done = self._leap() or self._stride()
            if done == "all" or self.unlooked >= _LOOK:
                self._look_at_energy()
            progress(self.index / self.count)
            if done == "final":
                break
        return self.run()

    def run(self) -> Run:
        """Return what happened so far."""
        time = np.concatenate(self.times)
        states = np.concatenate(self.kept)
        signals = np.zeros((len(time), self.engine.signals.size))
        if not self.engine.signals.is_constant:
            for row, t, state in zip(signals, time, states, strict=True):
                row[:] = self.engine.signal(t, state)
        return Run(
            self.engine.world,
            time,
            states,
            tuple(self.log),
            StepCount(self.fast, self.careful, self.rejected),
            self.engine,
            signals,
        )

    def _leap(self) -> str:
        """Take as many steps as the compiled loop will; say whether it took all."""
        engine = self.engine
        if not engine.is_fast or isinstance(self.integrator, CashKarp) or self.events:
            return ""
        single = engine.signals.needs_state
        steps = 1 if single else min(self.block, self.count - self.index)
        signal = self._block_signals(steps)
        taken = engine.loop.advance(
            self.state,
            self.step,
            signal,
            self.integrator.tableau,
            steps,
            self.every,
            self.index % self.every,
        )
        first = self.index // self.every + 1
        if len(taken.kept):
            self.kept.append(taken.kept)
            places = np.arange(first, first + len(taken.kept))
            self.times.append(places * (self.every * self.step))
        self.index += taken.taken
        self.fast += taken.taken
        self.unlooked += taken.taken
        self.t = self.index * self.step
        if taken.taken:
            self.unsolved_since = None
        if taken.taken < steps:
            self.block = 1  # trouble seldom comes alone: start small again
            return ""
        self.block = min(2 * self.block, _BLOCK)
        return "step" if single else "all"

    def _block_signals(self, steps: int) -> np.ndarray:
        """Return the signals of every stage of every step, or one row if constant."""
        signals = self.engine.signals
        if signals.is_constant:
            return self.engine.signal(self.t, self.state)[None]
        rows = []
        for i in range(self.index, self.index + steps):
            held = signals.sampled(i * self.step, self.state, self.engine.broken)
            rows += [
                signals.at((i + node) * self.step, held)
                for node in self.integrator.nodes
            ]
        return np.ascontiguousarray(rows)

    def _stride(self) -> str:
        """Take one step with care, to the next multiple of the step."""
        end = (self.index + 1) * self.step
        while self.t < end - 1e-12 * self.step:
            self._look_closer()
            before, begin = self.state, self.t
            self._substep(min(end - self.t, self.adapted))
            final = self._look_for_events(before, begin)
            if final:
                self._keep()
                return "final"
        self.index += 1
        self.t = end
        if self.index % self.every == 0:
            self._keep()
        return "step"

    def _substep(self, h: float) -> None:
        """Move on by at most h, by less if the integrator finds that wise."""
        if not isinstance(self.integrator, CashKarp):
            self._accept(self._try(h)[0], h)
            return
        while True:
            new, error = self._try(h)
            size = np.abs(error) / (1.0 + np.abs(self.state))
            ratio = float(np.max(size)) / self.integrator.tolerance
            if not np.isfinite(ratio):
                ratio = 1e6
            if ratio <= 1.0:
                self._accept(new, h)
                grown = h * min(5.0, 0.9 * max(ratio, 1e-9) ** -0.2)
                self.adapted = min(
                    self.step, max(grown, self.adapted if h < self.adapted else 0.0)
                )
                return
            self.rejected += 1
            h *= max(0.1, 0.9 * ratio**-0.25)
            self.adapted = h
            if h < self.integrator.smallest:
                raise self._failure(
                    f"no step above {self.integrator.smallest:g} s keeps the error "
                    "within the tolerance. Raise the tolerance, bound the forces, or "
                    "look for a singular state"
                )

    def _try(self, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the state after h and its error, the present one unchanged."""
        signals = self.engine.signals
        held = signals.sampled(self.t, self.state, self.engine.broken)
        t = self.t
        if (quick := self._attempt(h, held)) is not None:
            return quick

        def rates(state: np.ndarray, node: float) -> np.ndarray:
            if not np.all(np.isfinite(state)):
                raise self._failure(_not_finite(self))
            return self.engine.rates(state, signals.at(t + node * h, held))

        with np.errstate(over="ignore", invalid="ignore"):
            return self.integrator.step(rates, self.state, h, self.engine.layout)

    def _attempt(
        self, h: float, held: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Try a step of CashKarp's in C."""
        engine, integrator = self.engine, self.integrator
        if not isinstance(integrator, CashKarp):
            return None
        if not engine.is_fast or engine.held is not None:
            return None
        nodes = integrator.nodes
        rows = np.array([engine.signals.at(self.t + c * h, held) for c in nodes])
        return engine.loop.attempt(
            self.state, h, rows, integrator.tableau, integrator.errors
        )

    def _accept(self, new: np.ndarray, h: float) -> None:
        if not np.all(np.isfinite(new)):
            raise self._failure(_not_finite(self))
        for place in self.engine.layout.quaternions:
            new[place : place + 4] /= np.linalg.norm(new[place : place + 4])
        self.state, self.t = new, self.t + h
        self.careful += 1
        self.unlooked += 1

    def _look_closer(self) -> None:
        """Where the fast path does not hold: break what must, hold what was chosen."""
        engine = self.engine
        engine.held = None
        if len(engine.broken) == len(engine.bounds):
            return
        signal = engine.signal(self.t, self.state)
        if engine.is_well(self.state, signal):
            self.unsolved_since = None
            return
        with np.errstate(over="ignore", invalid="ignore"):
            _, found, solution = engine.careful_rates(self.state, signal)
            assert solution is not None
            self._break(found, solution)
            self._notice_hopeless(found, solution)
        if isinstance(self.integrator, CashKarp):
            engine.held = solution.dropped

    def _break(self, found: Snapshot, solution: ForceSolution) -> None:
        """Remove constraints whose deviation has passed its bound."""
        engine = self.engine
        for relation in engine.world.relations:
            size = float(
                np.linalg.norm(found.deviation[0, engine.layout.rows[relation.name]])
            )
            if relation.name in engine.broken or size <= relation.max_deviation:
                continue
            engine.remove(relation.name)
            cause = f"its deviation {size:.4g} passed {relation.max_deviation:g} m"
            if relation.name in solution.at_bound:
                cause += f" with its force at the bound of {relation.max_force:g} N"
            self.log.append(Happening(self.t, "broken", relation.name, cause))

    def _notice_hopeless(self, found: Snapshot, solution: ForceSolution) -> None:
        engine = self.engine
        force = solution.force
        solved = engine.is_satisfied(found, 0, force)
        if solved or solution.at_bound or not engine.method.is_exact:
            self.unsolved_since = None
            return
        if self.unsolved_since is None:
            self.unsolved_since = self.t
        slowest = min(r.frequency for r in engine.world.relations)
        if self.t - self.unsolved_since > _PATIENCE / slowest:
            rest = engine.residual(found, 0, force)
            raise self._failure(unsatisfied(engine, rest, found.deviation[0]))

    def _look_for_events(self, before: np.ndarray, begin: float) -> bool:
        """Find the first event of the last substep, go back to it and act."""
        values = [event.function(self._moment()) for event in self.events]
        for k, event in enumerate(self.events):
            if not event.is_crossed(self.crossings[k], values[k]):
                continue
            self._return_to(event, before, begin)
            values = [one.function(self._moment()) for one in self.events]
            self.log.append(Happening(self.t, "event", event.name, "it crossed zero"))
            for name in event.releases:
                if name not in self.engine.broken:
                    self.engine.remove(name)
                    cause = f"released by {event.name!r}"
                    self.log.append(Happening(self.t, "released", name, cause))
            # Past the event the function counts as being on its new side.
            values[k] = 0.0
            self.crossings = values
            return event.is_final
        self.crossings = values
        return False

    def _return_to(self, event: Event, before: np.ndarray, begin: float) -> None:
        """Halve the substep until the event's time is known."""
        low, high, after = 0.0, self.t - begin, self.state
        start = event.function(Moment(begin, before, self.engine))
        for _ in range(50):
            middle = 0.5 * (low + high)
            self.state, self.t = before, begin
            self._accept(self._try(middle)[0], middle)
            self.careful -= 1
            if event.is_crossed(start, event.function(self._moment())):
                high, after = middle, self.state
            else:
                low = middle
            if high - low < 1e-12:
                break
        self.state, self.t = after, begin + high

    def _look_at_energy(self) -> None:
        """Stop when much of the energy in play came from nowhere."""
        self.unlooked = 0
        energy, in_play = self._energy(self.state)
        self.most_energy = max(self.most_energy, in_play)
        work = float(self.state[self.engine.layout.works].sum())
        gap = abs(energy - self.energy[0] - work)
        if not gap <= _WRONG_ENERGY * self.most_energy + 1e-6:
            raise self._failure(
                f"the energy ledger no longer closes: {gap:.3g} J of "
                f"{self.most_energy:.3g} J came from the steps, not from forces. The "
                f"step {self.step:g} s is too large: use a smaller one, CashKarp, or "
                "lower frequencies, stiffnesses and force bounds"
            )

    def _energy(self, state: np.ndarray) -> tuple[float, float]:
        kinetic, gravitational, stored = self.engine.energies(state[None])
        total = kinetic.sum() + gravitational.sum() + stored.sum()
        if not hasattr(self, "energy"):
            self.height = float(gravitational.sum())
        lifted = abs(float(gravitational.sum()) - self.height)
        return float(total), float(kinetic.sum() + stored.sum()) + lifted

    def _moment(self) -> Moment:
        return Moment(self.t, self.state, self.engine)

    def _keep(self) -> None:
        self.kept.append(self.state[None].copy())
        self.times.append(np.array([self.t]))

    def _failure(self, why: str) -> WorldError:
        name = self.engine.world.name
        return WorldError(
            f"{name} stopped at t = {self.t:.6g} s (step {self.index}): {why}. "
            "The run up to there is kept.",
            self.run(),
        )


def _not_finite(runner: _Runner) -> str:
    return (
        f"the next state is not finite. The step {runner.step:g} s is too large for "
        "the forces at work, or a force is not a number: use a smaller step, CashKarp, "
        "or bound the forces"
    )
