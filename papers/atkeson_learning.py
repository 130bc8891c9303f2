"""`atkeson1986` ch. 6: single-trajectory learning, and when it fails."""

from __future__ import annotations

import numpy as np

from armwise.report import Figure, Series
from papers.drawings import Drawing, joint_names, line, lines
from papers.learning_trials import (
    MOTION,
    PUBLISHED,
    decoupled_case,
    impulse_errors,
    norm_optimal_errors,
    practise,
    practise_exactly,
    proportional_learning,
    sampled_example,
)
from papers.rows import Row, row

TABLE_6_1 = ((5.0, 10.3), (5.0, 10.3), (5.6, 11.5))
"""Peak velocity [rad/s] and acceleration [rad/s²] of each joint."""


def rows() -> list[Row]:
    """Chapter 6, ours beside the thesis'."""
    return [
        *_table_rows(),
        *_arm_rows(),
        *_decoupled_rows(),
        *_sampled_rows(),
        *_julia_rows(),
    ]


def figures() -> list[Drawing]:
    """Figures 6.2 to 6.6, and the cross-check."""
    return [
        *_trajectory_drawings(),
        *_feedforward_drawings(),
        *_velocity_error_drawings(),
        *_decoupled_drawings(),
        _growth_drawing(),
        _julia_drawing(),
    ]


def _trajectory_drawings() -> list[Drawing]:
    time = np.linspace(0.0, MOTION.duration, 200)
    sample = MOTION.sample(time)
    shown = (
        ("Position", "[rad]", sample.q),
        ("Velocity", "[rad/s]", sample.qd),
        ("Acceleration", "[rad/s²]", sample.qdd),
    )
    return [
        Drawing(
            "Fig. 6.2",
            Figure(
                f"Desired {name.lower()}", "time [s]", f"{name.lower()} {unit}",
                lines(joint_names(3), time, values),
            ),
        )
        for name, unit, values in shown
    ]  # fmt: skip


def _feedforward_drawings() -> list[Drawing]:
    attempts = practise().attempts
    time = np.arange(len(attempts[0].command)) * attempts[0].period
    return [
        Drawing(
            "Fig. 6.3",
            Figure(
                title, "time [s]", "torque [N m]",
                lines(joint_names(3), time, attempts[k].command),
            ),
        )
        for title, k in (
            ("A. Initial feedforward, from the model", 0),
            ("B. After three practice trials", 3),
        )
    ]  # fmt: skip


def _velocity_error_drawings() -> list[Drawing]:
    first, fourth = (practise().attempts[k] for k in (0, 3))
    time = np.arange(len(first.qd)) * first.period
    return [
        Drawing(
            "Fig. 6.4",
            Figure(
                f"Velocity error of joint {j + 1}", "time [s]", "error [rad/s]",
                (
                    line("A. first", time, (first.qd - first.reference_qd)[:, j]),
                    line("B. fourth", time, (fourth.qd - fourth.reference_qd)[:, j]),
                ),
            ),
        )
        for j in range(3)
    ]  # fmt: skip


def _decoupled_drawings() -> list[Drawing]:
    first, last = (decoupled_case().attempts[k] for k in (0, -1))
    time = np.arange(len(first.q)) * first.period
    return [
        Drawing(
            "Fig. 6.5",
            Figure(
                f"Joint {j + 1} with the decoupled model", "time [s]", "angle [rad]",
                (
                    line("desired", time, first.reference_q[:, j], "level"),
                    line("A. first trial", time, first.q[:, j]),
                    line("B. after five iterations", time, last.q[:, j]),
                ),
            ),
        )
        for j in range(2)
    ]  # fmt: skip


def _growth_drawing() -> Drawing:
    errors = np.abs(impulse_errors())
    time = np.arange(errors.shape[1]) / 1000.0
    chosen = (0, 1, 2, 5, 10)
    curves = tuple(
        line(f"movement {k + 1}", time, np.where(errors[k] > 0.0, errors[k], np.nan))
        for k in chosen
    )
    figure = Figure(
        "Position error after one wrong sample", "time [s]", "error, absolute", curves,
        is_logarithmic=True,
    )  # fmt: skip
    return Drawing("Fig. 6.6", figure, "every movement cancels one sample more")


