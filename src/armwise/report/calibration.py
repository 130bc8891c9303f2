"""Report on a calibration of joint sensors: values, gravity curves, residuals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from armwise.calibration import (
    GRAVITY,
    PARAMETER_STRIDE,
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


def make_calibration_report(
    result: Calibration | AdaptiveCalibration, title: str | None = None
) -> Report:
    """Collect the sections of a report on a calibration.

    Args:
        result: From a recording, or from moving the arm.
        title: The heading.
    """
    if isinstance(result, AdaptiveCalibration):
        heading = title or "Joint sensors, calibrated by moving"
        return Report(heading, _adaptation_sections(result))
    sections = [
        _calibration_sensors(result),
        _not_calibrated(result),
        _calibration_gravity(result),
        _torques(result),
    ]
    if result.flaws.size:
        sections.insert(2, _flaws(result))
    return Report(title or "Joint sensors, against gravity", tuple(sections))


def write_calibration_report(
    result: Calibration | AdaptiveCalibration,
    path: str | Path,
    title: str | None = None,
) -> Path:
    """Write a report on a calibration: .html (self-contained), .json or .txt."""
    return save_report(path, lambda: make_calibration_report(result, title))


# Sections on a calibration from a recording.


def _calibration_sensors(result: Calibration) -> Section:
    """Gain and offset of every joint."""
    columns = ("joint", "gain α [rad/unit]", "±", "offset β [°]", "±")
    numbers = zip(
        result.joint_names,
        result.alpha,
        result.alpha_std,
        np.rad2deg(result.beta),
        np.rad2deg(result.beta_std),
        strict=True,
    )
    rows = tuple((name, *map(_cell, values)) for name, *values in numbers)
    blocks: list[Block] = [
        ReportTable(columns, rows, "θ = α s + β, one standard deviation")
    ]
    if result.notes:
        blocks.append(BulletList(result.notes))
    data = {"joints": [dict(zip(columns, row, strict=True)) for row in rows]}
    return Section("sensors", "Joint sensors", tuple(blocks), data)


def _not_calibrated(result: Calibration) -> Section:
    """Unknowns that cannot be calibrated, and why."""
    reasons = tuple(
        f"{p.name}: {p.reason}"
        for p in result.observability.prospects
        if not p.is_calibratable
    )
    blocks: tuple[Block, ...] = (
        (BulletList(reasons),)
        if reasons
        else (Paragraph("Everything could be calibrated."),)
    )
    return Section("hidden", "Not calibrated", blocks, {"reasons": list(reasons)})


def _flaws(result: Calibration) -> Section:
    """Torque gains and bends estimated along with it."""
    count = result.flaws.size
    names = result.unknowns[len(result.unknowns) - count :]
    std = np.sqrt(np.diag(result.covariance))[len(result.unknowns) - count :]
    rows = tuple(
        (name, _cell(100.0 * value), _cell(100.0 * error))
        for name, value, error in zip(names, result.flaws, std, strict=True)
    )
    table = ReportTable(("flaw", "[%]", "±"), rows, "of motors and sensors")
    return Section("flaws", "Small flaws", (table,), {"flaws": [list(r) for r in rows]})


def _calibration_gravity(result: Calibration) -> Section:
    """Gravity's torque over each joint's angle, measured and fitted."""
    evidence = result.evidence
    if evidence is None:
        return Section("gravity", "Gravity", (_missing(),), {})
    figures = []
    for j, name in enumerate(result.joint_names):
        used = np.flatnonzero(evidence.is_used[:, j])
        most = points_per_curve(2 * len(result.joint_names))
        rows = used[:: max(1, used.size // most)]
        # Over the angle, not over time: one curve instead of loops.
        order = rows[np.argsort(evidence.q[rows, j])]
        angle = np.rad2deg(evidence.q[order, j])
        curves = (
            Series("measured", angle, evidence.measured_gravity[order, j], "measured"),
            Series("fitted", angle, evidence.gravity[order, j], "predicted"),
        )
        title = f"{name}: torque of gravity, other joints wherever they were"
        figures.append(Figure(title, "angle [°]", "N m", curves, is_stems=True))
    return Section("gravity", "Gravity, measured and fitted", tuple(figures), {})


def _torques(result: Calibration) -> Section:
    """Measured and predicted torque over time."""
    evidence = result.evidence
    if evidence is None:
        return Section("torques", "Torques", (_missing(),), {})
    figures = tuple(
        _torque_figure(name, j, evidence) for j, name in enumerate(result.joint_names)
    )
    data: dict[str, Any] = {
        "torque_std": dict(
            zip(result.joint_names, map(float, result.torque_std), strict=True)
        )
    }
    return Section("torques", "Torques, measured and predicted", figures, data)


def _torque_figure(name: str, j: int, evidence: Evidence) -> Figure:
    residual = evidence.measured[:, j] - evidence.predicted[:, j]
    rows = envelope_rows(residual, points_per_curve(3 * evidence.q.shape[1]))
    sample = np.arange(residual.size)[rows]
    curves = (
        Series("measured", sample, evidence.measured[rows, j], "measured"),
        Series("predicted", sample, evidence.predicted[rows, j], "predicted"),
        Series("residual", sample, residual[rows], "residual"),
    )
    # Only while it slides: at rest friction takes up whatever it likes.
    used = residual[evidence.is_used[:, j]]
    size = float(np.sqrt(np.mean(used**2))) if used.size else float("nan")
    title = f"{name}: residual {size:.3g} N m (root mean square, while it slides)"
    return Figure(title, "sample", "N m", curves)


def _missing() -> Paragraph:
    return Paragraph("The samples behind it were not stored.")


def _cell(value: float) -> Cell:
    return float(value) if np.isfinite(value) else None


# Sections on a calibration by moving.

_PARABOLA = ("inertia", "a", "b", "c")
"""Adapted parameters of one joint (`astley1996` Eq. 4.37)."""


def _adaptation_sections(result: AdaptiveCalibration) -> tuple[Section, ...]:
    """Sensors, evolution of the parameters, gravity's curves, tracking errors."""
    return (_sensors(result), _evolution(result), _curves(result), _errors(result))


