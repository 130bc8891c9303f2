"""What is the same for many calls: open parameters and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from armwise.codegen.model import LOAD_SIZE, Model
from armwise.codegen.statements import Constants
from armwise.programs import Program
from armwise.programs.scalars import Scalar

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass
class Known:
    """Steps of all functions that depend on open parameters only.

    Attributes:
        constants: Where numbers get their names.
        lines: Statements that work them out, in order.
        size: How many numbers the functions read.
    """

    constants: Constants
    lines: list[str] = field(default_factory=list)
    size: int = 0
    _places: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def add(self, program: Program) -> dict[int, str]:
        """Take in a program; return the C text its varying steps read."""
        wanted = _read_by_varying(program)
        names: dict[int, str] = {}
        texts: dict[int, str] = {}
        for step in program.steps:
            if step.op == "constant" or step.index in program.varying:
                continue
            names[step.index] = self._name(step, names)
            if step.index in wanted:
                texts[step.index] = self._place(step, names[step.index])
        return texts

    def _name(self, step: Scalar, names: Mapping[int, str]) -> str:
        if step.op == "input":
            key, place = step.value  # type: ignore[misc]
            return f"p->{key}[{place}]"
        text = self._expression(step, names)
        if text not in self._places:
            self._count += 1
            kind = self.constants.precision.type
            self._places[text] = f"u{self._count}"
            self.lines.append(f"const {kind} u{self._count} = {text};")
        return self._places[text]

    def _expression(self, step: Scalar, names: Mapping[int, str]) -> str:
        args = [
            self.constants.name(float(a.value))  # type: ignore[arg-type]
            if a.op == "constant"
            else names[a.index]
            for a in step.args
        ]
        if step.op in _INFIX:
            return f"{args[0]} {_INFIX[step.op]} {args[1]}"
        return f"-{args[0]}"

    def _place(self, step: Scalar, name: str) -> str:
        """Return where a function reads a step's value."""
        if step.op == "input":
            return name
        key = f"known:{name}"
        if key not in self._places:
            self._places[key] = f"p->known[{self.size}]"
            self.lines.append(f"p->known[{self.size}] = {name};")
            self.size += 1
        return self._places[key]


def struct_fields(model: Model, known: Known) -> list[tuple[str, int, str]]:
    """Return name, size and meaning of the struct's arrays."""
    fields: list[tuple[str, int, str]] = []
    if model.parameters == "struct":
        fields.append(("body", len(model.bodies), "grouped inertial parameters"))
        drives = "rotor inertia, viscous, Coulomb, offset of each drive"
        fields.append(("drive", len(model.drives), drives))
    if model.has_load:
        meaning = f"m mx my mz Ixx Ixy Ixz Iyy Iyz Izz in {model.place} [kg, m]"
        fields.append(("load", LOAD_SIZE, meaning))
    if known.size:
        fields.append(("known", known.size, "worked out by prepare"))
    return fields


def _read_by_varying(program: Program) -> set[int]:
    """Indices of uniform steps that a varying step or an output reads."""
    found: set[int] = set()
    readers: list[Sequence[Scalar]] = [
        step.args for step in program.steps if step.index in program.varying
    ]
    readers += [
        [x for x in item.entries if isinstance(x, Scalar)] for item in program.outputs
    ]
    for args in readers:
        found |= {a.index for a in args if a.index not in program.varying}
    return found
