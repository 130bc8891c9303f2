"""Every backend, every equation, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.dynamics.equations import equations
from armwise.programs import Kernel
from armwise.programs.compiler import find_compiler
from tests.programs.test_cuda import has_gpu

ARMS = ["two_link_uno", "tx40", "panda"]
NAMES = sorted(equations(aw.Dynamics(aw.load_arm("two_link_uno"), "numpy").mechanism))


def outputs(program, backend, inputs, uniforms):
    """Run a program on a backend; a list of arrays, samples first."""
    if backend != "jax":
        return Kernel(program, backend)(inputs, uniforms)
    jax = pytest.importorskip("jax", reason="JAX is not installed (extra jax)")
    jax.config.update("jax_enable_x64", True)
    named = dict(zip([item.name for item in program.inputs], inputs, strict=False))
    given = [item.name for item in program.inputs if item.is_uniform]
    named |= dict(zip(given, uniforms, strict=True))
    found = program.to_jax()(**named)
    return [np.asarray(found[item.name]) for item in program.outputs]


@pytest.mark.parametrize("backend", ["c", "jax", "cuda"])
@pytest.mark.parametrize("name", ARMS)
def test_every_equation_on_every_backend(backend, name):
    if backend == "c" and find_compiler() is None:
        pytest.skip("no C compiler on this machine")
    if backend == "cuda" and not has_gpu():
        pytest.skip("no NVIDIA GPU on this machine")
    dynamics = aw.Dynamics(aw.load_arm(name), "numpy")
    rng = np.random.default_rng(1)
    for equation in NAMES if name == "two_link_uno" else ("directed_rows", "regressor"):
        program = dynamics.program(equation)
        sizes = [item.size for item in program.inputs if not item.is_uniform]
        inputs = [rng.uniform(-1.0, 1.0, (13, size)) for size in sizes]
        uniforms = [dynamics.uniforms[i.name] for i in program.inputs if i.is_uniform]
        expected = outputs(program, "numpy", inputs, uniforms)
        found = outputs(program, backend, inputs, uniforms)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11, err_msg=equation)
