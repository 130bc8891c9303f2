"""The test plant of IterativeLearningControl2.jl: a cross-check from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.learning import LiftedLoop, LinearLoop, norm_optimal

if TYPE_CHECKING:
    from jaxtyping import Float

RATE_HZ = 50.0

PUBLISHED = (2.633, 0.920, 0.698, 0.611, 0.5615)
"""Error norms of optimisation-based learning, load 50 % heavier than believed."""

_PID = ([10.0, 20.0, 10.0], [0.02, 1.0, 0.0])
"""10 (1 + 1/s)(s + 1)/(0.02 s + 1) as numerator and denominator."""


def double_mass(load: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Motor and load joined by a spring: J_m = 1, k = 100, c0 = c1 = c2 = 1.

    Args:
        load: Inertia of the load in [kg m²]; the motor's position is controlled.
    """
    A = np.array(
        [
            [0.0, 1.0, 0.0, 0.0],
            [-100.0, -2.0, 100.0, 1.0],
            [0.0, 0.0, 0.0, 1.0],
            [100.0 / load, 1.0 / load, -100.0 / load, -2.0 / load],
        ]
    )
    push = np.array([[0.0], [1.0], [0.0], [0.0]])
    return A, push, np.array([[1.0, 0.0, 0.0, 0.0]])


def spring_loop(load: float, samples: int) -> LiftedLoop:
    """The plant under its PID controller, command to position."""
    from scipy.signal import tf2ss

    return LinearLoop.of_feedback(double_mass(load), tf2ss(*_PID), RATE_HZ).lifted(
        samples
    )


def reference() -> Float[np.ndarray, " samples"]:
    """f(sin t) with f(x) = sign(x)((|x| + 0.01)^0.2 − 0.01^0.2), t = 0 … 3π."""
    x = np.sin(np.arange(0.0, 3.0 * np.pi, 1.0 / RATE_HZ))
    wave: np.ndarray = np.sign(x) * ((np.abs(x) + 0.01) ** 0.2 - 0.01**0.2)
    return wave


def first_error(load: float) -> Float[np.ndarray, " samples"]:
    """Position minus reference under the controller alone."""
    from scipy.signal import cont2discrete, tf2ss

    A, B, C = double_mass(load)
    Ac, Bc, Cc, Dc = tf2ss(*_PID)
    closed = np.block([[A - B @ Dc @ C, B @ Cc], [-Bc @ C, Ac]])
    see = np.hstack([C, np.zeros((1, Ac.shape[0]))])
    none = np.zeros((1, 1))
    system = (closed, np.vstack([B @ Dc, Bc]), see, none)
    step, push, *_ = cont2discrete(system, 1.0 / RATE_HZ, "zoh")
    state, out = np.zeros((closed.shape[0], 1)), []
    wanted = reference()
    for value in wanted:
        out.append((see @ state).item())
        state = step @ state + push * value
    return np.array(out) - wanted


def norm_optimal_errors(trials: int = 5) -> list[float]:
    """Error norms, trial by trial, believing in a load of 1 while it is 1.5."""
    start = first_error(1.5)
    model, truth = (spring_loop(load, start.size) for load in (1.0, 1.5))
    operator = norm_optimal(model, command_weight=1e-5, change_weight=1e-4)
    assert operator.smoothing is not None
    command, norms = np.zeros(start.size), []
    for _ in range(trials):
        error = start + truth.error @ command
        norms.append(float(np.linalg.norm(error)))
        command = operator.smoothing @ (command - operator.gain @ error)
    return norms


def proportional_learning(trials: int = 5) -> tuple[float, float, list[float]]:
    """P-type learning: half of what the first response asks for, one sample ahead.

    Returns:
        Spectral radius (the last sample left out: nothing corrects it), largest
        singular value, and the error norms before and after each trial.
    """
    start = first_error(1.5)
    T = spring_loop(1.5, start.size).error
    ahead = np.eye(start.size, k=1) * 0.5 / T[1, 0]
    Z = np.eye(start.size) - ahead @ T
    radius = float(np.abs(np.diag(Z)[:-1]).max())  # Z is triangular
    command, norms = np.zeros(start.size), []
    for _ in range(trials + 1):
        error = start + T @ command
        norms.append(float(np.linalg.norm(error)))
        command = command - ahead @ error
    return radius, float(np.linalg.norm(Z, 2)), norms
