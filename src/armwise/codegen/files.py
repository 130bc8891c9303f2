"""Files of generated code: header, source, example, CMake, C++ wrapper, runtime."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from armwise.arms import DRIVE_NAMES
from armwise.codegen.accuracy import random_states
from armwise.codegen.c_text import comment, fill, sincos_text
from armwise.codegen.code import CodeText, Routine
from armwise.codegen.functions import UNITS
from armwise.errors import ArgumentError
from armwise.regression import FrictionTerm, heat_coefficients, load_rows
from armwise.version import __version__

# Judgement: long expressions in few lines, still two files side by side.
_WIDTH = 96


def header_file(code: CodeText, notes: tuple[str, ...]) -> str:
    """Return NAME.h: what there is, in which units, at what cost."""
    return fill(
        "model.h.in",
        NAME=code.name,
        GUARD=f"{code.name.upper()}_H",
        VERSION=__version__,
        ARM=comment(code.model.arm.name),
        DOF=code.model.arm.dof,
        TYPE=code.precision.type,
        JOINTS="\n".join(_joint_lines(code)),
        NOTES="\n".join([*_parameter_lines(code), *_note_lines(notes)]),
        STRUCT=_struct(code),
        FUNCTIONS="\n\n".join(_declaration(code, r) for r in code.routines),
    )


def source_file(code: CodeText) -> str:
    """Return NAME.c."""
    parts = [fill("model.c.in", NAME=code.name, ARM=comment(code.model.arm.name))]
    if code.constants.names:
        meaning = (
            "/* Numbers of the arm: products of parameters, lengths and gravity. */"
        )
        parts.append("\n".join([meaning, *code.constants.lines()]))
    kind = code.precision.type
    # Only where it is used: unused static functions are warnings, and warnings errors.
    if any(r.uses_sign for r in code.routines):
        parts.append(
            f"static {kind} sign_of({kind} x)\n{{\n"
            f"  return ({kind})((x > 0) - (x < 0));\n}}"
        )
    sizes = sorted({r.angles for r in code.routines} - {0})
    parts += [sincos_text(size, code.precision).rstrip() for size in sizes]
    if code.fields:
        parts.append(_preparation(code))
    parts += [_definition(code, r) for r in code.routines]
    return "\n\n".join(parts) + "\n"


def _joint_lines(code: CodeText) -> list[str]:
    arm = code.model.arm
    lines = []
    for k, i in enumerate(arm.coordinates):
        joint = arm.joints[i]
        unit = "rad" if joint.is_revolute else "m"
        limits = f"{joint.limits.lower:.4g} to {joint.limits.upper:.4g} {unit}"
        lines.append(f"     q[{k}]  {comment(joint.name)}, {joint.kind}, {limits}")
    return lines


def _parameter_lines(code: CodeText) -> list[str]:
    """List the numbers that the code is made of, if they are in it."""
    model = code.model
    if model.parameters == "struct":
        return []
    # Groups that are exactly zero are not in the code.
    parameters = zip(model.body_names, model.bodies, model.body_units, strict=True)
    rows = [
        f"     {name} = {value:.9g} {unit}" for name, value, unit in parameters if value
    ]
    drives = []
    for driven in model.arm.driven:
        values = driven.drive.vector
        if any(values):
            numbers = ", ".join(f"{x:.6g}" for x in values)
            drives.append(f"     {comment(driven.name)}: {numbers}")
    lines = ["   Base parameters in the code, in the frames Armwise works in:", *rows]
    if drives:
        title = "   Drives: rotor inertia, viscous, Coulomb friction, offset:"
        lines += [title, *drives]
    return lines


def _note_lines(notes: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    for note in notes:
        lines += textwrap.wrap(
            comment(note), _WIDTH - 3, initial_indent="   ", subsequent_indent="   "
        )
    return lines


def _struct(code: CodeText) -> str:
    if not code.fields:
        return ""
    kind = code.precision.type
    rows = [
        f"  {kind} {n}[{size}]; /* {comment(what)} */" for n, size, what in code.fields
    ]
    prefix = code.name
    text = ["/* Parameters that may change while the arm moves. After changing one,",
            f"   call {prefix}_prepare; functions read the result. */",
            "typedef struct {", *rows, f"}} {prefix}_parameters;", "",
            "/* Fill in the arm's own parameters and no load, and prepare. */",
            f"void {prefix}_defaults({prefix}_parameters *p);", "",
            "/* Work out what the functions read. Not while another thread reads. */",
            f"void {prefix}_prepare({prefix}_parameters *p);", ""]  # fmt: skip
    if code.model.parameters == "struct":
        text += [_enumeration(code), ""]
    return "\n".join(text)


def _enumeration(code: CodeText) -> str:
    """Name the indices of body[] and drive[]."""
    upper = code.name.upper()
    lines = ["/* Indices of body[]: base parameters in the frames Armwise works in; */",
             "/* Sxx.. are second moments of mass. And in drive[]: four a joint. */",
             "enum {"]  # fmt: skip
    for k, (name, unit) in enumerate(
        zip(code.model.body_names, code.model.body_units, strict=True)
    ):
        lines.append(f"  {upper}_{name} = {k}, /* [{unit}] */")
    layout = code.model.arm.layout
    for k in range(layout.drive_count):
        for name in DRIVE_NAMES:
            index = layout.joint(k, name, start=0)
            lines.append(f"  {upper}_drive_{k + 1}_{name} = {index},")
    lines[-1] = lines[-1].rstrip(",")
    return "\n".join([*lines, "};"])


def _declaration(code: CodeText, routine: Routine) -> str:
    counts = routine.counts
    cost = (
        f"{counts['multiplications']} multiplications, "
        f"{counts['additions']} additions, {counts['trigonometric']} sines and cosines"
    )
    if counts["divisions"]:
        cost += f", {counts['divisions']} divisions"
    function = routine.function
    lines = [f"/* {function.name}: {function.summary}."]
    named = [i.name for i in routine.program.inputs if not i.is_uniform]
    named += [item.name for item in routine.program.outputs]
    lines += [f"     {name}: {UNITS[name]}" for name in named]
    if function.name in ("link_pose", "jacobian"):
        lines.append(f"     of {comment(code.model.frame)}")
    lines.append(f"   {cost}. */")
    return "\n".join([*lines, _wrapped(code.signature(routine)) + ";"])


def _definition(code: CodeText, routine: Routine) -> str:
    body = [_folded(f"  {line}") for line in routine.body]
    return "\n".join([_wrapped(code.signature(routine)), "{", *body, "}"])


def _preparation(code: CodeText) -> str:
    prefix, kind = code.name, code.precision.type
    number = code.precision.number
    lines = [f"void {prefix}_defaults({prefix}_parameters *p)", "{"]
    for name, size, _ in code.fields:
        values = {"body": code.model.bodies, "drive": code.model.drives}.get(name)
        if values is None:
            lines.append(f"  for (int i = 0; i < {size}; i++) p->{name}[i] = 0;")
        else:
            rows = ", ".join(number(x) for x in values)
            lines.append(_folded(f"  static const {kind} {name}[{size}] = {{{rows}}};"))
            lines.append(
                f"  for (int i = 0; i < {size}; i++) p->{name}[i] = {name}[i];"
            )
    lines += [f"  {prefix}_prepare(p);", "}", ""]
    lines += [f"void {prefix}_prepare({prefix}_parameters *p)", "{"]
    lines += [f"  {line}" for line in code.prepared.lines] or ["  (void)p;"]
    return "\n".join([*lines, "}"])


def _wrapped(signature: str) -> str:
    start = signature.index("(") + 1
    return "\n".join(textwrap.wrap(signature, _WIDTH, subsequent_indent=" " * start))


def _folded(line: str) -> str:
    """Break a long statement after an operator."""
    if len(line) <= _WIDTH:
        return line
    return "\n".join(
        textwrap.wrap(
            line.strip(), _WIDTH, initial_indent="  ", subsequent_indent="      ",
            break_long_words=False, break_on_hyphens=False,
        )
    )  # fmt: skip


# Files beside the header and the source.

RUNTIME_FUNCTIONS = (
    "mass_matrix_and_gravity",
    "velocity_torque",
    "synchronous_torque",
)
"""What the two-rate runtime is made of."""


def example_file(code: CodeText) -> str:
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


# C of each form: x, v, d and load are a drive's position, speed, direction and load, z
# its spring over its width, t and w its temperature and warmth, s the term's scale and
# turn 2π.
_FORMS = {
    "asymmetric": "@fabs(v)",
    "stribeck": "d * @exp(-@fabs(v) / s)",
    "root": "d * @sqrt(@fabs(v))",
    "quadratic": "v * @fabs(v)",
    "load": "d * @fabs(load)",
    "load_driving": "0.5@ * (d * @fabs(load) + @fabs(d) * load)",
    "load_back_driven": "0.5@ * (d * @fabs(load) - @fabs(d) * load)",
    "hysteresis": "z / s",
    "ripple_sine": "@sin(turn / s * x)",
    "ripple_cosine": "@cos(turn / s * x)",
    "coulomb_sine": "d * @sin(turn / s * x)",
    "coulomb_cosine": "d * @cos(turn / s * x)",
    "coulomb_temperature": "d * (t - s)",
    "viscous_temperature": "v * (t - s)",
    "coulomb_warming": "d * w",
    "viscous_warming": "v * w",
}


def friction_files(
    code: CodeText, terms: Sequence[tuple[FrictionTerm, float]]
) -> dict[str, str]:
    """Return friction beyond viscous, Coulomb and offset, with the state it carries."""
    for term, _ in terms:
        if term.form not in _FORMS:
            raise ArgumentError(
                f"{term.name} is a form of your own, which has no C. Generate from the "
                "estimate's arm, and add that friction yourself; or identify without."
            )
    rows = code.model.mechanism.drive_rows
    kind = code.precision.type
    warms_up = any(term.kind.uses_heat for term, _ in terms)
    measured = any(term.kind.uses_temperature for term, _ in terms)
    values = {
        "PERIOD": f", {kind} period" if warms_up else "",
        "STATE": "".join(_state_lines(kind, warms_up, measured, len(terms), len(rows))),
        "RESET": "\n".join(_reset_lines(code, terms)),
        "NAME": code.name,
        "GUARD": code.name.upper(),
        "ARM": comment(code.model.arm.name),
        "VERSION": __version__,
        "TYPE": code.precision.type,
        "DOF": code.model.arm.dof,
        "DRIVES": len(rows),
        "COUNT": max(1, len(terms)),
        "TERMS": "\n".join(
            f"   {comment(term.name)}: {value:.6g} times {comment(term.kind.meaning)}"
            for term, value in terms
        ),
        "BODY": "\n".join(_drive_lines(code, terms, rows)),
        "SUMS": "\n".join(_sum_lines(code, terms, rows)),
    }
    return {
        f"{code.name}_friction_terms.{kind}": fill(
            f"friction_terms.{kind}.in", **values
        )
        for kind in ("h", "c")
    }


def _state_lines(
    kind: str, warms_up: bool, is_measured: bool, count: int, drives: int
) -> Iterator[str]:
    """Members that only some terms need."""
    if warms_up:
        yield "\n  /* Fraction by which warmth approaches its power in a call. */"
        yield f"\n  {kind} warming[{count}];"
    if is_measured:
        yield "\n  /* Temperatures of the drives in degrees Celsius, to be set as they"
        yield "\n     are measured; a reset puts those that the terms are about. */"
        yield f"\n  {kind} temperature[{drives}];"


def _reset_lines(
    code: CodeText, terms: Sequence[tuple[FrictionTerm, float]]
) -> Iterator[str]:
    suffix = "" if code.precision.name == "double" else "f"  # of <math.h>
    for k, (term, _) in enumerate(terms):
        s = code.precision.number(term.scale)
        if term.kind.uses_heat:
            yield f"  state->warming[{k}] = -expm1{suffix}(-period / {s});"
        if term.kind.uses_temperature:
            yield f"  state->temperature[{term.joint}] = {s};"


def _drive_lines(
    code: CodeText, terms: Sequence[tuple[FrictionTerm, float]], rows: np.ndarray
) -> Iterator[str]:
    """C that adds up what every drive with terms loses."""
    kind, number = code.precision.type, code.precision.number
    suffix = "" if code.precision.name == "double" else "f"  # of <math.h>
    loads = load_rows(rows)
    heat = heat_coefficients(code.model.arm, code.model.arm.parameters)
    for j in sorted({term.joint for term, _ in terms}):
        own = [(k, t, value) for k, (t, value) in enumerate(terms) if t.joint == j]
        yield f"  {{ /* {comment(own[0][1].joint_name)} */"
        words = set(re.findall(r"\w+", " ".join(_FORMS[t.form] for _, t, _ in own)))
        if words & {"x", "z"}:
            yield f"    const {kind} x = {_weighed(rows[j], 'q', code)};"
        if "z" in words:
            yield (
                f"    const {kind} moved = state->has_moved ? x - state->before[{j}] "
                f": {number(0.0)};"
            )
            yield f"    state->before[{j}] = x;"
        if words & {"v", "d", "w"}:
            yield f"    const {kind} v = {_weighed(rows[j], 'qd', code)};"
        if "d" in words:
            yield f"    const {kind} d = ({kind})((v > 0) - (v < 0));"
        if "t" in words:
            yield f"    const {kind} t = state->temperature[{j}];"
        if "w" in words:
            coulomb, viscous = (number(float(x)) for x in heat[:, j])
            yield f"    const {kind} power = {coulomb} * fabs{suffix}(v)"
            yield f"      + {viscous} * (v * v);"
        if "load" in words:
            yield f"    const {kind} load = {_weighed(loads[j], 'link_tau', code)};"
        for k, term, value in own:
            s = number(term.scale)
            if term.form == "hysteresis":
                yield f"    {kind} z{k} = state->spring[{k}] + moved;"
                yield f"    z{k} = z{k} > {s} ? {s} : z{k} < -{s} ? -{s} : z{k};"
                yield f"    state->spring[{k}] = z{k};"
            if term.kind.uses_heat:
                yield f"    {kind} w{k} = state->spring[{k}];"
                yield f"    w{k} += state->warming[{k}] * (power - w{k});"
                yield f"    state->spring[{k}] = w{k};"
                if term.warmest is not None:
                    most = number(term.warmest)
                    yield f"    w{k} = w{k} > {most} ? {most} : w{k};"
            text = _FORMS[term.form]
            if term.straight_from < np.inf:
                end, slope = number(term.straight_from), number(term.slope_beyond)
                yield f"    const {kind} v{k} = v > {end} ? {end}"
                yield f"      : v < -{end} ? -{end} : v;"
                text = re.sub(r"\bv\b", f"v{k}", text) + f" + {slope} * (v - v{k})"
            text = re.sub(r"@(\w+)", rf"\1{suffix}", text)
            text = text.replace("0.5@", number(0.5))
            text = text.replace("turn / s", number(2.0 * np.pi / term.scale))
            text = re.sub(r"\b([zw])\b", rf"\g<1>{k}", re.sub(r"\bs\b", s, text))
            yield f"    lost[{j}] += {number(value)} * ({text});"
        yield "  }"


def _sum_lines(
    code: CodeText, terms: Sequence[tuple[FrictionTerm, float]], rows: np.ndarray
) -> Iterator[str]:
    """C that turns what drives lose into torques of the joints."""
    used = np.isin(np.arange(len(rows)), [term.joint for term, _ in terms])
    for i in range(code.model.arm.dof):
        yield f"  tau[{i}] = {_weighed(rows[:, i] * used, 'lost', code)};"
    # Arguments that no term needs are no mistake.
    if not any(term.kind.uses_load for term, _ in terms):
        yield "  (void)link_tau;"
    words = set(re.findall(r"\w+", " ".join(_FORMS[term.form] for term, _ in terms)))
    if not words & {"x", "z"}:
        yield "  (void)q;"
    if not words & {"v", "d", "w"}:
        yield "  (void)qd;"


def _weighed(weights: np.ndarray, name: str, code: CodeText) -> str:
    """A weighted sum of an array's entries, without those of weight zero."""
    parts = [
        f"{name}[{i}]" if w == 1.0 else f"{code.precision.number(w)} * {name}[{i}]"
        for i, w in enumerate(weights)
        if w != 0.0
    ]
    return " + ".join(parts) or code.precision.number(0.0)


