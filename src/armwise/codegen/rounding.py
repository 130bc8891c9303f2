"""How far rounding can carry a program's results: a running error bound.

Every operation adds half a unit in the last place of its result to the errors it was
given (Higham 2002, §3.3). Evaluated beside the values in double precision, this bounds
the error of each state looked at; the largest over many states is reported.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armwise.codegen.sincos_text import ULP
from armwise.codegen.statements import Precision
from armwise.errors import ArgumentError
from armwise.programs import Program
from armwise.programs.scalars import Scalar


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
