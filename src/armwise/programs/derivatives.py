"""Derivatives of programs: reverse mode over the graph of scalars.

The gradient of a program is a program again, so it runs wherever the first one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from armwise.errors import ArgumentError
from armwise.programs.program import Program, trace
from armwise.programs.scalars import Number, Scalar, apply

Rule = Callable[[Number], Number]
"""What to put in place of a function of one number."""

WEIGHTS = "weights"
"""Name of the input a gradient program takes besides the program's own."""


def replay(
    program: Program,
    inputs: Mapping[str, Sequence[Number]],
    rules: Mapping[str, Rule] | None = None,
) -> dict[int, Number]:
    """Do a program's steps again on other scalars.

    Args:
        program: Whose steps.
        inputs: What stands for each of its inputs.
        rules: By name of a function (`sign`), what to do instead of it.

    Returns:
        What became of every step, by its index in the program.
    """
    rules = rules or {}
    done: dict[int, Number] = {}
    for step in program.steps:
        args = [done[a.index] for a in step.args]
        if step.op == "input":
            name, index = step.value  # type: ignore[misc]
            done[step.index] = inputs[str(name)][int(index)]
        elif step.op == "constant":
            done[step.index] = float(step.value)  # type: ignore[arg-type]
        elif step.op in rules:
            done[step.index] = rules[step.op](args[0])
        else:
            done[step.index] = _operate(step.op, args)
    return done


def gradient(program: Program, wrt: Sequence[str], name: str | None = None) -> Program:
    """Return the program of ∂⟨w, f(x)⟩/∂x: a vector times the Jacobian.

    It takes the program's inputs and then `weights`: one number for each structural
    non-zero of the program's outputs, in order. It gives one output per name in `wrt`,
    called and sized as that input. The derivative of `sign` is taken as zero.

    Args:
        program: The function f.
        wrt: Names of the inputs x to differentiate by.
        name: What to call the new program.
    """
    entries = [item.entries[k] for item in program.outputs for k in item.nonzero]
    varying, uniform = _sizes(program)

    def backwards(**inputs: list[Number]) -> dict[str, object]:
        weights = inputs.pop(WEIGHTS)
        done = replay(program, inputs)
        adjoints = _adjoints(program, done, entries, weights)
        return {key: _collect(program, key, adjoints) for key in wrt}

    return trace(
        name or f"{program.name}_gradient",
        backwards,
        {**varying, WEIGHTS: len(entries)},
        uniform,
    )


def _adjoints(
    program: Program,
    done: Mapping[int, Number],
    entries: Sequence[Number],
    weights: Sequence[Number],
) -> dict[int, Number]:
    """Carry the weights of the outputs back to every step."""
    adjoints: dict[int, Number] = {}
    for entry, weight in zip(entries, weights, strict=True):
        if isinstance(entry, Scalar):
            adjoints[entry.index] = adjoints.get(entry.index, 0.0) + weight
    # Arguments have smaller indices, so backwards every adjoint is complete before it
    # is passed on.
    for step in reversed(program.steps):
        if step.index not in adjoints or not step.args:
            continue
        slopes = _slopes(step, [done[a.index] for a in step.args], done[step.index])
        for argument, slope in zip(step.args, slopes, strict=True):
            term = slope * adjoints[step.index]
            adjoints[argument.index] = adjoints.get(argument.index, 0.0) + term
    return adjoints


def _slopes(step: Scalar, args: Sequence[Number], value: Number) -> list[Number]:
    """Derivatives of one operation by each of its arguments."""
    match step.op:
        case "add":
            return [1.0, 1.0]
        case "sub":
            return [1.0, -1.0]
        case "neg":
            return [-1.0]
        case "mul":
            return [args[1], args[0]]
        case "div":
            # The quotient itself is used again: −a/b² costs one division less as
            # −(a/b)/b.
            return [1.0 / args[1], -value / args[1]]
        case "sin":
            return [apply("cos", args[0])]
        case "cos":
            return [-apply("sin", args[0])]
        case "sqrt":
            return [0.5 / value]
        case "sign":
            return [0.0]
        case "abs":
            return [apply("sign", args[0])]
        case "exp":
            return [value]
        case "tanh":
            return [1.0 - value * value]
    raise ArgumentError(f"A program with {step.op!r} in it has no gradient here.")


def _collect(
    program: Program, key: str, adjoints: Mapping[int, Number]
) -> list[Number]:
    size = next(item.size for item in program.inputs if item.name == key)
    derivatives: list[Number] = [0.0] * size
    for step in program.steps:
        if step.op == "input" and step.value[0] == key:  # type: ignore[index]
            derivatives[int(step.value[1])] = adjoints.get(step.index, 0.0)  # type: ignore[index]
    return derivatives


def _operate(op: str, args: Sequence[Number]) -> Number:
    match op:
        case "add":
            return args[0] + args[1]
        case "sub":
            return args[0] - args[1]
        case "mul":
            return args[0] * args[1]
        case "div":
            return args[0] / args[1]
        case "neg":
            return -args[0]
    return apply(op, args[0])


def _sizes(program: Program) -> tuple[dict[str, int], dict[str, int]]:
    varying = {i.name: i.size for i in program.inputs if not i.is_uniform}
    uniform = {i.name: i.size for i in program.inputs if i.is_uniform}
    return varying, uniform
