"""The parts of a report on sensors calibrated by moving: what happened, arm by arm."""

from __future__ import annotations

import numpy as np

from armwise.calibration import AdaptiveCalibration
from armwise.calibration.bench import KEPT, Trace
from armwise.calibration.polynomial import CosineFit
from armwise.calibration.sensor_control import GRAVITY
from armwise.report.report import Curve, Figure, Section, Table
from armwise.report.thinning import points_per_curve

_PARABOLA = ("inertia", "a", "b", "c")
"""Adapted parameters of one joint (`astley1996` Eq. 4.37)."""


def adaptation_sections(found: AdaptiveCalibration) -> tuple[Section, ...]:
    """Sensors, evolution of the parameters, gravity's curves, tracking errors."""
    return (_sensors(found), _evolution(found), _curves(found), _errors(found))


def _sensors(found: AdaptiveCalibration) -> Section:
    columns = ("arm", "joint", "α [°/V]", "±", "β [°]", "±", "friction [N m]")
    numbers = np.stack(
        [*np.rad2deg([found.alpha, found.alpha_std, found.beta, found.beta_std]),
         found.friction], axis=-1,
    )  # fmt: skip
    arms, joints = found.alpha.shape
    rows = tuple(
        (b + 1, j + 1, *map(float, numbers[b, j]))
        for b in range(arms)
        for j in range(joints)
    )
    caption = "θ = α v + β; deviations are the adaptation's own"
    data = {"sensors": [dict(zip(columns, row, strict=True)) for row in rows]}
    return Section("sensors", "Joint sensors", (Table(columns, rows, caption),), data)


def _evolution(found: AdaptiveCalibration) -> Section:
    figures = [
        _adapted(name, trace)
        for name, trace in found.traces.items()
        if trace.parameters is not None
    ]
    return Section("evolution", "Parameters as they adapt", tuple(figures), {})


def _adapted(name: str, trace: Trace) -> Figure:
    """Every adapted parameter of the first arm, as a share of the largest."""
    assert trace.parameters is not None
    values = trace.parameters[:, 0]
    size = float(np.abs(values[-1]).max()) or 1.0
    time = trace.time[::KEPT][: len(values)]
    step = max(1, len(time) // points_per_curve(4 * values.shape[1]))
    names = (
        _PARABOLA
        if name.startswith("gain")
        else [f"parameter {k + 1}" for k in range(values.shape[1])]
    )
    curves = tuple(
        Curve(label, time[::step], values[::step, k] / size, "series")
        for k, label in enumerate(names)
    )
    return Figure(f"{name}, first arm", "time [s]", "share of the largest", curves)


def _curves(found: AdaptiveCalibration) -> Section:
    """The cosine read off each joint's parabola, over the torques it was read off."""
    figures = [
        _gravity(found.traces[f"gain_{j + 1}"], j, fits[0], float(found.friction[0, j]))
        for j, fits in enumerate(found.fits)
    ]
    return Section("gravity", "Gravity, one joint at a time", tuple(figures), {})


def _gravity(trace: Trace, j: int, fit: CosineFit, friction: float) -> Figure:
    late = slice(len(trace.time) // 2, None)
    step = max(1, len(trace.time) // (2 * points_per_curve(6)))
    x = trace.x[late, 0, j][::step]
    way = np.sign(trace.speed[late, 0, j])[::step]
    torque = trace.u[late, 0, j][::step] - friction * way
    order = np.argsort(x)
    gravity = GRAVITY * fit.moment * np.cos(fit.gain * x + fit.phase)
    curves = (
        Curve("torque less friction", x[order], torque[order], "measured"),
        Curve("cosine", x[order], gravity[order], "predicted"),
    )
    title = f"joint {j + 1}, first arm, the others held"
    return Figure(title, "scaled reading", "N m", curves)


def _errors(found: AdaptiveCalibration) -> Section:
    figures, worst = [], {}
    for name, trace in found.traces.items():
        error = trace.x[:, 0] - trace.wanted[:, 0]
        step = max(1, len(trace.time) // points_per_curve(10))
        curves = tuple(
            Curve(f"joint {j + 1}", trace.time[::step], error[::step, j], "series")
            for j in range(error.shape[1])
        )
        figures.append(Figure(name, "time [s]", "scaled reading", curves))
        late = error[len(error) // 2 :]
        worst[name] = [float(x) for x in np.sqrt(np.mean(late**2, axis=0))]
    return Section("errors", "Tracking errors", tuple(figures), {"late_rms": worst})
