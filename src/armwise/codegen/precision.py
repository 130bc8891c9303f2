"""How precise generated code is: bounded by analysis, and measured.

Every operation adds half a unit in the last place of its result to the errors it was
given (Higham 2002, §3.3). Evaluated beside the values in double precision, this bounds
the error of each state looked at; the largest over many states is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from armwise.codegen.c_text import ULP, Precision
from armwise.codegen.code import Code, Routine
from armwise.codegen.reference import (
    random_load,
    random_states,
    reference_arm,
    reference_values,
)
from armwise.errors import ArgumentError
from armwise.programs import Program, Scalar, numpy_function

# How far rounding can carry a program's results: a running error bound.


def rounding_bound(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    precision: Precision,
) -> dict[str, float]:
    """Return the largest error bound of each output, over the given states.

    Args:
        program: The program, in the very order the code runs it.
        inputs: Arrays (states, size), or (size,) for those given once per call.
        precision: What the code computes in; inputs are taken as given in it.
    """
    unit = precision.unit
    values: dict[int, np.ndarray] = {}
    errors: dict[int, np.ndarray] = {}
    for step in program.steps:
        value, error = _step(step, values, errors, inputs, unit)
        values[step.index], errors[step.index] = value, error
    bounds: dict[str, float] = {}
    for item in program.outputs:
        worst = [
            float(np.max(errors[x.index]))
            if isinstance(x, Scalar)
            else unit * abs(float(x))
            for x in item.entries
        ]
        bounds[item.name] = max(worst, default=0.0)
    return bounds


def _step(
    step: Scalar,
    values: Mapping[int, np.ndarray],
    errors: Mapping[int, np.ndarray],
    inputs: Mapping[str, np.ndarray],
    unit: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Value and error bound of one operation."""
    if step.op == "constant":
        value = np.asarray(float(step.value))  # type: ignore[arg-type]
        return value, unit * np.abs(value)
    if step.op == "input":
        name, place = step.value  # type: ignore[misc]
        value = inputs[str(name)][..., int(place)]
        return value, np.zeros_like(value)
    a, ea = values[step.args[0].index], errors[step.args[0].index]
    if len(step.args) == 2:
        b, eb = values[step.args[1].index], errors[step.args[1].index]
        match step.op:
            case "add":
                value, error = a + b, ea + eb
            case "sub":
                value, error = a - b, ea + eb
            case "mul":
                value, error = a * b, np.abs(a) * eb + np.abs(b) * ea + ea * eb
            case _:
                least = np.maximum(np.abs(b) - eb, np.finfo(float).tiny)
                value, error = a / b, (ea + np.abs(a / b) * eb) / least
        return value, error + unit * np.abs(value)
    match step.op:
        case "neg":
            return -a, ea
        case "sin":
            value = np.sin(a)
            return value, ea + 2 * ULP * unit * np.abs(value)
        case "cos":
            value = np.cos(a)
            return value, ea + 2 * ULP * unit * np.abs(value)
        case "sign":
            return np.sign(a), np.zeros_like(ea)
        case "abs":
            return np.abs(a), ea
    raise ArgumentError(f"No rounding bound is known for {step.op!r}.")


# How precise generated code is: bounded by analysis, and measured.

STATES = 500
_SEED = 7


@dataclass(frozen=True)
class PrecisionError:
    """What rounding does to the results of a function.

    Attributes:
        bound: Largest running error bound over the states, in the results' units.
        measured: Largest difference from double precision over the same states.
        scale: Largest result.
        states: How many states were looked at.
    """

    bound: float
    measured: float
    scale: float
    states: int


def precision_error(code: Code, routine: Routine) -> PrecisionError:
    """Bound and measure a function's rounding errors on states within limits."""
    kind = np.float32 if code.precision.name == "float" else np.float64
    load = random_load(_SEED) if code.model.has_load else None
    arm = reference_arm(code.model, load)
    states = random_states(arm, STATES, _SEED)
    given, wanted = reference_values(
        routine.function.name, arm, code.model.place, states
    )
    inputs = {
        k: v.reshape(STATES, -1).astype(kind).astype(float) for k, v in given.items()
    }
    opened = {
        "body": np.array(code.model.bodies),
        "drive": np.array(code.model.drives),
        "load": load,
    }
    known = {k: v for k, v in opened.items() if v is not None}
    bound = rounding_bound(routine.program, {**inputs, **known}, code.precision)
    measured = _measured(routine, inputs, known, kind)
    scale = max(float(np.abs(v).max(initial=0.0)) for v in wanted.values())
    return PrecisionError(max(bound.values()), measured, scale, STATES)


def _measured(
    routine: Routine,
    inputs: dict[str, np.ndarray],
    known: dict[str, np.ndarray],
    kind: type[np.floating],
) -> float:
    """Run the very program in the code's precision and in a better one."""
    run = numpy_function(routine.program)
    better = np.float64 if kind is np.float32 else np.longdouble
    results = []
    for type_ in (kind, better):
        rows = [
            np.ascontiguousarray(inputs[i.name].T).astype(type_)
            for i in routine.program.inputs
            if not i.is_uniform
        ]
        uniform = [
            known[i.name].astype(type_) for i in routine.program.inputs if i.is_uniform
        ]
        results.append(run(rows, uniform))
    return max(
        (
            float(np.max(np.abs(np.asarray(a) - b)))
            for a, b in zip(*results, strict=True)
        ),
        default=0.0,
    )
