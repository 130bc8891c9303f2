"""From a model to the cheapest program of each function.

Inertias in [kg m²] and torques in [N m] stay what they are when lengths are measured in
units of L metres and masses in units of 1/L² kilograms. So L is free: the upper arm's
length, or 9.81 m, which makes the acceleration of gravity one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armwise.arms import BASE
from armwise.codegen.functions import Function, input_sizes
from armwise.codegen.model import Model, moment_orders
from armwise.dynamics import Mechanism, Scalar, Segment, Skeleton, mul
from armwise.programs import Program, fewer_operations, operations, trace

# Units that save multiplications: a length that is one need not be multiplied by.

_EXACT = 1e-13
"""Scaled lengths this close to a whole number are that number."""


def unit_lengths(mechanism: Mechanism, bodies: Sequence[float] = ()) -> list[float]:
    """Return lengths in [m] worth trying as the unit, one metre first.

    Args:
        mechanism: The arm's geometry and gravity.
        bodies: Grouped parameters, if known: a first moment h becomes one for L = 1/h.
    """
    if not all(segment.is_revolute for segment in mechanism.skeleton.segments):
        return [1.0]  # a slide's own units are the user's
    found = [1.0]
    for segment in mechanism.skeleton.segments:
        numbers = segment.gravity if segment.parent == BASE else segment.position
        found += [abs(float(x)) for x in numbers if x]
    orders = moment_orders(mechanism)
    moments = [x for order, x in zip(orders, bodies, strict=False) if order == 1]
    found += [abs(1.0 / x) for x in moments if x]
    return list({f"{x:.12g}": x for x in reversed(found)}.values())[::-1]


def in_units(mechanism: Mechanism, length: float) -> Mechanism:
    """Return the mechanism with lengths in units of `length` [m]."""
    if length == 1.0:
        return mechanism
    segments = tuple(_scaled(s, length) for s in mechanism.skeleton.segments)
    made = replace(
        mechanism, skeleton=Skeleton(segments), key=f"{mechanism.key}/{length!r}"
    )
    vars(made)["grouping"] = (
        mechanism.grouping
    )  # which are merged: the same in any unit
    return made


def bodies_in_units(
    mechanism: Mechanism, bodies: Sequence[Scalar], length: float
) -> list[Scalar]:
    """Return grouped parameters in units of `length`: m L², h L and Σ as it is."""
    scales = (length**2, length, 1.0)
    return [
        mul(scales[order], value)
        for order, value in zip(moment_orders(mechanism), bodies, strict=True)
    ]


def _scaled(segment: Segment, length: float) -> Segment:
    return replace(
        segment,
        position=_rounded(segment.position / length),
        gravity=_rounded(segment.gravity / length),
    )


def _rounded(x: np.ndarray) -> np.ndarray:
    nearest = np.round(x)
    return np.where(np.abs(x - nearest) <= _EXACT * np.abs(x), nearest, x)


# From a model to the cheapest program of each function.

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
