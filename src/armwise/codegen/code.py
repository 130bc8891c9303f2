"""Generated C functions in memory, with their programs and shared preparation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from armwise.codegen.c_text import Constants, Precision, Statements, padded
from armwise.codegen.functions import FUNCTIONS, Function
from armwise.codegen.model import LOAD_SIZE, CodeModel
from armwise.programs import Program, Scalar

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass
class Prepared:
    """Steps of all functions that depend on open parameters only.

    Attributes:
        constants: Where numbers get their names.
        lines: Statements that work them out, in order.
        size: How many numbers the functions read.
    """

    constants: Constants
    lines: list[str] = field(default_factory=list)
    size: int = 0
    _names: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def add(self, program: Program) -> dict[int, str]:
        """Take in a program; return the C text its varying steps read."""
        read = _read_by_varying(program)
        names: dict[int, str] = {}
        texts: dict[int, str] = {}
        for step in program.steps:
            if step.op == "constant" or step.index in program.varying:
                continue
            names[step.index] = self._name(step, names)
            if step.index in read:
                # Only what a function reads takes room in the struct; the others are
                # temporary.
                texts[step.index] = self._field(step, names[step.index])
        return texts

    def _name(self, step: Scalar, names: Mapping[int, str]) -> str:
        if step.op == "input":
            key, index = step.value  # type: ignore[misc]
            return f"p->{key}[{index}]"
        text = self._expression(step, names)
        # What several functions have in common is worked out once.
        if text not in self._names:
            self._count += 1
            kind = self.constants.precision.type
            self._names[text] = f"u{self._count}"
            self.lines.append(f"const {kind} u{self._count} = {text};")
        return self._names[text]

    def _expression(self, step: Scalar, names: Mapping[int, str]) -> str:
        args = [
            self.constants.name(float(a.value))  # type: ignore[arg-type]
            if a.op == "constant"
            else names[a.index]
            for a in step.args
        ]
        if step.op in _INFIX:
            return f"{args[0]} {_INFIX[step.op]} {args[1]}"
        # Parameters enter by sums, products and signs only; there is no other
        # operation.
        return f"-{args[0]}"

    def _field(self, step: Scalar, name: str) -> str:
        """Return where a function reads a step's value."""
        if step.op == "input":
            return name
        key = f"prepared:{name}"
        if key not in self._names:
            self._names[key] = f"p->prepared[{self.size}]"
            self.lines.append(f"p->prepared[{self.size}] = {name};")
            self.size += 1
        return self._names[key]


def struct_fields(model: CodeModel, prepared: Prepared) -> list[tuple[str, int, str]]:
    """Return name, size and meaning of the struct's arrays."""
    fields: list[tuple[str, int, str]] = []
    if model.parameters == "struct":
        fields.append(("body", len(model.bodies), "grouped inertial parameters"))
        drives = "rotor inertia, viscous, Coulomb, offset of each drive"
        fields.append(("drive", len(model.drives), drives))
    if model.has_load:
        meaning = f"m mx my mz Ixx Ixy Ixz Iyy Iyz Izz in {model.frame} [kg, m]"
        fields.append(("load", LOAD_SIZE, meaning))
    if prepared.size:
        fields.append(("prepared", prepared.size, "worked out by prepare"))
    return fields


def _read_by_varying(program: Program) -> set[int]:
    """Indices of uniform steps that a varying step or an output reads."""
    uniform: set[int] = set()
    readers: list[Sequence[Scalar]] = [
        step.args for step in program.steps if step.index in program.varying
    ]
    readers += [
        [x for x in item.entries if isinstance(x, Scalar)] for item in program.outputs
    ]
    for args in readers:
        uniform |= {a.index for a in args if a.index not in program.varying}
    return uniform


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
        angles = {s.args[0].index for s in steps if s.op in ("sin", "cos")}
        return padded(len(angles))

    @property
    def uses_sign(self) -> bool:
        """Whether it needs the sign of something."""
        return any(step.op == "sign" for step in self.program.steps)


@dataclass(frozen=True, eq=False)
class CodeText:
    """The C code of a model, before it is written to files.

    Attributes:
        name: Prefix of all its names.
        model: What it is for.
        precision: Type of its numbers.
        routines: Its functions, in the order asked for.
        constants: Numbers with names.
        prepared: What is worked out once, if parameters are open.
    """

    name: str
    model: CodeModel
    precision: Precision
    routines: tuple[Routine, ...]
    constants: Constants
    prepared: Prepared = field(repr=False)

    @cached_property
    def fields(self) -> list[tuple[str, int, str]]:
        """Name, size and meaning of the struct's arrays; empty if there is none."""
        return struct_fields(self.model, self.prepared)

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
    name: str, model: CodeModel, precision: Precision, programs: dict[str, Program]
) -> CodeText:
    """Turn programs into C functions."""
    constants = Constants(precision)
    prepared = Prepared(constants)
    routines = []
    for name_of, program in programs.items():
        texts = prepared.add(program)
        body = Statements(program, constants, texts).write()
        varying = [i.name for i in program.inputs if not i.is_uniform]
        # Builds of controllers often take warnings for errors: say what is not read.
        unused = [f"(void){key};" for key in varying if _is_unread(program, key)]
        if texts == {} and any(i.is_uniform for i in program.inputs):
            unused.append("(void)p;")
        takes = any(i.is_uniform for i in program.inputs)
        routines.append(Routine(FUNCTIONS[name_of], program, (*unused, *body), takes))
    return CodeText(name, model, precision, tuple(routines), constants, prepared)


def _is_unread(program: Program, name: str) -> bool:
    return not any(
        step.op == "input" and step.value[0] == name  # type: ignore[index]
        for step in program.steps
    )
