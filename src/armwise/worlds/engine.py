"""World engine: traced equations, compiled rates, and constraint forces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armwise.errors import ArgumentError
from armwise.programs import (
    Backend,
    Kernel,
    Number,
    Program,
    resolve_backend,
    trace,
)
from armwise.worlds.bodies import Point
from armwise.worlds.body_protocol import Array, Moving, check_powers, symbols
from armwise.worlds.constraints import nearest
from armwise.worlds.equations import (
    OUTPUTS,
    Equations,
    energies_of,
    equations_of,
    move_bodies,
    solved_rate,
)
from armwise.worlds.layout import (
    StateLayout,
    WorldSignals,
    layout_of,
    signals_of,
    starting_state,
)
from armwise.worlds.methods import Bound, ForceMethod, ForceSolution
from armwise.worlds.native import (
    NativeFunction,
    NativeLoop,
    looped_source,
    traced_source,
)
from armwise.worlds.world import World


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The constraint equation at some states, samples first.

    Attributes:
        rate: Rate of the state without constraint forces.
        response: U = M⁻¹Jᵀ.
        matrix, free, pull: A, β and 2λḊ + λ²D.
        deviation: D.
        error, carrier: Velocities that do the work of violation, and of the target.
    """

    rate: np.ndarray
    response: np.ndarray
    matrix: np.ndarray
    free: np.ndarray
    pull: np.ndarray
    deviation: np.ndarray
    error: np.ndarray
    carrier: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: list[np.ndarray]) -> Snapshot:
        """Form A = J U from what the traced equation gives."""
        rate, response, jacobian, *others = outputs
        return cls(rate, response, jacobian @ response, *others)


class CalledWorld:
    """Calls a function for each sample: the kernel of what cannot be traced."""

    def __init__(self, function: Callable[..., Mapping[str, object]]) -> None:
        self._function = function

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return every output, samples first."""
        rows = [self._function(*row) for row in zip(*inputs, strict=True)]
        return [
            np.stack([np.asarray(row[name], dtype=float) for row in rows])
            for name in rows[0]
        ]


# Tracing.


class TracedWorld:
    """The functions of a world's state, each traced when first asked for.

    Where a body of the user's own cannot be traced, they are called as they are.
    """

    def __init__(
        self, world: World, layout: StateLayout, signals: WorldSignals
    ) -> None:
        self.world, self.layout, self.signals = world, layout, signals
        self.is_traced = all(body.is_traced for body in world.bodies)

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
            terms = self._equations(state, signal)
            return {name: values.tolist() for name, values in terms.items()}

        return trace("world_equations", equations, self._inputs)

    def equation_kernel(self) -> Kernel | CalledWorld:
        """The constraint equation for many states: NumPy is fast enough for that."""
        if not self.is_traced:
            return CalledWorld(self._equations)
        return Kernel(self.equations, "numpy")

    def energy_kernel(self) -> Kernel | CalledWorld:
        """Kinetic and gravitational energy by body, stored by force and body."""

        def energies(state: list[Number]) -> dict[str, object]:
            return dict(energies_of(self.world, self.layout, symbols(state)))

        return self._kernel("world_energies", energies)

    def position_kernel(self, points: tuple[Point, ...]) -> Kernel | CalledWorld:
        """Positions of points in the world."""

        def positions(state: list[Number]) -> dict[str, object]:
            moving = move_bodies(self.world, self.layout, symbols(state))
            rows = [moving[p.body].point(p).position.tolist() for p in points]
            return {"positions": rows}

        return self._kernel("world_positions", positions)

    def _kernel(
        self, name: str, function: Callable[[list[Number]], dict[str, object]]
    ) -> Kernel | CalledWorld:
        """Return a function of the state as a kernel."""
        if not self.is_traced:
            return CalledWorld(function)
        return Kernel(trace(name, function, {"state": self.layout.size}), "numpy")

    def _equations(self, state: list[Number], signal: list[Number]) -> dict[str, Array]:
        _, terms = self._write_down(state, signal)
        return {name: getattr(terms, name) for name in OUTPUTS}

    @property
    def _inputs(self) -> dict[str, int]:
        return {"state": self.layout.size, "signal": self.signals.size}

    def _write_down(
        self, state: list[Number], signal: list[Number]
    ) -> tuple[dict[str, Moving], Equations]:
        """Write the equations at a symbolic state."""
        x, s = symbols(state), symbols(signal)
        moving = move_bodies(self.world, self.layout, x)
        terms = equations_of(self.world, self.layout, self.signals, moving, x, s)
        return moving, terms


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


# Engine.

# Judgement; a traced elimination grows with up to the cube of the rows.
MOST_TRACED = 300
"""Entries of A that are not zero up to which the solution is traced as well: beyond,
the straight-line code no longer fits the processor's instruction cache."""


