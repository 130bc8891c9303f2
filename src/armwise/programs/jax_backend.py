"""A program as a JAX function: to differentiate, to vmap, to run where JAX runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from armwise.errors import MissingExtra
from armwise.programs.numpy_backend import python_source
from armwise.programs.program import Program


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
        given: dict[str, Any] = {}
        for item in program.outputs:
            cells = [jnp.zeros(batch)] * len(item.entries)
            for k in item.nonzero:
                cells[k] = jnp.broadcast_to(next(entries), batch)
            given[item.name] = jnp.stack(cells, axis=-1).reshape(*batch, *item.shape)
        return given

    return function
