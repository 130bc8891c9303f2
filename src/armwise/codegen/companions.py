"""Files beside the model: example, CMake, C++ wrapper, real-time runtime."""

from __future__ import annotations

import numpy as np

from armwise.codegen.code import Code, Routine
from armwise.codegen.reference import random_states
from armwise.codegen.templates import fill

RUNTIME_FUNCTIONS = (
    "mass_matrix_and_gravity",
    "velocity_torque",
    "synchronous_torque",
)
"""What the two-rate runtime is made of."""


def example_file(code: Code) -> str:
    """Return NAME_example.c: one call of the first function."""
    routine = code.routines[0]
    kind = code.precision.type
    lines: list[str] = []
    arguments: list[str] = []
    if routine.takes_struct:
        lines += [f"{code.name}_parameters p;", f"{code.name}_defaults(&p);"]
        arguments.append("&p")
    for item in routine.program.inputs:
        if not item.is_uniform:
            lines.append(f"const {kind} {item.name}[{item.size}] = {{0}};")
            arguments.append(item.name)
    for output in routine.program.outputs:
        lines.append(f"{kind} {output.name}[{len(output.entries)}];")
        arguments.append(output.name)
    lines.append(f"{code.name}_{routine.function.name}({', '.join(arguments)});")
    result = routine.program.outputs[0]
    lines.append(f"for (int i = 0; i < {len(result.entries)}; i++)")
    lines.append(f'  printf("{result.name}[%d] = %g\\n", i, (double){result.name}[i]);')
    body = "".join(f"  {line}\n" for line in lines)
    return fill("example.c.in", NAME=code.name, BODY=body)


def cmake_file(code: Code, has_runtime: bool) -> str:
    """Return CMakeLists.txt."""
    name = code.name
    runtime = ""
    if has_runtime:
        runtime = f"""
find_package(Threads)
if(Threads_FOUND AND UNIX)
  add_executable({name}_realtime {name}_realtime.c {name}_runtime.c)
  target_link_libraries({name}_realtime {name} Threads::Threads)
  add_executable({name}_exchange_stress {name}_exchange_stress.c)
  target_link_libraries({name}_exchange_stress Threads::Threads)
  add_test(NAME exchange COMMAND {name}_exchange_stress 100000)
endif()"""
    return fill("CMakeLists.txt.in", NAME=name, RUNTIME=runtime)


def wrapper_file(code: Code) -> str:
    """Return NAME.hpp: the same functions with std::array."""
    types = [f"using Parameters = {code.name}_parameters;\n"] if code.fields else []
    functions = []
    for routine in code.routines:
        made, result = _wrapper(code, routine)
        functions.append(made)
        types += [result] if result else []
    return fill(
        "wrapper.hpp.in",
        NAME=code.name,
        GUARD=code.name.upper(),
        DOF=code.model.arm.dof,
        TYPE=code.precision.type,
        TYPES="".join(types),
        FUNCTIONS="\n".join(functions),
    )


def _wrapper(code: Code, routine: Routine) -> tuple[str, str]:
    name, outputs = routine.function.name, routine.program.outputs
    arguments, passed = [], []
    if routine.takes_struct:
        arguments.append("const Parameters &p")
        passed.append("&p")
    for item in routine.program.inputs:
        if not item.is_uniform:
            arguments.append(f"const {_array(code, item.size)} &{item.name}")
            passed.append(f"{item.name}.data()")
    arrays = [_array(code, len(item.entries)) for item in outputs]
    struct = ""
    if len(outputs) == 1:
        kind, results = arrays[0], ["result.data()"]
    else:
        kind = "".join(word.capitalize() for word in name.split("_"))
        rows = "".join(
            f"  {a} {o.name};\n" for a, o in zip(arrays, outputs, strict=True)
        )
        struct = f"\nstruct {kind} {{\n{rows}}};\n"
        results = [f"result.{item.name}.data()" for item in outputs]
    text = (
        f"inline {kind} {name}({', '.join(arguments)})\n{{\n  {kind} result;\n"
        f"  {code.name}_{name}({', '.join([*passed, *results])});\n"
        "  return result;\n}\n"
    )
    return text, struct


def _array(code: Code, size: int) -> str:
    if size == code.model.arm.dof:
        return "Vector"
    return f"std::array<{code.precision.type}, {size}>"


def runtime_files(code: Code) -> dict[str, str]:
    """Return the two-rate runtime, a program that runs it, and a stress test."""
    name, dof = code.name, code.model.arm.dof
    open_terms = code.routine("velocity_torque").takes_struct
    open_sync = code.routine("synchronous_torque").takes_struct
    middle, reach, rates = _motion(code)
    values = {
        "NAME": name,
        "GUARD": name.upper(),
        "TYPE": code.precision.type,
        "DOF": dof,
        "SIZE": dof * dof,
        "PARAMETERS": f"  {name}_parameters parameters;\n" if code.fields else "",
        "DEFAULTS": f"  {name}_defaults(&r->parameters);\n" if code.fields else "",
        "P": "&r->parameters, " if open_terms else "",
        "PS": "&r->parameters, " if open_sync else "",
        "PM": "&shared.parameters, " if open_terms else "",
        "PSM": "&shared.parameters, " if open_sync else "",
        "MIDDLE": middle,
        "REACH": reach,
        "RATES": rates,
    }
    return {
        f"{name}_exchange.h": fill("exchange.h.in", **values),
        f"{name}_runtime.h": fill("runtime.h.in", **values),
        f"{name}_runtime.c": fill("runtime.c.in", **values),
        f"{name}_realtime.c": fill("realtime.c.in", **values),
        f"{name}_exchange_stress.c": fill("exchange_stress.c.in", **values),
    }


def _motion(code: Code) -> tuple[str, str, str]:
    """Sinusoids within limits, at a third of the fastest, each joint its own period."""
    arm = code.model.arm
    states = random_states(arm, 2000, 0)
    lower, upper = states.q.min(axis=0), states.q.max(axis=0)
    middle, reach = (lower + upper) / 2, np.minimum((upper - lower) / 4, 0.8)
    fastest = np.abs(states.qd).max(axis=0)
    rates = 0.6 * fastest / reach * np.linspace(1.0, 0.6, arm.dof)
    rates = np.minimum(rates, 2 * np.pi * 2.0)
    return tuple(", ".join(repr(float(v)) for v in x) for x in (middle, reach, rates))  # type: ignore[return-value]
