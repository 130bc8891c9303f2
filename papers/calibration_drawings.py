"""The figures of `astley1996` chapters 4 and 5, drawn."""

from __future__ import annotations

import numpy as np

from armwise.calibration import CosineFit, Plan, Trace
from armwise.report import Figure
from papers.astley_calibration import RANGE
from papers.drawings import Drawing, line, path
from papers.single_link import (
    evolution,
    fitted,
    outer_link,
    sensor_curve,
    whole_arm,
)

NAMES = ("α m l²", "a", "b", "c")
GRAVITY = ("A1", "A2", "A3", "A4")
"""Gravity's parameters of both joints; those after them are inertial."""


def figures(plan: Plan | None = None) -> list[Drawing]:
    """The curves."""
    traces = whole_arm(plan).traces
    return [
        *_polynomial_drawings(),
        _friction_drawing(traces["friction_2"]),
        *_sensor_drawings(),
        _parameter_drawing("Fig. 5.7", "joint 2", traces["gain_2"], NAMES),
        *_cosine_drawings("Fig. 5.8", whole_arm(plan).fits[1][0], traces["gain_2"], 1),
        _parameter_drawing("Fig. 5.10", "joint 1", traces["gain_1"], NAMES),
        *_cosine_drawings("Fig. 5.11", whole_arm(plan).fits[0][0], traces["gain_1"], 0),
        _coupled_drawing(traces),
        _parameter_drawing(
            "Fig. 5.13", "joint 2 alone", outer_link(plan).traces["offsets"],
            ("m l cos β", "m l sin β", "inertia"),
        ),
        _parameter_drawing("Fig. 5.14", "both joints", traces["offsets"], GRAVITY),
        _inertial_drawing(traces["offsets"]),
    ]  # fmt: skip


def _polynomial_drawings() -> list[Drawing]:
    q = np.linspace(-1.0, 1.0, 200)
    curve = np.cos(0.8 * q + 0.3)
    fits = {n: np.polynomial.Chebyshev.fit(q, curve, n)(q) for n in (2, 3)}
    names = {2: "2nd order", 3: "3rd order"}
    return [
        Drawing(
            "Fig. 4.5",
            Figure(
                "cos(0.8q + 0.3) and its polynomials", "q", "value",
                (
                    line("cosine", q, curve, "measured"),
                    *(line(names[n], q, y) for n, y in fits.items()),
                ),
            ),
        ),
        Drawing(
            "Fig. 4.5",
            Figure(
                "Errors of the polynomials", "q", "error",
                tuple(line(names[n], q, y - curve) for n, y in fits.items()),
            ),
        ),
    ]  # fmt: skip


def _friction_drawing(trace: Trace) -> Drawing:
    late = slice(len(trace.time) // 5, None)
    figure = Figure(
        "Torque over position on a slow wave, joint 2", "position [V]", "torque [N m]",
        (path("PD control", RANGE * trace.x[late, 0, 1], trace.u[late, 0, 1]),),
    )  # fmt: skip
    return Drawing("Fig. 5.4", figure)


def _sensor_drawings() -> list[Drawing]:
    curves = [sensor_curve(joint) for joint in range(2)]
    bends = [angle - _line(volts, angle) for volts, angle in curves]
    shown = (
        ("Sensor output and joint angle", "angle [°]", [y for _, y in curves]),
        ("Deviation from the best line", "deviation [°]", bends),
    )
    return [
        Drawing(
            "Fig. 5.6",
            Figure(
                title, "output [V]", label,
                tuple(
                    line(f"joint {j + 1}", curves[j][0], y) for j, y in enumerate(parts)
                ),
            ),
        )
        for title, label, parts in shown
    ]  # fmt: skip


def _line(volts: np.ndarray, angle: np.ndarray) -> np.ndarray:
    return np.asarray(np.polyval(np.polyfit(volts, angle, 1), volts))


def _parameter_drawing(
    name: str, what: str, trace: Trace, names: tuple[str, ...]
) -> Drawing:
    found = evolution(trace)
    figure = Figure(
        f"Parameter estimates, {what}", "time [s]", "estimate",
        tuple(line(n, found.time, found.values[:, k]) for k, n in enumerate(names)),
    )  # fmt: skip
    return Drawing(name, figure)


def _inertial_drawing(trace: Trace) -> Drawing:
    found = evolution(trace)
    count = found.values.shape[1] - len(GRAVITY)
    figure = Figure(
        "Inertial parameters, both joints", "time [s]", "estimate [kg m²]",
        tuple(
            line(f"A{k + 5}", found.time, found.values[:, 4 + k]) for k in range(count)
        ),
    )  # fmt: skip
    return Drawing(
        "Fig. 5.15", figure, "the thesis has two, ours all that torque shows"
    )


def _cosine_drawings(
    name: str, fit: CosineFit, trace: Trace, joint: int
) -> list[Drawing]:
    q, parabola, cosine = fitted(fit)
    volts = RANGE * q
    return [
        Drawing(
            name,
            Figure(
                f"Gravity of joint {joint + 1}", "position [V]", "m l cos [kg m]",
                (
                    line("parabola", volts, parabola),
                    line("cosine read off it", volts, cosine, "level"),
                ),
            ),
        ),
        Drawing(
            name,
            Figure(
                "Fitting error", "position [V]", "error [kg m]",
                (line("parabola − cosine", volts, parabola - cosine),),
            ),
        ),
    ]  # fmt: skip


def _coupled_drawing(traces: dict[str, Trace]) -> Drawing:
    figure = Figure(
        "Position errors under adaptive control", "time [s]", "error [V]",
        tuple(
            line(f"joint {j + 1}", t.time, RANGE * (t.x - t.reference)[:, 0, j])
            for j, t in ((0, traces["gain_1"]), (1, traces["gain_2"]))
        ),
    )  # fmt: skip
    return Drawing("Fig. 5.12", figure)