def _julia_drawing() -> Drawing:
    trials = np.arange(1.0, 6.0)
    figure = Figure(
        "Error norm of norm-optimal learning", "trial", "norm",
        (
            Series("ours", trials, np.array(norm_optimal_errors()), "series"),
            Series("the package", trials, np.array(PUBLISHED), "printed"),
        ),
    )  # fmt: skip
    return Drawing("cross-check: IterativeLearningControl2.jl's test", figure)


def _table_rows() -> list[Row]:
    sample = MOTION.sample(np.linspace(0.0, MOTION.duration, 3001))
    peaks = np.abs(np.stack([sample.qd, sample.qdd])).max(axis=1).T
    return [
        row("Table 6.1", f"joint {j + 1}: peak velocity [rad/s], acceleration [rad/s²]",
            f"{speed:g}, {push:g}", f"{ours[0]:.2f}, {ours[1]:.2f}",
            abs(ours[0] - speed) < 0.05 and abs(ours[1] - push) < 0.1)
        for j, ((speed, push), ours) in enumerate(zip(TABLE_6_1, peaks, strict=True))
    ]  # fmt: skip


def _arm_rows() -> list[Row]:
    learned, exact = practise().learned, practise_exactly()
    commands = [attempt.command for attempt in practise().attempts]
    change = np.abs(commands[3] - commands[0]).max(axis=0)
    size = np.abs(commands[0]).max(axis=0)
    errors = learned.overall_error
    fall = errors[0] / errors[min(3, len(errors) - 1)]
    left = errors[-1] / learned.overall_floor
    rest = exact.overall_error[1] / exact.overall_error[0]
    note = (
        "Simulated ddarm with friction; the model has none and every parameter 10 % "
        "off; 8 Hz zero-phase filter, 500 Hz, tachometer noise 0.005 rad/s."
    )
    experiment = "Fig. 6.4"
    hold = (
        "No filter, no noise, first trial without feedforward, 4 kHz; what is left is "
        "the zero-order hold's own and falls with the square of the period."
    )
    return [
        row("Fig. 6.3", "peak of the initial torque and of what learning changed [N m]",
             "modified; no numbers",
             "; ".join(f"{a:.0f}, {b:.0f}" for a, b in zip(size, change, strict=True)),
             None, note),
        row(experiment, "velocity error, first trial over fourth",
             "substantial reduction", f"{fall:.1f}", fall >= 5, note),
        row(experiment, "velocity error of the fourth trial over the noise floor",
             "near the noise", f"{left:.2f}", left <= 1.5, note),
        row(experiment, "exact model: error left after one trial",
             "perfect after one", f"{rest:.1e}", rest <= 1e-6, hold),
    ]  # fmt: skip


def _decoupled_rows() -> list[Row]:
    case = decoupled_case()
    poor, good = case.poor, case.good
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
        row(experiment, "what the analysis says beforehand", "fails to learn",
             case.told.reason, not case.told.is_recommended, note),
        row(experiment, "what the analysis says of the full model", "perfect after one",
             case.told_full.reason, case.told_full.is_recommended, note),
        row(experiment, "full model: error left after one update",
             "perfect after one", f"{rest:.1e}", rest <= 1e-3, note),
    ]  # fmt: skip


def _sampled_rows() -> list[Row]:
    scaled, inverse = sampled_example()
    growth, gain = float(scaled.impulse_growth[9]), float(scaled.peak_gain or np.nan)
    experiment = "Fig. 6.6"
    note = (
        "1 kHz double integrator, PD 10 Hz, ζ 0.707, one sample of delay, 0.6 s; "
        "L = error / b[0]."
    )
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
    experiment = "cross-check: IterativeLearningControl2.jl's test, load 50 % off"
    ours = norm_optimal_errors()
    radius, sigma, norms = proportional_learning()
    note = "Not in the thesis; computed with that package."
    return [
        row(experiment, "error norms of norm-optimal learning",
            " ".join(f"{e:.4g}" for e in PUBLISHED), " ".join(f"{e:.4g}" for e in ours),
            bool(np.allclose(ours, PUBLISHED, atol=6e-4)), note),
        row(experiment, "P-type learning: spectral radius, largest singular value",
            "0.5, 142", f"{radius:.3g}, {sigma:.0f}",
            abs(radius - 0.5) < 1e-6 and abs(sigma / 142 - 1) < 0.01, note),
        row(experiment, "P-type learning: error norm before and after five trials",
            "2.6, 7e10", f"{norms[0]:.1f}, {norms[-1]:.1e}",
            abs(norms[-1] / 7e10 - 1) < 0.1, note),
    ]  # fmt: skip
