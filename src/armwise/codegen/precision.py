"""How precise generated code is: bounded by analysis, and measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armwise.codegen.code import Code, Routine
from armwise.codegen.reference import (
    random_load,
    random_states,
    reference_arm,
    reference_values,
)
from armwise.codegen.rounding import rounding_bound
from armwise.programs.numpy_backend import numpy_function

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
