"""Simulation of worlds: compiled blocks of steps, careful single steps, monitoring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

from armwise.errors import ArgumentError, WorldError
from armwise.plants import (
    CashKarp,
    Integrator,
    RungeKutta4,
    SemiImplicit,
    explicit_step,
    step_error,
    unsupported_integrator,
)
from armwise.programs import Backend
from armwise.worlds.diagnosis import check_step, contradiction, unsatisfied
from armwise.worlds.engine import Snapshot, WorldEngine
from armwise.worlds.layout import StateLayout
from armwise.worlds.methods import ForceMethod, ForceSolution, SingularValueDropping
from armwise.worlds.run import Event, Happening, Moment, Run, StepCount
from armwise.worlds.world import World

# Monitoring: constraints that break, contradictions, energy from nowhere.

_UNSOLVED_PERIODS = 50.0
"""An equation that stays unsolved for this many times 1/λ is a contradiction.

A deviation decays as (1 + λt)e^(−λt): after 50/λ nothing of a transient is left."""

_LARGEST_IMBALANCE = 0.5
"""Largest fraction of the energy in play that may come from the steps' own errors.

A run that is merely inaccurate stays far below; one that diverges passes it at once."""


class StepMonitor:
    """Looks at the steps that the compiled loop would not take.

    Args:
        engine: The world.
        step: The step in [s], for messages.
        state: The state at the start.
    """

    def __init__(self, engine: WorldEngine, step: float, state: np.ndarray) -> None:
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
        # Nothing is left to break or to contradict.
        if len(engine.broken) == len(engine.bounds):
            return None, []
        signal = engine.signal(t, state)
        if engine.is_well(state, signal):
            self.is_solved()
            return None, []
        with np.errstate(over="ignore", invalid="ignore"):
            _, snapshot, solution = engine.careful_rates(state, signal)
            assert solution is not None
            happened = self._break(t, snapshot, solution)
            self._notice_contradiction(t, snapshot, solution)
        return solution, happened

    def _break(
        self, t: float, snapshot: Snapshot, solution: ForceSolution
    ) -> list[Happening]:
        """Remove constraints whose deviation has passed its bound."""
        engine, happened = self.engine, []
        for relation in engine.world.relations:
            gap = snapshot.deviation[0, engine.layout.rows[relation.name]]
            size = float(np.linalg.norm(gap))
            if relation.name in engine.broken or size <= relation.max_deviation:
                continue
            engine.remove(relation.name)
            cause = f"its deviation {size:.4g} passed {relation.max_deviation:g} m"
            if relation.name in solution.at_bound:
                cause += f" with its force at the bound of {relation.max_force:g} N"
            happened.append(Happening(t, "broken", relation.name, cause))
        return happened

    def _notice_contradiction(
        self, t: float, snapshot: Snapshot, solution: ForceSolution
    ) -> None:
        """Call an equation that stays unsolved, though no force is bounded, trouble."""
        engine, force = self.engine, solution.force
        solved = engine.is_satisfied(snapshot, 0, force)
        if solved or solution.at_bound or not engine.method.is_exact:
            self.is_solved()
            return
        if self._unsolved_since is None:
            self._unsolved_since = t
        # By the slowest constraint, whose transient lasts longest.
        slowest = min(r.frequency for r in engine.world.relations)
        if t - self._unsolved_since > _UNSOLVED_PERIODS / slowest:
            residual = engine.residual(snapshot, 0, force)
            self.trouble = unsatisfied(engine, residual, snapshot.deviation[0])

    def energy_trouble(self, state: np.ndarray) -> str | None:
        """Say so when much of the energy in play came from nowhere."""
        total, height, moving = self._energies(state)
        self._most = max(self._most, moving + abs(height - self._height))
        work = float(state[self.engine.layout.works].sum())
        gap = abs(total - self._first - work)
        # A microjoule lets worlds at rest, whose energy in play is zero, pass.
        if gap <= _LARGEST_IMBALANCE * self._most + 1e-6:
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


# Runner: blocks of steps in C, careful single steps, events.

# Judgement: looks at the energy must stay cheap beside the steps between them.
_BLOCK = 4096
"""Steps of the compiled loop between looks at the energy."""

# Judgement: single steps are slow already, and trouble is likelier here.
_LOOK = 16
"""Single steps between looks at the energy."""


class Runner:
    """The state of a simulation under way."""

    def __init__(
        self,
        engine: WorldEngine,
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
        self.recorded: list[np.ndarray] = [self.state[None].copy()]
        self.times: list[np.ndarray] = [np.zeros(1)]
        self.log: list[Happening] = [
            Happening(0.0, "note", body.name, "it is Python: NumPy takes every step")
            for body in engine.world.bodies
            if not body.is_traced
        ]
        self.fast = self.careful = self.rejected = self.unlooked = 0
        self.adapted = step
        self.monitor = StepMonitor(engine, step, self.state)
        self.crossings = [event.function(self._moment()) for event in events]

    def go(self, progress: Callable[[float], None]) -> Run:
        """Take all steps."""
        self._stop_if(contradiction(self.engine.world))
        while self.index < self.count:
            done = self._leap() or self._stride()
            if done == "all" or self.unlooked >= _LOOK:
                self.unlooked = 0
                self._stop_if(self.monitor.energy_trouble(self.state))
            progress(self.index / self.count)
            if done == "final":
                break
        return self.run()

    def run(self) -> Run:
        """Return what happened so far."""
        time = np.concatenate(self.times)
        states = np.concatenate(self.recorded)
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
        # Adaptive steps need the error after each, and events a look at each state:
        # neither can run ahead in a block.
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
        if len(taken.states):
            self.recorded.append(taken.states)
            indices = np.arange(first, first + len(taken.states))
            self.times.append(indices * (self.every * self.step))
        self.index += taken.taken
        self.fast += taken.taken
        self.unlooked += taken.taken
        self.t = self.index * self.step
        if taken.taken:
            self.monitor.is_solved()
        if taken.taken < steps:
            self.block = 1  # trouble seldom comes alone: start small again
            return ""
        # Doubling back up: a quiet stretch soon runs in full blocks again.
        self.block = min(2 * self.block, _BLOCK)
        return "step" if single else "all"

    def _block_signals(self, steps: int) -> np.ndarray:
        """Return the signals of every stage of every step, or one row if constant."""
        signals, tableau = self.engine.signals, self.integrator.tableau
        if signals.is_constant:
            return self.engine.signal(self.t, self.state)[None]
        nodes = (0.0,) if tableau is None else tableau.nodes
        rows = []
        for i in range(self.index, self.index + steps):
            held = signals.sampled(i * self.step, self.state, self.engine.broken)
            rows += [signals.at((i + node) * self.step, held) for node in nodes]
        return np.ascontiguousarray(rows)

    def _stride(self) -> str:
        """Take one step with care, to the next multiple of the step."""
        end = (self.index + 1) * self.step
        # Substeps add up with rounding: a remainder of 1e-12 steps is none.
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
                ratio = 1e6  # a step into the absurd: retry with a far smaller one
            if ratio <= 1.0:
                self._accept(new, h)
                # Errors grow with h⁵ (taken as h⁴ after a failure); 0.9 leaves a
                # margin, 5 and 0.1 keep the step from jumping.
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
            tableau = self.integrator.tableau
            if tableau is None:
                new = semi_implicit_step(rates, self.state, h, self.engine.layout)
                return new, np.zeros_like(new)
            new, slopes = explicit_step(tableau, rates, self.state, h)
            return new, step_error(tableau, slopes, h)

    def _attempt(
        self, h: float, held: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Try a step of CashKarp's in C."""
        engine, integrator = self.engine, self.integrator
        if not isinstance(integrator, CashKarp):
            return None
        if not engine.is_fast or engine.held is not None:
            return None
        nodes = integrator.tableau.nodes
        rows = np.array([engine.signals.at(self.t + c * h, held) for c in nodes])
        return engine.loop.attempt(self.state, h, rows, integrator.tableau)

    def _accept(self, new: np.ndarray, h: float) -> None:
        if not np.all(np.isfinite(new)):
            raise self._failure(_not_finite(self))
        # Integration drifts off the unit sphere by the method's error; scaling is the
        # shortest way back and does not turn the body.
        for start in self.engine.layout.quaternions:
            new[start : start + 4] /= np.linalg.norm(new[start : start + 4])
        self.state, self.t = new, self.t + h
        self.careful += 1
        self.unlooked += 1

    def _look_closer(self) -> None:
        """Where the fast path does not hold: break what must, hold what was chosen."""
        solution, happened = self.monitor.look(self.t, self.state)
        self.log += happened
        self._stop_if(self.monitor.trouble)
        is_adaptive = isinstance(self.integrator, CashKarp)
        # Within one adaptive step the number of dropped singular values stays: a choice
        # that flips between stages would look like an error and shrink the step.
        if is_adaptive and solution is not None:
            self.engine.held = solution.dropped

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
        # Fifty halvings reach 2⁻⁵⁰ of a step, near the rounding of the time itself.
        for _ in range(50):
            middle = 0.5 * (low + high)
            self.state, self.t = before, begin
            self._accept(self._try(middle)[0], middle)
            # Trial steps of the bisection are not steps of the run.
            self.careful -= 1
            if event.is_crossed(start, event.function(self._moment())):
                high, after = middle, self.state
            else:
                low = middle
            if high - low < 1e-12:  # a picosecond, well below any step
                break
        self.state, self.t = after, begin + high

    def _moment(self) -> Moment:
        return Moment(self.t, self.state, self.engine)

    def _keep(self) -> None:
        self.recorded.append(self.state[None].copy())
        self.times.append(np.array([self.t]))

    def _stop_if(self, trouble: str | None) -> None:
        if trouble is not None:
            raise self._failure(trouble)

    def _failure(self, why: str) -> WorldError:
        name = self.engine.world.name
        return WorldError(
            f"{name} stopped at t = {self.t:.6g} s (step {self.index}): {why}. "
            "The run up to there is kept.",
            self.run(),
        )


