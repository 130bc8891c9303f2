"""Learning trials of `atkeson1986` ch. 6, and operators that diverge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import load_arm
from armwise.control import PD
from armwise.dynamics import Dynamics
from armwise.learning import (
    DecoupledModel,
    Learned,
    LearningAnalysis,
    LearningOperator,
    LiftedLoop,
    LinearLoop,
    Stopping,
    Trial,
    ZeroPhase,
    analyse_learning,
    inverse_model,
    inverse_model_along,
    learn,
    linearise_along,
    norm_optimal,
    scaled_error,
)
from armwise.motions import Polynomial, Quintic
from armwise.plants import Encoder, SimulatedArm, Tachometer
from papers.direct_drive import believed_arm, direct_drive_arm, gains

if TYPE_CHECKING:
    from jaxtyping import Float


MOTION = Quintic(np.array([0.5, 5.0, 4.0]), np.array([4.5, 1.0, -0.5]), 1.5)
"""Table 6.1: peak velocities 5.0, 5.0, 5.6 rad/s."""

ONCE = Stopping(repeats=1, patience=100)
"""No noise floor to look for, and no end before the last trial."""

NOISE = 0.005
"""Tachometer noise in [rad/s]; the thesis shows it but gives no number."""


@dataclass(frozen=True, eq=False)
class Practice:
    """What was learned, and every attempt on the way."""

    learned: Learned
    attempts: tuple[Trial, ...]


@cache
def practise(trials: int = 4, model_error: float = 0.1, seed: int = 0) -> Practice:
    """Table 6.1's motion on a simulated arm with friction, the model wrong and bare."""
    truth = direct_drive_arm()
    sensors = (Encoder(2.0 * np.pi / 2**16), Tachometer(noise_std=NOISE))

    def plant(trial: int) -> SimulatedArm:
        return SimulatedArm(
            truth, sensors=sensors, seed=1000 * seed + trial, control_rate_hz=500.0
        )

    kp, kd = gains(np.full(3, 12.0), 0.7)
    attempts: list[Trial] = []
    learned = learn(
        plant,
        MOTION,
        believed_arm(model_error, seed),
        trials,
        ZeroPhase(8.0),
        feedback=PD(kp, kd),
        stopping=Stopping(tolerance=0.0),
        on_trial=lambda number, trial: attempts.append(trial),
    )
    return Practice(learned, tuple(attempts))


def practise_exactly(rate_hz: float = 4000.0) -> Learned:
    """The exact model, no noise, no friction, beginning without any feedforward."""
    arm = load_arm("ddarm")
    kp, kd = gains(np.full(3, 12.0), 0.7)
    nothing = np.zeros((round(MOTION.duration * rate_hz), 3))
    plant = SimulatedArm(arm, control_rate_hz=rate_hz, plant_rate_hz=8000.0)
    return learn(
        plant, MOTION, arm, 2, None, feedback=PD(kp, kd), initial=nothing, stopping=ONCE
    )


@dataclass(frozen=True, eq=False)
class Decoupled:
    """§6.5: two joints, each a constant inertia in the learner's eyes.

    Attributes:
        poor: What five updates with the decoupled model gave.
        attempts: All six attempts with it.
        told, told_full: What the analysis says of the decoupled and the full model.
        good: What one update with the full model gave.
    """

    poor: Learned
    attempts: tuple[Trial, ...]
    told: LearningAnalysis
    told_full: LearningAnalysis
    good: Learned


@cache
def decoupled_case(duration: float = 0.5, trials: int = 6) -> Decoupled:
    """Learn with the decoupled model, then with the full one."""
    arm = load_arm("two_link_slotine")
    full = Dynamics(arm)
    simple = DecoupledModel(mean_inertias(full))
    omega = 2.0 * np.pi
    kp, kd = simple.inertia * omega**2, 2.0 * 0.707 * omega * simple.inertia
    motion = Polynomial.seventh_order([0.0, 2.0], [1.5, 0.3], duration)
    plant = SimulatedArm(arm, control_rate_hz=500.0)
    feedback = PD(kp, kd)
    first = _nominal(simple, motion, plant.control_period)
    attempts: list[Trial] = []
    poor = learn(
        plant, motion, simple, trials, None, feedback=feedback, stopping=ONCE,
        on_trial=lambda number, trial: attempts.append(trial),
    )  # fmt: skip
    good = learn(plant, motion, full, 2, None, feedback=feedback, initial=first)
    loop = linearise_along(full, motion, kp, kd, 100)
    told = [
        analyse_learning(loop, inverse_model_along(model, motion, 100), trials - 1)
        for model in (simple, full)
    ]
    return Decoupled(poor, tuple(attempts), told[0], told[1], good)


def mean_inertias(dynamics: Dynamics) -> Float[np.ndarray, " dof"]:
    """Mean of the largest and smallest inertia of each joint over all postures."""
    turns = np.linspace(0.0, 2.0 * np.pi, 361)
    postures = np.stack([np.zeros_like(turns), turns], axis=1)
    diagonal = np.diagonal(dynamics.mass_matrix(postures), axis1=1, axis2=2)
    middle: np.ndarray = 0.5 * (diagonal.max(axis=0) + diagonal.min(axis=0))
    return middle


def _nominal(
    model: DecoupledModel, motion: Polynomial, period: float
) -> Float[np.ndarray, "samples dof"]:
    middle = (np.arange(round(motion.duration / period)) + 0.5) * period
    return model.inverse_dynamics(*motion.sample(middle))


def sampled_example(samples: int = 600) -> tuple[LearningAnalysis, LearningAnalysis]:
    """§6.6: 1 kHz double integrator under PD; error / b[0], and the inverse model."""
    loop, scaled = _scaled(samples)
    return analyse_learning(loop, scaled), analyse_learning(loop, inverse_model(loop))


def impulse_errors(
    updates: int = 10, samples: int = 600
) -> Float[np.ndarray, "movements samples"]:
    """Fig. 6.6: position errors, movement by movement, of one wrong first sample."""
    loop, scaled = _scaled(samples)
    Z = scaled.propagation(loop)
    command = np.zeros(samples)
    command[0] = 1.0
    errors = []
    for _ in range(updates + 1):
        errors.append(loop.error @ command)
        command = Z @ command
    return np.array(errors)


def _scaled(samples: int) -> tuple[LiftedLoop, LearningOperator]:
    loop = LinearLoop.of_double_integrator(1000.0, 10.0, 0.707).lifted(samples)
    return loop, scaled_error(1.0 / loop.error[0, 0], samples)


# Cross-check: the test plant of IterativeLearningControl2.jl.

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
