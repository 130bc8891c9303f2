"""Gradients of programs agree with finite differences, on both backends."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.dynamics import Dynamics
from armwise.programs import Kernel, cos, sign, sin, sqrt, trace
from armwise.programs.derivatives import gradient, replay
from armwise.programs.scalars import apply

RNG = np.random.default_rng(6)


def every_operation(x, y, u):
    a, b, c = x
    f = a * b - sin(a * c) / (2.0 + cos(b)) + sqrt(1.0 + a * a)
    g = -apply("exp", 0.3 * c) * y[0] + apply("tanh", a - c) - apply("abs", b) * u[0]
    return {"first": [f, 0.0, a + b], "second": [[g, 3.0], [sign(a), f * g]]}


@pytest.mark.parametrize("backend", ["c", "numpy"])
def test_gradient_of_every_operation(backend):
    program = trace("f", every_operation, {"x": 3, "y": 1}, {"u": 1})
    slope = Kernel(gradient(program, ("x", "y")), backend)
    run = Kernel(program, backend)
    x, y, u = RNG.normal(size=(50, 3)), RNG.normal(size=(50, 1)), np.array([0.7])
    stored = [item.nonzero for item in program.outputs]
    weights = RNG.normal(size=(50, sum(map(len, stored))))
    by_x, by_y = slope([x, y, weights], [u])

    def weighed(x, y):
        outputs = run([x, y], [u])
        flat = [o.reshape(50, -1)[:, k] for o, k in zip(outputs, stored, strict=True)]
        return (np.hstack(flat) * weights).sum(axis=1)

    h = 1e-6
    for j in range(3):
        step = h * np.eye(3)[j]
        slope_j = (weighed(x + step, y) - weighed(x - step, y)) / (2 * h)
        np.testing.assert_allclose(by_x[:, j], slope_j, atol=1e-7)
    slope_y = (weighed(x, y + h) - weighed(x, y - h)) / (2 * h)
    np.testing.assert_allclose(by_y[:, 0], slope_y, atol=1e-7)


def test_gradient_keeps_zeros_of_inputs_that_do_not_matter():
    program = trace("f", lambda x: {"y": [x[1] * x[1]]}, {"x": 3})
    slope = gradient(program, ("x",))
    assert slope.output("x").nonzero == (1,)
    (found,) = Kernel(slope, "numpy")([np.array([[1.0, 2.0, 3.0]]), np.array([[5.0]])])
    np.testing.assert_array_equal(found, [[0.0, 20.0, 0.0]])


def test_replay_puts_rules_in_place_of_functions():
    program = trace("f", lambda x: {"y": [sign(x[0]) + x[0]]}, {"x": 1})
    done = replay(program, {"x": [0.25]}, {"sign": lambda x: 10.0 * x})
    entry = program.outputs[0].entries[0]
    assert done[entry.index] == pytest.approx(2.75)


def test_torque_gradient_is_the_mass_matrix():
    """∂⟨w, τ⟩/∂q̈ = M w: the mass matrix comes from another program."""
    dynamics = Dynamics(load_arm("panda"))
    program = dynamics.program("inverse_dynamics")
    kernel = Kernel(gradient(program, ("qdd",)))
    q, qd, qdd, w = RNG.normal(size=(4, 20, 7))
    uniforms = [dynamics.uniforms[i.name] for i in program.inputs if i.is_uniform]
    (slope,) = kernel([q, qd, qdd, w], uniforms)
    expected = np.einsum("sij,sj->si", dynamics.mass_matrix(q), w)
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-9)