def cmake_file(code: CodeText, has_runtime: bool, has_terms: bool = False) -> str:
    """Return CMakeLists.txt."""
    name = code.name
    runtime = ""
    if has_runtime:
        runtime = f"""
find_package(Threads)
if(Threads_FOUND AND UNIX)
  add_executable({name}_realtime {name}_realtime.c {name}_runtime.c)
  target_link_libraries({name}_realtime {name} Threads::Threads)
  add_executable({name}_controller {name}_controller.c {name}_runtime.c)
  target_link_libraries({name}_controller {name} Threads::Threads)
  add_executable({name}_exchange_stress {name}_exchange_stress.c)
  target_link_libraries({name}_exchange_stress Threads::Threads)
  # More by hand: on a busy machine each exchange waits for other programs.
  add_test(NAME exchange COMMAND {name}_exchange_stress 10000)
endif()"""
    terms = f" {name}_friction_terms.c" if has_terms else ""
    return fill("CMakeLists.txt.in", NAME=name, TERMS=terms, RUNTIME=runtime)


def wrapper_file(code: CodeText) -> str:
    """Return NAME.hpp: the same functions with std::array."""
    types = [f"using Parameters = {code.name}_parameters;\n"] if code.fields else []
    functions = []
    for routine in code.routines:
        text, result = _wrapper(code, routine)
        functions.append(text)
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


