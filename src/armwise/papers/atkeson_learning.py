"""`atkeson1986` ch. 6: single-trajectory learning, and when it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import load_arm
from armwise.control import PD
from armwise.dynamics import Dynamics
from armwise.learning import (
    DecoupledModel,
    Learned,
    LearningAnalysis,
    LinearLoop,
    Stopping,
    ZeroPhase,
    analyse_learning,
    inverse_model,
    inverse_model_along,
    learn,
    linearise_along,
    scaled_error,
)
from armwise.motions import Polynomial, Quintic
from armwise.papers.direct_drive import believed_arm, direct_drive_arm, gains
from armwise.papers.rows import Row, row
from armwise.papers.spring_plant import PUBLISHED, norm_optimal_errors
from armwise.plants import Encoder, SimulatedArm, Tachometer

if TYPE_CHECKING:
    from jaxtyping import Float

MOTION = Quintic(np.array([0.5, 5.0, 4.0]), np.array([4.5, 1.0, -0.5]), 1.5)
"""Table 6.1: peak velocities 5.0, 5.0, 5.6 rad/s."""

ONCE = Stopping(repeats=1, patience=100)
"""No noise floor to look for, and no end before the last trial."""

NOISE = 0.005
"""Tachometer noise in [rad/s]; the thesis shows it but gives no number."""


def practise(trials: int = 4, model_error: float = 0.1, seed: int = 0) -> Learned:
    """Table 6.1's motion on a simulated arm with friction, the model wrong and bare."""
    truth = direct_drive_arm()
    sensors = (Encoder(2.0 * np.pi / 2**16), Tachometer(noise_std=NOISE))

    def plant(trial: int) -> SimulatedArm:
        return SimulatedArm(
            truth, sensors=sensors, seed=1000 * seed + trial, control_rate_hz=500.0
        )

    kp, kd = gains(np.full(3, 12.0), 0.7)
    return learn(
        plant,
        MOTION,
        believed_arm(model_error, seed),
        trials,
        ZeroPhase(8.0),
        feedback=PD(kp, kd),
        stopping=Stopping(tolerance=0.0),
    )


def practise_exactly(rate_hz: float = 4000.0) -> Learned:
    """The exact model, no noise, no friction, beginning without any feedforward."""
    arm = load_arm("ddarm")
    kp, kd = gains(np.full(3, 12.0), 0.7)
    nothing = np.zeros((round(MOTION.duration * rate_hz), 3))
    plant = SimulatedArm(arm, control_rate_hz=rate_hz, plant_rate_hz=8000.0)
    return learn(
        plant, MOTION, arm, 2, None, feedback=PD(kp, kd), initial=nothing, stopping=ONCE
    )


def decoupled_case(
    duration: float = 0.5, trials: int = 6
) -> tuple[Learned, LearningAnalysis, LearningAnalysis, Learned]:
    """§6.5: two joints, each a constant inertia in the learner's eyes.

    Returns:
        What five updates with the decoupled model gave, what the analysis says of the
        decoupled and of the full model, and what one update with the full one gave.
    """
    arm = load_arm("two_link_slotine")
    full = Dynamics(arm)
    simple = DecoupledModel(mean_inertias(full))
    omega = 2.0 * np.pi
    kp, kd = simple.inertia * omega**2, 2.0 * 0.707 * omega * simple.inertia
    motion = Polynomial.seventh_order([0.0, 2.0], [1.5, 0.3], duration)
    plant = SimulatedArm(arm, control_rate_hz=500.0)
    feedback = PD(kp, kd)
    first = _nominal(simple, motion, plant.control_period)
    poor = learn(plant, motion, simple, trials, None, feedback=feedback, stopping=ONCE)
    good = learn(plant, motion, full, 2, None, feedback=feedback, initial=first)
    loop = linearise_along(full, motion, kp, kd, 100)
    told = [
        analyse_learning(loop, inverse_model_along(model, motion, 100), trials - 1)
        for model in (simple, full)
    ]
    return poor, told[0], told[1], good


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
    loop = LinearLoop.of_double_integrator(1000.0, 10.0, 0.707).lifted(samples)
    scaled = scaled_error(1.0 / loop.error[0, 0], samples)
    return analyse_learning(loop, scaled), analyse_learning(loop, inverse_model(loop))


