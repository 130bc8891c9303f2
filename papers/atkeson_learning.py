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
from papers.rows import Row, agrees, claim, explained, own

TABLE_6_1 = (("5.0", "10.3"), ("5.0", "10.3"), ("5.6", "11.5"))
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
    made = []
    for j, ((speed, push), ours) in enumerate(zip(TABLE_6_1, peaks, strict=True)):
        made += [
            agrees("Table 6.1", f"joint {j + 1}: peak velocity [rad/s]", speed,
                   float(ours[0]), absolute=0.05),
            agrees("Table 6.1", f"joint {j + 1}: peak acceleration [rad/s²]", push,
                   float(ours[1]), absolute=0.1),
        ]  # fmt: skip
    return made


def _arm_rows() -> list[Row]:
    learned, exact = practise().learned, practise_exactly()
    commands = [attempt.command for attempt in practise().attempts]
    change = np.abs(commands[3] - commands[0]).max(axis=0)
    size = np.abs(commands[0]).max(axis=0)
    errors = learned.overall_error
    fall = errors[0] / errors[min(3, len(errors) - 1)]
    left = errors[-1] / learned.overall_floor
    remainder = exact.overall_error[1] / exact.overall_error[0]
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
        claim("Fig. 6.3", "largest change of the torque by learning over its peak, "
              "joints 1 to 3", "practice modifies the feedforward commands",
              change / size, above=0.01, below=1.0,
              why="visible on the plot, and smaller than the command itself",
              shown="; ".join(f"{b:.0f} of {a:.0f} N m" for a, b in zip(
                  size, change, strict=True)), note=note),
        claim(experiment, "velocity error, first trial over fourth",
              "substantial reduction", fall, above=2.0, why="half at least",
              note=note),
        claim(experiment, "velocity error of the fourth trial over the noise floor",
              "near the noise", left, above=0.5, below=1.5,
              why="half as much above it", note=note),
        claim(experiment, "exact model: error left after one trial",
              "perfect after one", remainder, below=1e-6,
              why="what zero-order hold leaves at 4 kHz", note=hold),
    ]  # fmt: skip


def _decoupled_rows() -> list[Row]:
    case = decoupled_case()
    poor, good = case.poor, case.good
    ratio = poor.overall_error[-1] / poor.overall_error[0]
    remainder = good.overall_error[1] / good.overall_error[0]
    note = (
        "The thesis gives neither arm nor times: two_link_slotine, 1.5 and −1.7 rad in "
        "0.5 s. In slow motions the coupling is small and the first trials improve "
        "before they diverge."
    )
    experiment = "Fig. 6.5, decoupled two-joint model"
    warned = int(not case.told.is_recommended) + int(case.told_full.is_recommended)
    return [
        claim(experiment, "velocity error after five updates over the first",
              "no improvement", ratio, above=0.9, why="less than a tenth better",
              note=note),
        own(experiment, "analyses that are right beforehand, of 2: decoupled model, "
            "full model", "what then happened", warned, above=1.5,
            shown=f"{warned} ({case.told.reason}; {case.told_full.reason})", note=note),
        claim(experiment, "full model: error left after one update",
              "perfect after one", remainder, below=1e-3,
              why="a thousandth, what sampling leaves", note=note),
    ]  # fmt: skip


def _sampled_rows() -> list[Row]:
    scaled, inverse = sampled_example()
    growth, gain = float(scaled.impulse_growth[9]), float(scaled.peak_gain or np.nan)
    experiment = "Fig. 6.6"
    note = (
        "1 kHz double integrator, PD 10 Hz, ζ 0.707, one sample of delay, 0.6 s; "
        "L = error / b[0]."
    )
    steady = np.log10(impulse_growth_by_movement())
    return [
        agrees(experiment, "eigenvalues of A − LB, largest", 0.0,
               scaled.spectral_radius, absolute=1e-6, note=note,
               at="|1 − l0 b0| of the convergence criterion"),
        agrees(experiment, "peak gain of A[z]", "530", gain,
               note="read off a computed response in the thesis; 2/(h ω)² exactly"),
        explained(
            agrees(experiment, "growth of the error by the tenth movement, power of "
                   "ten", "26", float(np.log10(growth)), absolute=0.5,
                   note="printed as 10²⁶, so half a decade"),
            "it depends on what counts as a movement: nine updates give 10^{:.1f}, ten "
            "10^{:.1f}, on either side of the printed power", (steady[9], steady[10]),
            above=(20.0, 26.0), below=(26.0, 32.0),
        ),
        agrees(experiment, "growth from one movement to the next, ninth to tenth",
               "530", float(10 ** (steady[10] - steady[9])),
               note="'approximately the factor by which the error was growing'"),
        own(experiment, "does the analysis advise against it (1: yes)",
            "what the thesis shows", int(not scaled.is_recommended), above=0.5,
            note=note),
        claim(experiment, "inverse model: error left after one update",
              "entirely cancelled", inverse.impulse_growth[0], below=1e-6,
              why="rounding", note=note),
    ]  # fmt: skip


def impulse_growth_by_movement() -> np.ndarray:
    """Largest position error of every movement of Fig. 6.6, over the first's."""
    size = np.abs(impulse_errors()).max(axis=1)
    return np.asarray(size / size[0])


def _julia_rows() -> list[Row]:
    experiment = "cross-check: IterativeLearningControl2.jl's test, load 50 % off"
    ours = norm_optimal_errors()
    radius, sigma, norms = proportional_learning()
    whose = "that package's own test values (not in the thesis)"
    published = np.array(PUBLISHED)
    return [
        own(experiment, "error norms of norm-optimal learning",
            f"{whose}: {' '.join(f'{e:.4g}' for e in PUBLISHED)}", ours,
            above=published - 6e-4, below=published + 6e-4),
        own(experiment, "P-type learning: spectral radius, largest singular value",
            f"{whose}: 0.5, 142", (radius, sigma), above=(0.5 - 1e-6, 140.6),
            below=(0.5 + 1e-6, 143.4)),
        own(experiment, "P-type learning: error norm before and after five trials",
            f"{whose}: 2.6, 7e10", (norms[0], norms[-1]), above=(2.55, 6.5e10),
            below=(2.65, 7.5e10)),
    ]  # fmt: skip
