"""Generated code, in memory: functions with their programs and C text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from armwise.codegen.functions import FUNCTIONS, Function
from armwise.codegen.known import Known, struct_fields
from armwise.codegen.model import Model
from armwise.codegen.statements import Constants, Precision, Statements, padded
from armwise.programs import Program


@dataclass(frozen=True, eq=False)
class Routine:
    """One generated function.

    Attributes:
        function: What it is.
        program: Its operations.
        body: Its C statements.
        takes_struct: Whether it reads open parameters.
    """

    function: Function
    program: Program
    body: tuple[str, ...]
    takes_struct: bool

    @property
    def counts(self) -> dict[str, int]:
        """Multiplications, additions, trigonometric calls and divisions of a call."""
        return dict(self.program.counts)

    @property
    def angles(self) -> int:
        """How many angles it takes the sine and cosine of, padded; 0 if none."""
        steps = self.program.steps
        found = {s.args[0].index for s in steps if s.op in ("sin", "cos")}
        return padded(len(found))

    @property
    def uses_sign(self) -> bool:
        """Whether it needs the sign of something."""
        return any(step.op == "sign" for step in self.program.steps)


@dataclass(frozen=True, eq=False)
class Code:
    """The C code of a model, before it is written to files.

    Attributes:
        name: Prefix of all its names.
        model: What it is for.
        precision: Type of its numbers.
        routines: Its functions, in the order asked for.
        constants: Numbers with names.
        known: What is prepared once, if parameters are open.
    """

    name: str
    model: Model
    precision: Precision
    routines: tuple[Routine, ...]
    constants: Constants
    known: Known = field(repr=False)

    @cached_property
    def fields(self) -> list[tuple[str, int, str]]:
        """Name, size and meaning of the struct's arrays; empty if there is none."""
        return struct_fields(self.model, self.known)

    def routine(self, name: str) -> Routine:
        """Return the function of this name."""
        return next(r for r in self.routines if r.function.name == name)

    def has(self, *names: str) -> bool:
        """Whether all of these functions are there."""
        return set(names) <= {r.function.name for r in self.routines}

    def signature(self, routine: Routine) -> str:
        """Return a function's C declaration, without the semicolon."""
        kind = self.precision.type
        arguments = []
        if routine.takes_struct:
            arguments.append(f"const {self.name}_parameters *p")
        sizes = {i.name: i.size for i in routine.program.inputs if not i.is_uniform}
        arguments += [f"const {kind} {n}[{size}]" for n, size in sizes.items()]
        arguments += [
            f"{kind} {item.name}[{len(item.entries)}]"
            for item in routine.program.outputs
        ]
        joined = ", ".join(arguments)
        return f"void {self.name}_{routine.function.name}({joined})"


def write_code(
    name: str, model: Model, precision: Precision, programs: dict[str, Program]
) -> Code:
    """Turn programs into C functions."""
    constants = Constants(precision)
    known = Known(constants)
    routines = []
    for name_of, program in programs.items():
        texts = known.add(program)
        body = Statements(program, constants, texts).write()
        varying = [i.name for i in program.inputs if not i.is_uniform]
        unused = [f"(void){key};" for key in varying if _is_unread(program, key)]
        if texts == {} and any(i.is_uniform for i in program.inputs):
            unused.append("(void)p;")
        takes = any(i.is_uniform for i in program.inputs)
        routines.append(Routine(FUNCTIONS[name_of], program, (*unused, *body), takes))
    return Code(name, model, precision, tuple(routines), constants, known)


def _is_unread(program: Program, name: str) -> bool:
    return not any(
        step.op == "input" and step.value[0] == name  # type: ignore[index]
        for step in program.steps
    )