def _not_finite(runner: Runner) -> str:
    return (
        f"the next state is not finite. The step {runner.step:g} s is too large for "
        "the forces at work, or a force is not a number: use a smaller step, CashKarp, "
        "or bound the forces"
    )


def semi_implicit_step(
    rates: Callable[[np.ndarray, float], np.ndarray],
    state: np.ndarray,
    h: float,
    layout: StateLayout,
) -> np.ndarray:
    """Step velocities first, then positions with the new velocities.

    Work is booked at the mean of both velocities, so that the ledger balances to
    second order although the motion is of first.
    """
    first = rates(state, 0.0)
    new = state.copy()
    velocities = layout.velocity_slice
    new[velocities] += h * first[velocities]
    second = rates(new, 0.0)
    new[: velocities.start] += h * second[: velocities.start]
    accounts = slice(velocities.stop, None)
    new[accounts] += 0.5 * h * (first[accounts] + second[accounts])
    return new


# Entry point.

_INTEGRATORS = (RungeKutta4, CashKarp, SemiImplicit)

_LARGEST_RUN = 2 * 1024**3
"""Largest size of the recorded states in bytes: what a laptop has to spare."""


def simulate(
    world: World,
    duration: float,
    *,
    # Judgement: λh = 0.01 for the default frequency of 10, far inside stability.
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
        progress: Called with the fraction done now and then.

    Raises:
        ArgumentError: If the step or the duration make no sense.
        WorldError: If the world cannot go on; its `run` holds all up to there.
    """
    if integrator is None:
        integrator = RungeKutta4()
    if not isinstance(integrator, _INTEGRATORS):
        raise unsupported_integrator(integrator, _INTEGRATORS)
    check_step(world, integrator, step)
    if not (np.isfinite(duration / step) and duration > 0):
        raise ArgumentError(f"The duration must be positive in [s], not {duration!r}.")
    releasable = {name for event in events for name in event.releases}
    engine = WorldEngine(world, method or SingularValueDropping(), backend, releasable)
    # A duration that is a whole number of steps but for rounding takes no further one.
    count = ceil(duration / step - 1e-9)
    if (
        record_every < 1
        or count // record_every * engine.layout.size * 8 > _LARGEST_RUN
    ):
        raise ArgumentError(
            f"Keeping every {record_every}. of {count} states of {engine.layout.size} "
            "numbers is too much or too little: choose another record_every."
        )
    runner = Runner(engine, integrator, step, count, record_every, tuple(events))
    return runner.go(progress or (lambda fraction: None))
