"""Programs as NumPy functions over blocks of samples, and as JAX functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from armwise.errors import MissingExtra
from armwise.programs.program import Program
from armwise.programs.scalars import Scalar

BLOCK = 1024
"""Samples at a time: 8 kB for each step, so that the live ones stay in cache."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}

Step = Callable[[list[np.ndarray], list[np.ndarray]], list[np.ndarray | float]]


def numpy_function(program: Program) -> Step:
    """Return a function of (columns of inputs, uniform inputs) → output entries.

    Each input is given as an array (size, samples) or, if uniform, (size,); entries
    come back in the order of the outputs' structural non-zeros.
    """
    scope = {"np": np}
    exec(compile(python_source(program), f"<{program.name}>", "exec"), scope)
    return scope["run"]  # type: ignore[return-value]


def python_source(program: Program) -> str:
    """Return Python text of `run(x, u)` over a namespace called np."""
    names: dict[int, str] = {}
    lines = ["def run(x, u):"]
    inputs = _input_names(program)
    for step in program.steps:
        name = f"t{step.index}"
        names[step.index] = name
        lines.append(f"    {name} = {_expression(step, names, inputs)}")
    stored = [item.entries[k] for item in program.outputs for k in item.nonzero]
    entries = (
        names[x.index] if isinstance(x, Scalar) else repr(float(x)) for x in stored
    )
    lines.append(f"    return [{', '.join(entries)}]")
    return "\n".join(lines)


def _input_names(program: Program) -> dict[str, str]:
    names: dict[str, str] = {}
    for kind, letter in ((False, "x"), (True, "u")):
        items = [item for item in program.inputs if item.is_uniform is kind]
        names |= {item.name: f"{letter}[{k}]" for k, item in enumerate(items)}
    return names


def _expression(step: Scalar, names: dict[int, str], inputs: dict[str, str]) -> str:
    if step.op == "constant":
        return repr(step.value)
    if step.op == "input":
        key, k = step.value  # type: ignore[misc]
        return f"{inputs[str(key)]}[{k}]"
    args = [names[a.index] for a in step.args]
    if step.op in _INFIX:
        return f"{args[0]} {_INFIX[step.op]} {args[1]}"
    return f"-{args[0]}" if step.op == "neg" else f"np.{step.op}({args[0]})"


# JAX.


def jax_function(program: Program) -> Callable[..., dict[str, Any]]:
    """Return a function of the program's inputs, by name, each of shape (..., size).

    It gives the outputs by name, of shape (..., *shape); uniform inputs are (size,).
    """
    try:
        import jax.numpy as jnp
    except ImportError:
        raise MissingExtra("jax", "jax", "Program.to_jax()") from None
    scope: dict[str, Any] = {"np": jnp}
    exec(compile(python_source(program), f"<{program.name}>", "exec"), scope)
    varying = [item.name for item in program.inputs if not item.is_uniform]
    uniform = [item.name for item in program.inputs if item.is_uniform]

    def function(**inputs: Any) -> dict[str, Any]:
        x = [jnp.moveaxis(jnp.asarray(inputs[name]), -1, 0) for name in varying]
        u = [jnp.asarray(inputs[name]) for name in uniform]
        entries = iter(scope["run"](x, u))
        batch = x[0].shape[1:] if x else ()
        outputs: dict[str, Any] = {}
        for item in program.outputs:
            cells = [jnp.zeros(batch)] * len(item.entries)
            for k in item.nonzero:
                # Entries that depend on uniform inputs only have no batch of their own.
                cells[k] = jnp.broadcast_to(next(entries), batch)
            outputs[item.name] = jnp.stack(cells, axis=-1).reshape(*batch, *item.shape)
        return outputs

    return function
