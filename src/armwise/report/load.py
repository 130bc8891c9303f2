"""A report on a load: what is held, how sure that is, measured and predicted wrench."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from armwise.loads import LoadEstimate, load_to_dict
from armwise.report.report import (
    Block,
    Curve,
    Figure,
    Items,
    Report,
    Section,
    Table,
    Words,
    points_per_curve,
    telling_rows,
)
from armwise.report.save import save_report


def make_load_report(load: LoadEstimate, title: str | None = None) -> Report:
    """Collect all there is to say about a load."""
    heading = title or f"The load at {load.frame}"
    return Report(heading, (_summary(load), _numbers(load), _wrench(load)))


def write_load_report(
    load: LoadEstimate, path: str | Path, title: str | None = None
) -> Path:
    """Write a report on a load: .html (self-contained), .json or .txt."""
    return save_report(path, lambda: make_load_report(load, title))


def _summary(load: LoadEstimate) -> Section:
    return Section(
        "load",
        "What is held",
        (Items(tuple(load.statement().split("\n"))),),
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
        (Table(columns, rows, caption),),
        {"interval_95": [[_cell(a), _cell(b)] for a, b in zip(low, high, strict=True)]},
    )


def _wrench(load: LoadEstimate) -> Section:
    """Draw measured and predicted, channel by channel."""
    shown = load.prediction
    if shown is None:
        words: tuple[Block, ...] = (Words("The data behind it were not kept."),)
        return Section("wrench", "Measured and predicted", words, {})
    most = points_per_curve(2 * len(shown.channels))
    figures = []
    for k, name in enumerate(shown.channels):
        left = shown.measured[:, k] - shown.predicted[:, k]
        rows = telling_rows(left, most)
        t = shown.time[rows]
        curves = (
            Curve("measured", t, shown.measured[rows, k], "measured"),
            Curve("predicted", t, shown.predicted[rows, k], "predicted"),
        )
        unit = "N" if name in ("fx", "fy", "fz") else "N m"
        title = f"{name}: {shown.rmse[k]:.3g} {unit} left (root mean square)"
        figures.append(Figure(title, "time [s]", unit, curves))
    return Section(
        "wrench",
        "Measured and predicted",
        tuple(figures),
        {"rmse": dict(zip(shown.channels, shown.rmse.tolist(), strict=True))},
    )


def _cell(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
