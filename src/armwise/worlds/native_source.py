"""C text of a world's rates and of the loops that take steps with them.

Two ways to the rates. Few constraints: everything is traced, the solution of the
constraint equation included, and zeros cost nothing. Many: the equation is traced and
then solved by loops, since straight-line code that is too long for the processor's
cache grows faster than the number of its operations.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from armwise.programs.c_source import SCALAR_PRELUDE, core_source
from armwise.programs.program import Program
from armwise.worlds.layout import Layout
from armwise.worlds.linear import REFINEMENTS, REGULARISATION
from armwise.worlds.native_text import LOOPED, STEPS, TRACED
from armwise.worlds.signals import Signals
from armwise.worlds.solution import RESIDUAL


def traced_source(program: Program, layout: Layout) -> str:
    """Return the C text of rates that were traced whole, and the loops."""
    rate, health = program.outputs
    rates = TRACED.format(
        name=program.name,
        states=layout.size,
        signals=program.inputs[1].size,
        rates=len(rate.nonzero),
        health=len(health.nonzero),
        places=_list(rate.nonzero),
    )
    return "\n".join(
        [SCALAR_PRELUDE, core_source(program), rates, _steps(program, layout)]
    )


def looped_source(program: Program, layout: Layout, signals: Signals) -> str:
    """Return the C text of a traced equation with a solver, and the loops."""
    sizes = [len(item.entries) for item in program.outputs]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    places = [
        start + k
        for start, item in zip(starts, program.outputs, strict=True)
        for k in item.nonzero
    ]
    span = layout.velocity_slice
    touched = _touched(layout, signals)
    rates = LOOPED.format(
        name=program.name,
        states=layout.size,
        signals=program.inputs[1].size,
        velocities=span.stop,
        velocities_count=span.stop - span.start,
        rows=layout.row_count,
        stored=len(places),
        total=sum(sizes),
        places=_list(places),
        alive=_list(_alive(layout, signals)),
        held=_list(_held(layout, signals)),
        parts=max(len(runs) for runs in touched),
        touched=_list(_touched_text(touched)),
        held_count=len(layout.rows),
        regularisation=repr(REGULARISATION),
        refinements=REFINEMENTS,
        tolerance=repr(RESIDUAL**2),
    )
    return "\n".join(
        [SCALAR_PRELUDE, core_source(program), rates, _steps(program, layout)]
    )


def _steps(program: Program, layout: Layout) -> str:
    return STEPS.format(
        name=program.name,
        quaternions=_list(layout.quaternions),
        quaternion_count=len(layout.quaternions),
        positions=layout.position_count,
        velocities=layout.velocity_slice.stop,
    )


def _alive(layout: Layout, signals: Signals) -> list[int]:
    """Return, for each row, where the signals say whether it is still there."""
    return [
        signals.alive.get(name, -1)
        for name, rows in layout.rows.items()
        for _ in range(rows.start, rows.stop)
    ]


def _touched(layout: Layout, signals: Signals) -> list[list[tuple[int, int]]]:
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


def _held(layout: Layout, signals: Signals) -> list[str]:
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
        texts = ["1e150" if np.isinf(b) else repr(float(b)) for b in bounds]
        lines.append("{" + ", ".join([*map(str, numbers), *texts]) + "}")
    return lines


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "0"
