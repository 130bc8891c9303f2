"""From a model to the cheapest program of each function."""

from __future__ import annotations

from armwise.codegen.functions import Function, input_sizes
from armwise.codegen.model import Model
from armwise.codegen.units import bodies_in_units, in_units, unit_lengths
from armwise.dynamics.vectors import Scalar
from armwise.programs import Program, trace
from armwise.programs.operations import fewer_operations, operations

LONGEST_REDUCED = 6000
"""Steps beyond which a program is left as it was traced: the search takes too long."""

UNITS_TRIED = 3
"""Of all units of length, how many are worked out to the end, for a short program."""

_EASY = 1500
"""Steps in all that may be searched: longer programs are started fewer times."""


def customise(
    model: Model, function: Function, tries: int = 8, seed: int = 0
) -> Program:
    """Trace a function for a model and save what operations can be saved.

    Args:
        model: The arm and which of its numbers are known.
        function: What to trace.
        tries: How hard to look: starts of the search for common terms.
        seed: Of its choices.
    """
    lengths = unit_lengths(model.mechanism, model.bodies) if function.bodies else [1.0]
    traced = [trace_function(model, function, length) for length in lengths]
    traced.sort(key=operations)
    steps = len(traced[0].steps)
    if steps > LONGEST_REDUCED:
        return traced[0]
    starts = max(1, min(tries, _EASY // max(1, steps)))
    chosen = traced[: UNITS_TRIED if starts > 1 else 1]
    found = [fewer_operations(program, starts, seed) for program in chosen]
    return min(found, key=operations)


def trace_function(model: Model, function: Function, length: float = 1.0) -> Program:
    """Trace a function with lengths in units of `length` [m]."""
    mechanism = in_units(model.mechanism, length)
    equation = function.equation(model, mechanism)

    def bound(**arguments: list[Scalar]) -> dict[str, object]:
        opened = [key for key in ("body", "drive", "load") if key in arguments]
        given: dict[str, list[Scalar]] = {k: arguments.pop(k) for k in opened}
        bodies, drives = model.bound(given)
        if function.bodies:
            arguments["bodies"] = bodies_in_units(mechanism, bodies, length)
        if function.drives:
            arguments["drives"] = drives
        return equation(**arguments)

    return trace(
        function.name,
        bound,
        input_sizes(function, model.arm.dof),
        model.open_sizes(function.bodies, function.drives),
    )