def _wrapper(code: CodeText, routine: Routine) -> tuple[str, str]:
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


def _array(code: CodeText, size: int) -> str:
    if size == code.model.arm.dof:
        return "Vector"
    return f"std::array<{code.precision.type}, {size}>"


def runtime_files(code: CodeText) -> dict[str, str]:
    """Return the two-rate runtime, programs that run it, and a stress test."""
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
        "FIVE": 5 * dof,
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
        f"{name}_controller.c": fill("controller.c.in", **values),
        f"{name}_exchange_stress.c": fill("exchange_stress.c.in", **values),
    }


def _motion(code: CodeText) -> tuple[str, str, str]:
    """Sinusoids within limits, at 36 to 60 % of top speed, each with its own period."""
    arm = code.model.arm
    # Its extremes stand for the limits, where there are none as well.
    states = random_states(arm, 2000, 0)
    lower, upper = states.q.min(axis=0), states.q.max(axis=0)
    # A quarter of the range, and slow enough that the speed stays within limits.
    middle, reach = (lower + upper) / 2, np.minimum((upper - lower) / 4, 0.8)
    fastest = np.abs(states.qd).max(axis=0)
    # Periods that differ from joint to joint: together they pass through many states.
    rates = 0.6 * fastest / reach * np.linspace(1.0, 0.6, arm.dof)
    rates = np.minimum(rates, 2 * np.pi * 2.0)  # 2 Hz: no arm swings faster
    return tuple(", ".join(repr(float(v)) for v in x) for x in (middle, reach, rates))  # type: ignore[return-value]
