"""Report on a load: estimate, intervals, measured and predicted wrench."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from armwise.errors import NotIdentifiable, NotPhysical
from armwise.loads import (
    LoadEstimate,
    load_to_dict,
    write_load,
    write_load_estimate,
)
from armwise.report.formats import save_report
from armwise.report.report import (
    Block,
    BulletList,
    Figure,
    Paragraph,
    Report,
    ReportTable,
    Section,
    Series,
    envelope_rows,
    points_per_curve,
)


def make_load_report(load: LoadEstimate, title: str | None = None) -> Report:
    """Return the report on a load: summary, ten parameters, measured and predicted."""
    heading = title or f"The load at {load.frame}"
    return Report(heading, (_summary(load), _numbers(load), _wrench(load)))


def write_load_report(
    load: LoadEstimate, path: str | Path, title: str | None = None
) -> Path:
    """Write a report on a load: .html (self-contained), .json or .txt."""
    return save_report(path, lambda: make_load_report(load, title))


_DRIVER_FILES = {
    "ur": "payload.script",
    "franka": "set_load.json",
    "ros": "inertia.yaml",
    "urdf": "load.urdf",
}


def write_load_files(
    load: LoadEstimate, folder: Path, arm: str
) -> tuple[dict[str, str], list[str]]:
    """Write the estimate, a report, and a file for every robot driver.

    Returns:
        The files by kind, and the drivers' files that cannot be written, one sentence
        per reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {"estimate": str(write_load_estimate(load, folder / "load.json"))}
    title = f"{arm}: the load at {load.frame}"
    files["report"] = str(write_load_report(load, folder / "report.html", title))
    unwritten: dict[str, list[str]] = {}
    for kind, name in _DRIVER_FILES.items():
        try:
            files[kind] = str(write_load(load, folder / name))
        # A driver needs all ten numbers of a body that can exist; the estimate and its
        # report are worth having without.
        except (NotPhysical, NotIdentifiable) as problem:
            unwritten.setdefault(str(problem), []).append(name)
    return files, [
        f"Not written: {', '.join(names)}. {reason}"
        for reason, names in unwritten.items()
    ]


def _summary(load: LoadEstimate) -> Section:
    return Section(
        "load",
        "The load",
        (BulletList(tuple(load.statement().split("\n"))),),
        load_to_dict(load),
    )


def _numbers(load: LoadEstimate) -> Section:
    low, high = load.interval(0.95).T
    rows = tuple(
        (name, _cell(value), _cell(a), _cell(b))
        for name, value, a, b in zip(
            ("m [kg]", "m x [kg m]", "m y", "m z", "Ixx [kg m²]", "Ixy", "Ixz", "Iyy",
             "Iyz", "Izz"),
            load.parameters.vector, low, high, strict=True,
        )
    )  # fmt: skip
    columns = ("parameter", "estimate", "95 % from", "to")
    caption = f"about the origin of {load.frame}, in its axes"
    return Section(
        "parameters",
        "Ten parameters",
        (ReportTable(columns, rows, caption),),
        {"interval_95": [[_cell(a), _cell(b)] for a, b in zip(low, high, strict=True)]},
    )


def _wrench(load: LoadEstimate) -> Section:
    """Draw measured and predicted, channel by channel."""
    series = load.prediction
    if series is None:
        words: tuple[Block, ...] = (Paragraph("The estimate holds no measured data."),)
        return Section("wrench", "Measured and predicted", words, {})
    most = points_per_curve(2 * len(series.channels))
    figures = []
    for k, name in enumerate(series.channels):
        # Rows by the residual, whose spikes one looks for, not by the signal.
        rows = envelope_rows(series.measured[:, k] - series.predicted[:, k], most)
        t = series.time[rows]
        curves = (
            Series("measured", t, series.measured[rows, k], "measured"),
            Series("predicted", t, series.predicted[rows, k], "predicted"),
        )
        unit = "N" if name in ("fx", "fy", "fz") else "N m"
        title = f"{name}: residual {series.rmse[k]:.3g} {unit} (root mean square)"
        figures.append(Figure(title, "time [s]", unit, curves))
    return Section(
        "wrench",
        "Measured and predicted",
        tuple(figures),
        {"rmse": dict(zip(series.channels, series.rmse.tolist(), strict=True))},
    )


def _cell(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
