"""Compiled steps of a world: traced rates in a C loop until one needs care.

The loop knows no physics. It takes steps with the program's rates until the work is
done or the program's health says that a step needs a closer look; that step is then
taken by the slower path, which can drop singular values, break things and explain.

Two ways to the rates. Few constraints: everything is traced, the solution of the
constraint equation included, and zeros cost nothing. Many: the equation is traced and
then solved by loops, since straight-line code that is too long for the processor's
cache grows faster than the number of its operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armwise.plants import Tableau
from armwise.programs import (
    SCALAR_PRELUDE,
    Program,
    c_function,
    compiled_library,
    core_source,
    fill,
)
from armwise.worlds.equations import REFINEMENTS, REGULARISATION, RESIDUAL
from armwise.worlds.layout import StateLayout, WorldSignals

_TEMPLATES = Path(__file__).parent / "templates"

_LARGE = 30_000
"""Programs of more steps than this are compiled with less effort."""


@dataclass(frozen=True, eq=False)
class Steps:
    """How far the loop came: steps taken, and the states to be recorded."""

    taken: int
    states: np.ndarray


class NativeLoop:
    """A world's rates compiled for one state at a time, and loops around them."""

    def __init__(self, program: Program, source: str, layout: StateLayout) -> None:
        flags = ("-O1",) if len(program.steps) > _LARGE else ()
        library, name = compiled_library(source, *flags), program.name
        self._size = layout.size
        start, record = "ldppl", "pll"
        self._rates = c_function(library, f"rates_{name}", "ppp")
        self._attempt = c_function(library, f"attempt_{name}", "dppllppppp")
        self._explicit = c_function(library, f"advance_{name}", f"{start}lpp{record}")
        self._semi_implicit = c_function(
            library, f"advance_softly_{name}", f"{start}{record}"
        )

    def rates(self, state: np.ndarray, signal: np.ndarray, out: np.ndarray) -> bool:
        """Fill the rate of the state; return whether all is well."""
        bad = self._rates(state.ctypes.data, signal.ctypes.data, out.ctypes.data)
        return not bad

    def attempt(
        self,
        state: np.ndarray,
        h: float,
        signal: np.ndarray,
        tableau: Tableau,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the state after one step and its error, or None if not all is well.

        Args:
            state: The state, unchanged.
            h: Step in [s].
            signal: One row per stage.
            tableau: Runge–Kutta coefficients with an error estimate.
        """
        a, b, errors = tableau.a, tableau.b, tableau.errors
        assert errors is not None
        new, error = np.empty(self._size), np.empty(self._size)
        bad = self._attempt(
            h, state.ctypes.data, signal.ctypes.data, signal.shape[1], len(b),
            a.ctypes.data, b.ctypes.data, errors.ctypes.data, new.ctypes.data,
            error.ctypes.data,
        )  # fmt: skip
        return None if bad else (new, error)

    def advance(
        self,
        state: np.ndarray,
        h: float,
        signal: np.ndarray,
        tableau: Tableau | None,
        steps: int,
        every: int = 1,
        phase: int = 0,
    ) -> Steps:
        """Take up to `steps` steps in place.

        Args:
            state: The state, changed in place to the last good one.
            h: Step in [s].
            signal: One row per stage of each step, or one row if nothing changes.
            tableau: Runge–Kutta coefficients; None for semi-implicit steps.
            steps: How many.
            every: Keep every so many-th state.
            phase: Steps taken since the last one that was kept.
        """
        states = np.empty(((phase + steps) // every, self._size))
        stride = signal.shape[1] if len(signal) > 1 else 0
        start = (steps, h, state.ctypes.data, signal.ctypes.data, stride)
        keep = (states.ctypes.data, every, phase)
        if tableau is None:
            taken = self._semi_implicit(*start, *keep)
        else:
            a, b = tableau.a.ctypes.data, tableau.b.ctypes.data
            stages = (len(tableau.b), a, b)
            taken = self._explicit(*start, *stages, *keep)
        return Steps(taken, states[: (phase + taken) // every])


class NativeFunction:
    """Calls a program on one sample; its outputs come back without a samples axis."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._size = sum(item.size for item in program.inputs)
        self._ends = np.cumsum([len(item.entries) for item in program.outputs])
        starts = self._ends - [len(item.entries) for item in program.outputs]
        indices = [
            int(start) + k
            for start, item in zip(starts, program.outputs, strict=True)
            for k in item.nonzero
        ]
        entry = fill(
            _TEMPLATES / "one_call.c.in",
            NAME=program.name,
            COUNT=len(indices),
            TARGETS=_list(indices),
        )
        # Called seldom: a quick compilation is worth more than quick code.
        text = "\n".join([SCALAR_PRELUDE, core_source(program), entry])
        library = compiled_library(text, "-O1")
        self._call = c_function(library, f"call_{program.name}", "pp")

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Return the outputs for one sample of every input."""
        x = np.concatenate(inputs)
        out = np.zeros(int(self._ends[-1]))
        self._call(x.ctypes.data, out.ctypes.data)
        parts = np.split(out, self._ends[:-1])
        outputs = self._program.outputs
        return [
            part.reshape(item.shape) for part, item in zip(parts, outputs, strict=True)
        ]


def traced_source(program: Program, layout: StateLayout) -> str:
    """Return the C text of rates that were traced whole, and the loops."""
    rate, health = program.outputs
    rates = fill(
        _TEMPLATES / "traced_rates.c.in",
        NAME=program.name,
        STATES=layout.size,
        SIGNALS=program.inputs[1].size,
        RATES=len(rate.nonzero),
        HEALTH=len(health.nonzero),
        TARGETS=_list(rate.nonzero),
    )
    return "\n".join(
        [SCALAR_PRELUDE, core_source(program), rates, _steps(program, layout)]
    )


def looped_source(program: Program, layout: StateLayout, signals: WorldSignals) -> str:
    """Return the C text of a traced equation with a solver, and the loops."""
    sizes = [len(item.entries) for item in program.outputs]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    indices = [
        start + k
        for start, item in zip(starts, program.outputs, strict=True)
        for k in item.nonzero
    ]
    span = layout.velocity_slice
    touched = _touched(layout, signals)
    rates = fill(
        _TEMPLATES / "solved_rates.c.in",
        NAME=program.name,
        STATES=layout.size,
        SIGNALS=program.inputs[1].size,
        VELOCITIES=span.stop,
        VELOCITIES_COUNT=span.stop - span.start,
        ROWS=layout.row_count,
        STORED=len(indices),
        TOTAL=sum(sizes),
        TARGETS=_list(indices),
        ALIVE=_list(_alive(layout, signals)),
        HELD=_list(_held(layout, signals)),
        PARTS=max(len(runs) for runs in touched),
        TOUCHED=_list(_touched_text(touched)),
        HELD_COUNT=len(layout.rows),
        REGULARISATION=repr(REGULARISATION),
        REFINEMENTS=REFINEMENTS,
        TOLERANCE=repr(RESIDUAL**2),
    )
    return "\n".join(
        [SCALAR_PRELUDE, core_source(program), rates, _steps(program, layout)]
    )


def _steps(program: Program, layout: StateLayout) -> str:
    return fill(
        _TEMPLATES / "steps.c.in",
        NAME=program.name,
        QUATERNIONS=_list(layout.quaternions),
        QUATERNION_COUNT=len(layout.quaternions),
        POSITIONS=layout.position_count,
        VELOCITIES=layout.velocity_slice.stop,
    )


def _alive(layout: StateLayout, signals: WorldSignals) -> list[int]:
    """Return, for each row, where the signals say whether it is still there."""
    return [
        signals.alive.get(name, -1)
        for name, rows in layout.rows.items()
        for _ in range(rows.start, rows.stop)
    ]


def _touched(layout: StateLayout, signals: WorldSignals) -> list[list[tuple[int, int]]]:
    """Return, for each row, the runs of velocities of the bodies it holds."""
    first = layout.velocity_slice.start
    runs = []
    for relation in signals.world.relations:
        bodies = dict.fromkeys(point.body for point in relation.points)
        parts = [layout.velocities[name] for name in bodies]
        spans = [(part.start - first, part.stop - first) for part in parts]
        runs += [spans] * relation.size
    return runs


def _touched_text(runs: list[list[tuple[int, int]]]) -> list[str]:
    """Write runs as C initialisers; those not given are empty."""
    return [
        "{" + ", ".join(f"{{{start}, {stop}}}" for start, stop in spans) + "}"
        for spans in runs
    ]


def _held(layout: StateLayout, signals: WorldSignals) -> list[str]:
    """Return the rows, accounts and bounds of every constraint as C initialisers."""
    lines = []
    for relation in signals.world.relations:
        rows = layout.rows[relation.name]
        carried = relation.is_moving or relation.is_velocity
        numbers = (
            rows.start,
            rows.stop,
            layout.account("constraint", relation.name),
            layout.account("stabilisation", relation.name),
            layout.account("carrier", relation.name) if carried else -1,
        )
        bounds = (relation.max_force, relation.max_deviation)
        # No bound: a number whose square is still finite.
        texts = ["1e150" if np.isinf(b) else repr(float(b)) for b in bounds]
        lines.append("{" + ", ".join([*map(str, numbers), *texts]) + "}")
    return lines


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "0"