def _sensors(result: AdaptiveCalibration) -> Section:
    columns = ("arm", "joint", "α [°/V]", "±", "β [°]", "±", "friction [N m]")
    numbers = np.stack(
        [*np.rad2deg([result.alpha, result.alpha_std, result.beta, result.beta_std]),
         result.friction], axis=-1,
    )  # fmt: skip
    arms, joints = result.alpha.shape
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


def _evolution(result: AdaptiveCalibration) -> Section:
    figures = [
        _adapted(name, trace)
        for name, trace in result.traces.items()
        if trace.parameters is not None
    ]
    return Section("evolution", "Parameters as they adapt", tuple(figures), {})


def _adapted(name: str, trace: Trace) -> Figure:
    """Every adapted parameter of the first arm, as a fraction of the largest."""
    assert trace.parameters is not None
    values = trace.parameters[:, 0]
    # All zero at the end: nothing was adapted, and nothing is divided by zero.
    size = float(np.abs(values[-1]).max()) or 1.0
    time = trace.time[::PARAMETER_STRIDE][: len(values)]
    # Every n-th row is enough here: adapted parameters are slow and have no spikes.
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
    return Figure(f"{name}, first arm", "time [s]", "fraction of the largest", curves)


def _curves(result: AdaptiveCalibration) -> Section:
    """The cosine read off each joint's parabola, over the torques it was read off."""
    figures = [
        _gravity(
            result.traces[f"gain_{j + 1}"], j, fits[0], float(result.friction[0, j])
        )
        for j, fits in enumerate(result.fits)
    ]
    return Section("gravity", "Gravity, one joint at a time", tuple(figures), {})


def _gravity(trace: Trace, j: int, fit: CosineFit, friction: float) -> Figure:
    # Judgement: in the second half the adaptation has settled.
    late = slice(len(trace.time) // 2, None)
    step = max(1, len(trace.time) // (2 * points_per_curve(6)))
    x = trace.x[late, 0, j][::step]
    direction = np.sign(trace.reference_speed[late, 0, j])[::step]
    # Friction acts with the reference's direction; without it gravity remains, and
    # little inertia, since the waves are slow.
    torque = trace.u[late, 0, j][::step] - friction * direction
    order = np.argsort(x)
    gravity = GRAVITY * fit.moment * np.cos(fit.gain * x + fit.phase)
    curves = (
        Series("torque less friction", x[order], torque[order], "measured"),
        Series("cosine", x[order], gravity[order], "predicted"),
    )
    title = f"joint {j + 1}, first arm, the others held"
    return Figure(title, "scaled reading", "N m", curves)


def _errors(result: AdaptiveCalibration) -> Section:
    figures, worst = [], {}
    for name, trace in result.traces.items():
        error = trace.x[:, 0] - trace.reference[:, 0]
        step = max(1, len(trace.time) // points_per_curve(10))
        curves = tuple(
            Series(f"joint {j + 1}", trace.time[::step], error[::step, j], "series")
            for j in range(error.shape[1])
        )
        figures.append(Figure(name, "time [s]", "scaled reading", curves))
        # Judgement, as above: the transient at the start is not the error it settles
        # to.
        late = error[len(error) // 2 :]
        worst[name] = [float(x) for x in np.sqrt(np.mean(late**2, axis=0))]
    return Section("errors", "Tracking errors", tuple(figures), {"late_rms": worst})