def rows() -> list[Row]:
    """Chapter 6, ours beside the thesis'."""
    return [*_arm_rows(), *_decoupled_rows(), *_sampled_rows(), *_julia_rows()]


def _arm_rows() -> list[Row]:
    learned, exact = practise(), practise_exactly()
    errors = learned.overall_error
    fall = errors[0] / errors[min(3, len(errors) - 1)]
    left = errors[-1] / learned.overall_floor
    rest = exact.overall_error[1] / exact.overall_error[0]
    note = (
        "Simulated ddarm with friction; the model has none and every parameter 10 % "
        "off; 8 Hz zero-phase filter, 500 Hz, tachometer noise 0.005 rad/s."
    )
    experiment = "Table 6.1, ddarm"
    hold = (
        "No filter, no noise, first trial without feedforward, 4 kHz; what is left is "
        "the zero-order hold's own and falls with the square of the period."
    )
    return [
        row(experiment, "velocity error, first trial over fourth",
             "substantial reduction", f"{fall:.1f}", fall >= 5, note),
        row(experiment, "velocity error of the fourth trial over the noise floor",
             "near the noise", f"{left:.2f}", left <= 1.5, note),
        row(experiment, "exact model: error left after one trial",
             "perfect after one", f"{rest:.1e}", rest <= 1e-6, hold),
    ]  # fmt: skip


def _decoupled_rows() -> list[Row]:
    poor, told, told_full, good = decoupled_case()
    ratio = poor.overall_error[-1] / poor.overall_error[0]
    rest = good.overall_error[1] / good.overall_error[0]
    note = (
        "The thesis gives neither arm nor times: two_link_slotine, 1.5 and −1.7 rad in "
        "0.5 s. In slow motions the coupling is small and the first trials improve "
        "before they diverge."
    )
    experiment = "Fig. 6.5, decoupled two-joint model"
    return [
        row(experiment, "velocity error after five updates over the first",
             "no improvement", f"{ratio:.2f}", ratio >= 1.0, note),
        row(experiment, "what the analysis says beforehand", "",
             told.reason, not told.is_recommended, note),
        row(experiment, "what the analysis says of the full model", "",
             told_full.reason, told_full.is_recommended, note),
        row(experiment, "full model: error left after one update",
             "perfect after one", f"{rest:.1e}", rest <= 1e-3, note),
    ]  # fmt: skip


def _sampled_rows() -> list[Row]:
    scaled, inverse = sampled_example()
    growth, gain = float(scaled.impulse_growth[9]), float(scaled.peak_gain or np.nan)
    experiment = "§6.6, 1 kHz example, L = error / b[0]"
    note = "Double integrator, PD 10 Hz, ζ 0.707, one sample of delay, 0.6 s."
    other = "The paper's 530 is read off its simulation; 2/(h ω)² = 506.6 exactly."
    return [
        row(experiment, "spectral radius", "0",
             f"{scaled.spectral_radius:.1g}", scaled.spectral_radius < 1e-9, note),
        row(experiment, "growth of the error after ten updates", "1e26",
             f"{growth:.2e}", abs(growth / 4.67e26 - 1) < 0.01, note),
        row(experiment, "peak gain of A[z]", "530",
             f"{gain:.1f}", abs(gain / 506.6 - 1) < 0.01, other),
        row(experiment, "is it recommended", "no",
             "yes" if scaled.is_recommended else "no", not scaled.is_recommended, note),
        row(experiment, "inverse model: error left after one update",
             "entirely cancelled", f"{inverse.impulse_growth[0]:.1e}",
             inverse.impulse_growth[0] < 1e-6, note),
    ]  # fmt: skip


def _julia_rows() -> list[Row]:
    ours = norm_optimal_errors()
    close = np.allclose(ours, PUBLISHED, atol=6e-4)
    return [
        row(
            "cross-check: IterativeLearningControl2.jl's test, load 50 % off",
            "error norms of norm-optimal learning",
            " ".join(f"{e:.4g}" for e in PUBLISHED),
            " ".join(f"{e:.4g}" for e in ours),
            bool(close),
            "Not in the thesis; computed with that package.",
        )
    ]