_SATISFIED = 1e-4
"""Residual, relative to the right side, below which an equation counts as solved.

Far above the cut-off of singular values, whose residual is accepted."""


def _backend_for(world: World, backend: Backend) -> Backend:
    """Return what runs the steps: NumPy where a body cannot be traced."""
    own = [body.name for body in world.bodies if not body.is_traced]
    if not own:
        return resolve_backend(backend)
    if backend not in ("auto", "numpy"):
        raise ArgumentError(
            f"The body {own[0]!r} is Python and cannot be compiled: leave the backend "
            "out, or write the body over traced scalars and set is_traced."
        )
    return "numpy"


class WorldEngine:
    """Finds the rate of a world's state.

    Args:
        world: The world.
        method: How constraint forces are found where the fast path does not hold.
        backend: What runs traced programs.
        releasable: Constraints that events may take away.
    """

    def __init__(
        self,
        world: World,
        method: ForceMethod,
        backend: Backend = "auto",
        releasable: Collection[str] = (),
    ) -> None:
        self.world = world
        self.method = method
        self.backend = _backend_for(world, backend)
        self.layout: StateLayout = layout_of(world)
        self.signals: WorldSignals = signals_of(world, self.layout, releasable)
        self.broken: set[str] = set()
        self.held: int | None = None
        self.traced = TracedWorld(world, self.layout, self.signals)
        self._position_kernels: dict[tuple[Point, ...], Kernel | CalledWorld] = {}
        self.whole = (np.arange(self.layout.row_count), self.bounds)

    @property
    def is_fast(self) -> bool:
        """Whether the compiled loop may run."""
        return (
            self.backend == "c"
            and self.broken <= self.signals.alive.keys()
            # The loop solves for the smallest exact forces; other methods must be
            # asked.
            and (self.method.is_exact or not self.layout.rows)
        )

    @cached_property
    def loop(self) -> NativeLoop:
        """The compiled loop."""
        # Traced whole, the solver's zeros vanish; beyond, a loop over rows is faster.
        if coupled_entries(self.world) <= MOST_TRACED:
            program = self.traced.rates
            source = traced_source(program, self.layout)
        else:
            program = self.traced.equations
            source = looped_source(program, self.layout, self.signals)
        return NativeLoop(program, source, self.layout)

    @cached_property
    def _one(self) -> NativeFunction:
        """The constraint equation for a state at a time."""
        return NativeFunction(self.traced.equations)

    @cached_property
    def _many(self) -> Kernel | CalledWorld:
        return self.traced.equation_kernel()

    @cached_property
    def _energies(self) -> Kernel | CalledWorld:
        return self.traced.energy_kernel()

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The rows and the largest force of every constraint."""
        return tuple(
            Bound(relation.name, self.layout.rows[relation.name], relation.max_force)
            for relation in self.world.relations
        )

    def start(self) -> np.ndarray:
        """Return the state at the start, each bead at its nearest position."""
        state = starting_state(self.world, self.layout)
        self._check_own_bodies(state)
        for relation in self.world.relations:
            if relation.curve is not None:
                position = self.positions(state[None], relation.points)[0, 0]
                where = nearest(relation.curve, position)
                state[self.layout.curves[relation.name]] = where
        return state

    def _check_own_bodies(self, state: np.ndarray) -> None:
        """Ask bodies that are not ours whether they agree with themselves."""
        if self.traced.is_traced:
            return
        # At velocities that cancel nowhere: at rest every power is zero.
        trial = state.copy()
        span = self.layout.velocity_slice
        trial[span] = np.cos(np.arange(span.stop - span.start) + 1.0)
        moving = move_bodies(self.world, self.layout, symbols(trial))
        points = {p: None for r in self.world.relations for p in r.points}
        for body in self.world.bodies:
            for point in points:
                if point.body == body.name and not body.is_traced:
                    velocity = trial[self.layout.velocities[body.name]]
                    check_powers(body.name, moving[body.name], velocity, point)

    def positions(self, states: np.ndarray, points: Sequence[Point]) -> np.ndarray:
        """Return where points are in the world at some states: (samples, points, 3)."""
        # Tracing costs more than evaluating: drawings ask for the same points again.
        key = tuple(points)
        if key not in self._position_kernels:
            self._position_kernels[key] = self.traced.position_kernel(key)
        return self._position_kernels[key]([np.ascontiguousarray(states)])[0]

    def signal(self, t: float, state: np.ndarray) -> np.ndarray:
        """Return the external signals of the world at a time [s] and state."""
        return self.signals.at(t, self.signals.sampled(t, state, self.broken))

    def snapshot(self, states: np.ndarray, signals: np.ndarray) -> Snapshot:
        """Evaluate the constraint equation at some states."""
        # One state at a time is called from the steps: compiled, without a samples
        # axis.
        if len(states) > 1 or self.backend != "c":
            return Snapshot.from_outputs(self._many([states, signals]))
        outputs = self._one(states[0], signals[0])
        return Snapshot.from_outputs([value[None] for value in outputs])

    def energies(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return kinetic and gravitational energy by body, stored by force and body."""
        kinetic, gravitational, stored = self._energies([np.ascontiguousarray(states)])
        return kinetic, gravitational, stored

    def rates(self, state: np.ndarray, signal: np.ndarray) -> np.ndarray:
        """Return the rate of the state, by the fast path if that holds."""
        if self.is_fast and self.held is None:
            rate = np.empty(self.layout.size)
            if self.loop.rates(np.ascontiguousarray(state), signal, rate):
                return rate
        return self.careful_rates(state, signal)[0]

    def is_well(self, state: np.ndarray, signal: np.ndarray) -> bool:
        """Whether the fast path holds at a state."""
        rate = np.empty(self.layout.size)
        return self.is_fast and self.loop.rates(state, signal, rate)

    def careful_rates(
        self, state: np.ndarray, signal: np.ndarray
    ) -> tuple[np.ndarray, Snapshot, ForceSolution | None]:
        """Return the rate with the method's forces, and how they came about."""
        snapshot = self.snapshot(state[None], signal[None])
        rate = snapshot.rate[0]
        if not self.layout.rows:
            return rate, snapshot, None
        solution = self.forces(snapshot, 0)
        force = solution.force
        rate[self.layout.velocity_slice] += snapshot.response[0] @ force
        error, carrier = snapshot.error[0], snapshot.carrier[0]
        for accounts, rows, power in (
            (self._ideal, self._starts, solution.ideal * error),
            (self._stabilising, self._starts, solution.stabilising * error),
            (self._carriers, None, force * carrier),
        ):
            if rows is not None:
                # Rows of a constraint are consecutive: sums between starts, all at
                # once.
                rate[accounts] = np.add.reduceat(power, rows)
            else:
                for account, part in accounts:
                    rate[account] = power[part].sum()
        return rate, snapshot, solution

    def forces(self, snapshot: Snapshot, k: int) -> ForceSolution:
        """Return the constraint forces at sample k, zero where broken."""
        A, free, pull = snapshot.matrix[k], snapshot.free[k], snapshot.pull[k]
        if not self.broken:
            return self.method.solve(A, free, pull, self.bounds, self.held)
        keep, bounds = self.whole
        if not len(keep):
            nothing = np.zeros(len(free))
            return ForceSolution(nothing, nothing, np.zeros(0), 0)
        part = self.method.solve(
            A[np.ix_(keep, keep)], free[keep], pull[keep], bounds, self.held
        )
        ideal, stabilising = np.zeros(len(free)), np.zeros(len(free))
        ideal[keep], stabilising[keep] = part.ideal, part.stabilising
        return ForceSolution(
            ideal, stabilising, part.singular_values, part.dropped, part.at_bound
        )

    def residual(self, snapshot: Snapshot, k: int, force: np.ndarray) -> np.ndarray:
        """Return A F + β + pull at sample k in [m/s²], zero where broken."""
        residual = snapshot.matrix[k] @ force + snapshot.free[k] + snapshot.pull[k]
        for name in self.broken:
            residual[self.layout.rows[name]] = 0.0
        return np.asarray(residual)

    def is_satisfied(self, snapshot: Snapshot, k: int, force: np.ndarray) -> bool:
        """Whether the forces solve the constraint equation."""
        right = snapshot.free[k] + snapshot.pull[k]
        residual = self.residual(snapshot, k, force)
        # +1 (m/s²)²: near rest the right side vanishes, and a relative test with it.
        return bool(residual @ residual <= _SATISFIED**2 * (right @ right + 1.0))

    def remove(self, name: str) -> None:
        """Take a constraint out of the equation."""
        self.broken.add(name)
        remaining: list[int] = []
        bounds: list[Bound] = []
        for bound in self.bounds:
            if bound.name not in self.broken:
                size = bound.rows.stop - bound.rows.start
                bounds.append(
                    Bound(
                        bound.name,
                        slice(len(remaining), len(remaining) + size),
                        bound.max_force,
                    )
                )
                remaining += range(bound.rows.start, bound.rows.stop)
        self.whole = (np.array(remaining, dtype=np.intp), tuple(bounds))

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.array([bound.rows.start for bound in self.bounds])

    @cached_property
    def _ideal(self) -> np.ndarray:
        return self._accounts("constraint")

    @cached_property
    def _stabilising(self) -> np.ndarray:
        return self._accounts("stabilisation")

    def _accounts(self, kind: str) -> np.ndarray:
        names = [relation.name for relation in self.world.relations]
        return np.array([self.layout.account(kind, name) for name in names])

    @cached_property
    def _carriers(self) -> list[tuple[int, slice]]:
        return [
            (self.layout.account("carrier", one.name), self.layout.rows[one.name])
            for one in self.world.relations
            if one.is_moving or one.is_velocity
        ]
