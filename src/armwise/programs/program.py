"""Straight-line programs, and the tracing of functions into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from armwise.programs.scalars import Graph, Number, Scalar

Traced = Callable[..., Mapping[str, object]]
"""Takes lists of scalars, one per input; returns named nested lists of scalars."""


@dataclass(frozen=True)
class Input:
    """An argument: `size` numbers, per sample or, if `is_uniform`, once per call."""

    name: str
    size: int
    is_uniform: bool = False


@dataclass(frozen=True, eq=False)
class Output:
    """A result: its shape per sample and its entries, row by row."""

    name: str
    shape: tuple[int, ...]
    entries: tuple[Number, ...]

    @cached_property
    def nonzero(self) -> tuple[int, ...]:
        """Indices of the entries that are not structurally zero."""
        # A symbol counts even if it may be zero somewhere: structure, not value.
        return tuple(
            k for k, x in enumerate(self.entries) if isinstance(x, Scalar) or x != 0.0
        )


@dataclass(frozen=True, eq=False)
class Program:
    """A function as straight-line code over scalars.

    Attributes:
        name: A C identifier.
        inputs: What it takes, in order.
        outputs: What it gives, in order.
        steps: The operations that matter, each after what it needs.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    steps: tuple[Scalar, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Multiplications, additions, trigonometric calls and divisions.

        Signs are free; subtractions are additions; a product of numbers known before
        the motion starts (parameters, lengths) is not counted.
        """
        varying = self.varying
        tally = Counter(step.op for step in self.steps if step.index in varying)
        return {
            "multiplications": tally["mul"],
            "additions": tally["add"] + tally["sub"],
            "trigonometric": tally["sin"] + tally["cos"],
            "divisions": tally["div"],
        }

    @cached_property
    def varying(self) -> frozenset[int]:
        """Indices of the steps that differ from sample to sample."""
        uniform = {item.name for item in self.inputs if item.is_uniform}
        indices: set[int] = set()
        for step in self.steps:
            if step.op == "input":
                if step.value[0] not in uniform:  # type: ignore[index]
                    indices.add(step.index)
            elif any(argument.index in indices for argument in step.args):
                indices.add(step.index)
        return frozenset(indices)

    def to_jax(self) -> Callable[..., dict[str, Any]]:
        """Return the program as a JAX function, to differentiate and vmap."""
        from armwise.programs.kernel import jax_function

        return jax_function(self)

    def output(self, name: str) -> Output:
        """Return the output of this name."""
        return next(item for item in self.outputs if item.name == name)


def trace(
    name: str,
    function: Traced,
    inputs: Mapping[str, int],
    uniforms: Mapping[str, int] | None = None,
) -> Program:
    """Run a function once on symbolic scalars and keep what it did.

    Args:
        name: Name of the program, a C identifier.
        function: Called with one list of scalars per input, by keyword.
        inputs: Size of each input that differs from sample to sample.
        uniforms: Size of each input that is the same for a whole call.
    """
    uniforms = uniforms or {}
    graph = Graph()
    taken = [Input(key, size) for key, size in inputs.items()]
    taken += [Input(key, size, is_uniform=True) for key, size in uniforms.items()]
    arguments = {
        item.name: [graph.input(item.name, k) for k in range(item.size)]
        for item in taken
    }
    results = function(**arguments)
    outputs = tuple(_output(key, value) for key, value in results.items())
    return build_program(name, tuple(taken), outputs)


def build_program(
    name: str, inputs: tuple[Input, ...], outputs: tuple[Output, ...]
) -> Program:
    """Collect the steps that the outputs need, in order."""
    live: dict[int, Scalar] = {}
    stack = [x for item in outputs for x in item.entries if isinstance(x, Scalar)]
    while stack:
        step = stack.pop()
        if step.index not in live:
            live[step.index] = step
            stack.extend(step.args)
    # The graph appends a node after its arguments: ascending indices are a valid order.
    steps = tuple(live[index] for index in sorted(live))
    return Program(name, inputs, outputs, steps)


def _output(name: str, value: object) -> Output:
    shape: list[int] = []
    probe = value
    while isinstance(probe, Sequence):
        shape.append(len(probe))
        if not probe:
            break
        probe = probe[0]
    entries: list[Number] = []
    _flatten(value, entries)
    return Output(name, tuple(shape), tuple(entries))


def _flatten(value: object, entries: list[Number]) -> None:
    if isinstance(value, Sequence):
        for item in value:
            _flatten(item, entries)
    elif isinstance(value, Scalar):
        entries.append(value)
    else:
        entries.append(float(value))  # type: ignore[arg-type]
