"""A report on joint sensors: what was found, gravity as weighed, what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from armwise.calibration import (
    GRAVITY,
    KEPT,
    AdaptiveCalibration,
    Calibration,
    CosineFit,
    Evidence,
    Trace,
)
from armwise.report.formats import save_report
from armwise.report.report import (
    Block,
    BulletList,
    Cell,
    Figure,
    Paragraph,
    Report,
    ReportTable,
    Section,
    Series,
    envelope_rows,
    points_per_curve,
)

# The parts of a report on sensors calibrated by moving: what happened, arm by arm.

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
    return Section(
        "sensors", "Joint sensors", (ReportTable(columns, rows, caption),), data
    )


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
        Series(label, time[::step], values[::step, k] / size, "series")
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
        Series("torque less friction", x[order], torque[order], "measured"),
        Series("cosine", x[order], gravity[order], "predicted"),
    )
    title = f"joint {j + 1}, first arm, the others held"
    return Figure(title, "scaled reading", "N m", curves)


def _errors(found: AdaptiveCalibration) -> Section:
    figures, worst = [], {}
    for name, trace in found.traces.items():
        error = trace.x[:, 0] - trace.wanted[:, 0]
        step = max(1, len(trace.time) // points_per_curve(10))
        curves = tuple(
            Series(f"joint {j + 1}", trace.time[::step], error[::step, j], "series")
            for j in range(error.shape[1])
        )
        figures.append(Figure(name, "time [s]", "scaled reading", curves))
        late = error[len(error) // 2 :]
        worst[name] = [float(x) for x in np.sqrt(np.mean(late**2, axis=0))]
    return Section("errors", "Tracking errors", tuple(figures), {"late_rms": worst})


# A report on joint sensors: what was found, gravity as weighed, what is left.


def make_calibration_report(
    found: Calibration | AdaptiveCalibration, title: str | None = None
) -> Report:
    """Collect all there is to say about a calibration.

    Args:
        found: From a recording, or from moving the arm.
        title: The heading.
    """
    if isinstance(found, AdaptiveCalibration):
        heading = title or "Joint sensors, calibrated by moving"
        return Report(heading, adaptation_sections(found))
    sections = [
        _calibration_sensors(found),
        _hidden(found),
        _calibration_gravity(found),
        _torques(found),
    ]
    if found.flaws.size:
        sections.insert(2, _flaws(found))
    return Report(title or "Joint sensors, against gravity", tuple(sections))


def write_calibration_report(
    found: Calibration | AdaptiveCalibration,
    path: str | Path,
    title: str | None = None,
) -> Path:
    """Write a report on a calibration: .html (self-contained), .json or .txt."""
    return save_report(path, lambda: make_calibration_report(found, title))


def _calibration_sensors(found: Calibration) -> Section:
    """Gain and offset of every joint."""
    columns = ("joint", "gain α [rad/unit]", "±", "offset β [°]", "±")
    numbers = zip(
        found.joint_names,
        found.alpha,
        found.alpha_std,
        np.rad2deg(found.beta),
        np.rad2deg(found.beta_std),
        strict=True,
    )
    rows = tuple((name, *map(_cell, values)) for name, *values in numbers)
    blocks: list[Block] = [
        ReportTable(columns, rows, "θ = α s + β, one standard deviation")
    ]
    if found.notes:
        blocks.append(BulletList(found.notes))
    data = {"joints": [dict(zip(columns, row, strict=True)) for row in rows]}
    return Section("sensors", "Joint sensors", tuple(blocks), data)


def _hidden(found: Calibration) -> Section:
    """What cannot be told, and why."""
    reasons = tuple(
        f"{p.name}: {p.reason}"
        for p in found.observability.prospects
        if not p.is_calibratable
    )
    blocks: tuple[Block, ...] = (
        (BulletList(reasons),)
        if reasons
        else (Paragraph("Everything could be calibrated."),)
    )
    return Section(
        "hidden", "What gravity does not tell", blocks, {"reasons": list(reasons)}
    )


def _flaws(found: Calibration) -> Section:
    """Torque gains and bends found along the way."""
    count = found.flaws.size
    names = found.unknowns[len(found.unknowns) - count :]
    std = np.sqrt(np.diag(found.covariance))[len(found.unknowns) - count :]
    rows = tuple(
        (name, _cell(100.0 * value), _cell(100.0 * doubt))
        for name, value, doubt in zip(names, found.flaws, std, strict=True)
    )
    made = ReportTable(("flaw", "[%]", "±"), rows, "of motors and sensors")
    return Section("flaws", "Small flaws", (made,), {"flaws": [list(r) for r in rows]})


def _calibration_gravity(found: Calibration) -> Section:
    """Gravity's torque over each joint's angle, as weighed and as fitted."""
    shown = found.evidence
    if shown is None:
        return Section("gravity", "Gravity", (_missing(),), {})
    figures = []
    for j, name in enumerate(found.joint_names):
        heard = np.flatnonzero(shown.is_heard[:, j])
        most = points_per_curve(2 * len(found.joint_names))
        rows = heard[:: max(1, heard.size // most)]
        order = rows[np.argsort(shown.q[rows, j])]
        angle = np.rad2deg(shown.q[order, j])
        curves = (
            Series("weighed", angle, shown.weighed[order, j], "measured"),
            Series("fitted", angle, shown.gravity[order, j], "predicted"),
        )
        title = f"{name}: torque of gravity, other joints wherever they were"
        figures.append(Figure(title, "angle [°]", "N m", curves, is_stems=True))
    return Section("gravity", "Gravity, weighed and fitted", tuple(figures), {})


def _torques(found: Calibration) -> Section:
    """Measured and predicted torque over time."""
    shown = found.evidence
    if shown is None:
        return Section("torques", "Torques", (_missing(),), {})
    figures = tuple(
        _torque_figure(name, j, shown) for j, name in enumerate(found.joint_names)
    )
    data: dict[str, Any] = {
        "torque_std": dict(
            zip(found.joint_names, map(float, found.torque_std), strict=True)
        )
    }
    return Section("torques", "Torques, measured and predicted", figures, data)


def _torque_figure(name: str, j: int, shown: Evidence) -> Figure:
    left = shown.measured[:, j] - shown.predicted[:, j]
    rows = envelope_rows(left, points_per_curve(3 * shown.q.shape[1]))
    sample = np.arange(left.size)[rows]
    curves = (
        Series("measured", sample, shown.measured[rows, j], "measured"),
        Series("predicted", sample, shown.predicted[rows, j], "predicted"),
        Series("left", sample, left[rows], "residual"),
    )
    heard = left[shown.is_heard[:, j]]
    size = float(np.sqrt(np.mean(heard**2))) if heard.size else float("nan")
    title = f"{name}: {size:.3g} N m left (root mean square, while it slides)"
    return Figure(title, "sample", "N m", curves)


def _missing() -> Paragraph:
    return Paragraph("The data behind it were not kept.")


def _cell(value: float) -> Cell:
    return float(value) if np.isfinite(value) else None
