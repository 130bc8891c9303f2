"""The self-test that travels with generated code."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armwise.codegen.c_text import fill
from armwise.codegen.code import Code, Routine
from armwise.codegen.precision import rounding_bound
from armwise.codegen.reference import (
    random_load,
    random_states,
    reference_arm,
    reference_values,
)

STATES = 4
_SEED = 1992
_WIDTH = 8
"""Numbers in a line."""


def selftest_file(code: Code) -> str:
    """Return NAME_selftest.c: states within limits, expected values, allowed errors."""
    load = random_load(_SEED) if code.model.has_load else None
    arm = reference_arm(code.model, load)
    states = random_states(arm, STATES, _SEED)
    if code.precision.name == "float":  # so that the inputs are exact in the code
        rounded = (x.astype(np.float32).astype(float) for x in vars(states).values())
        states = type(states)(*rounded)
        load = None if load is None else load.astype(np.float32).astype(float)
        arm = reference_arm(code.model, load)
    tests, calls = [], []
    for routine in code.routines:
        name = routine.function.name
        given, wanted = reference_values(name, arm, code.model.place, states)
        flat = {k: v.reshape(STATES, -1) for k, v in given.items()}
        goal = {k: v.reshape(STATES, -1) for k, v in wanted.items()}
        tests.append(_test(code, routine, flat, goal, load))
        calls.append(f"  wrong += test_{name}();\n")
    return fill(
        "selftest.c.in",
        NAME=code.name,
        TYPE=code.precision.type,
        STATES=STATES,
        TESTS="\n".join(tests),
        CALLS="".join(calls),
    )


def allowed_error(
    code: Code,
    routine: Routine,
    given: Mapping[str, np.ndarray],
    wanted: Mapping[str, np.ndarray],
    load: np.ndarray | None,
) -> float:
    """What rounding can do to the code's results and to those it is compared with."""
    inputs = {**given, **_open_values(code, load)}
    bound = rounding_bound(routine.program, inputs, code.precision)
    scale = max((float(np.abs(x).max()) for x in wanted.values()), default=0.0)
    return 2.0 * max(bound.values()) + 1e-13 * scale


def _open_values(code: Code, load: np.ndarray | None) -> dict[str, np.ndarray]:
    found = {
        "body": np.array(code.model.bodies),
        "drive": np.array(code.model.drives),
    }
    if load is not None:
        found["load"] = load
    return found


def _test(
    code: Code,
    routine: Routine,
    given: Mapping[str, np.ndarray],
    wanted: Mapping[str, np.ndarray],
    load: np.ndarray | None,
) -> str:
    name, kind = routine.function.name, code.precision.type
    lines = [f"static int test_{name}(void)", "{"]
    number = code.precision.number
    for key, values in given.items():
        lines += _array(f"{kind} {key}", values, number)
    for key, values in wanted.items():
        lines += _array(f"double want_{key}", values, repr)
    arguments = [f"{key}[s]" for key in given] + list(wanted)
    if routine.takes_struct:
        lines += _open_lines(code, load)
        arguments.insert(0, "&p")
    lines += ["  double worst = 0;", "  for (int s = 0; s < STATES; s++) {"]
    lines += [f"    {kind} {key}[{v.shape[1]}];" for key, v in wanted.items()]
    lines.append(f"    {code.name}_{name}({', '.join(arguments)});")
    for key, values in wanted.items():
        lines.append(
            f"    worst = differ({key}, want_{key}[s], {values.shape[1]}, worst);"
        )
    bound = allowed_error(code, routine, given, wanted, load)
    lines += ["  }", f'  return report("{name}", worst, {bound!r});', "}", ""]
    return "\n".join(lines)


def _open_lines(code: Code, load: np.ndarray | None) -> list[str]:
    lines = [f"  {code.name}_parameters p;", f"  {code.name}_defaults(&p);"]
    if load is not None:
        kind, number = code.precision.type, code.precision.number
        rows = ", ".join(number(float(x)) for x in load)
        lines.append(f"  static const {kind} load[10] = {{{rows}}};")
        lines.append("  for (int i = 0; i < 10; i++) p.load[i] = load[i];")
        lines.append(f"  {code.name}_prepare(&p);")
    return lines


def _array(declaration: str, values: np.ndarray, number: object) -> list[str]:
    """Write rows of numbers as a C array."""
    size = values.shape[1]
    lines = [f"  static const {declaration}[STATES][{size}] = {{"]
    for row in values:
        texts = [number(float(x)) for x in row]  # type: ignore[operator]
        for k in range(0, size, _WIDTH):
            start = "    {" if k == 0 else "     "
            end = "}," if k + _WIDTH >= size else ","
            lines.append(start + ", ".join(texts[k : k + _WIDTH]) + end)
    return [*lines, "  };"]
