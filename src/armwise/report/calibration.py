"""A report on joint sensors: what was found, gravity as weighed, what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from armwise.calibration import AdaptiveCalibration, Calibration
from armwise.calibration.evidence import Evidence
from armwise.report.adaptation import adaptation_sections
from armwise.report.report import (
    Block,
    Cell,
    Curve,
    Figure,
    Items,
    Report,
    Section,
    Table,
    Words,
)
from armwise.report.save import save_report
from armwise.report.thinning import points_per_curve, telling_rows


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
    sections = [_sensors(found), _hidden(found), _gravity(found), _torques(found)]
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


def _sensors(found: Calibration) -> Section:
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
    blocks: list[Block] = [Table(columns, rows, "θ = α s + β, one standard deviation")]
    if found.notes:
        blocks.append(Items(found.notes))
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
        (Items(reasons),) if reasons else (Words("Everything could be calibrated."),)
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
    made = Table(("flaw", "[%]", "±"), rows, "of motors and sensors")
    return Section("flaws", "Small flaws", (made,), {"flaws": [list(r) for r in rows]})


def _gravity(found: Calibration) -> Section:
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
            Curve("weighed", angle, shown.weighed[order, j], "measured"),
            Curve("fitted", angle, shown.gravity[order, j], "predicted"),
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
    rows = telling_rows(left, points_per_curve(3 * shown.q.shape[1]))
    sample = np.arange(left.size)[rows]
    curves = (
        Curve("measured", sample, shown.measured[rows, j], "measured"),
        Curve("predicted", sample, shown.predicted[rows, j], "predicted"),
        Curve("left", sample, left[rows], "residual"),
    )
    heard = left[shown.is_heard[:, j]]
    size = float(np.sqrt(np.mean(heard**2))) if heard.size else float("nan")
    title = f"{name}: {size:.3g} N m left (root mean square, while it slides)"
    return Figure(title, "sample", "N m", curves)


def _missing() -> Words:
    return Words("The data behind it were not kept.")


def _cell(value: float) -> Cell:
    return float(value) if np.isfinite(value) else None
