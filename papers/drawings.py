"""Figures of the papers as data, for a page or a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.report import Figure, Role, Series, envelope_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

POINTS = 400
"""Most points of one curve: about what a screen's width shows."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure of a paper, ours.

    Attributes:
        experiment: Which figure or table of the paper it belongs to.
        figure: What is drawn.
        note: Conditions, and how it differs from the paper's.
    """

    experiment: str
    figure: Figure
    note: str = ""


def line(name: str, x: ArrayLike, y: ArrayLike, role: Role = "series") -> Series:
    """A curve of no more points than a screen shows; its spikes stay."""
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    rows = envelope_rows(np.nan_to_num(up), POINTS)
    return Series(name, across[rows], up[rows], role)


def path(name: str, x: ArrayLike, y: ArrayLike, role: Role = "series") -> Series:
    """A curve that may turn back: every k-th point of it."""
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    step = max(1, -(-across.size // POINTS))
    return Series(name, across[::step], up[::step], role)


def lines(
    names: Iterable[str], x: ArrayLike, columns: np.ndarray
) -> tuple[Series, ...]:
    """Several curves over the same axis, one per column."""
    return tuple(line(n, x, y) for n, y in zip(names, columns.T, strict=True))


def joint_names(count: int) -> list[str]:
    """`joint 1`, `joint 2`, …"""
    return [f"joint {j + 1}" for j in range(count)]


def paper_points(name: str, x: ArrayLike, y: ArrayLike) -> Series:
    """Numbers that a paper prints, as points."""
    return Series(name, np.asarray(x, float), np.asarray(y, float), "printed")


def tics(name: str, x: np.ndarray, middle: np.ndarray, size: np.ndarray) -> Series:
    """Upright lines from middle − size to middle + size."""
    gap = np.full_like(x, np.nan)
    across = np.stack([x, x, gap], axis=1).ravel()
    up = np.stack([middle - size, middle + size, gap], axis=1).ravel()
    return Series(name, across, up, "level")


def to_plain(drawing: Drawing) -> dict[str, Any]:
    """Return a drawing as JSON has it, five digits each; gaps are null."""
    figure = drawing.figure
    return {
        "experiment": drawing.experiment,
        "note": drawing.note,
        "title": figure.title,
        "x_label": figure.x_label,
        "y_label": figure.y_label,
        "is_logarithmic": figure.is_logarithmic,
        "is_x_logarithmic": figure.is_x_logarithmic,
        "is_stems": figure.is_stems,
        "x_names": list(figure.x_names),
        "curves": [
            {"name": c.name, "role": c.role, "x": _short(c.x), "y": _short(c.y)}
            for c in figure.curves
        ],
    }


def from_plain(plain: dict[str, Any]) -> Drawing:
    """Return the drawing that `to_plain` wrote."""
    values = dict(plain)
    experiment, note = values.pop("experiment"), values.pop("note")
    curves = tuple(
        Series(c["name"], np.array(c["x"], float), np.array(c["y"], float), c["role"])
        for c in values.pop("curves")
    )
    names = tuple(values.pop("x_names"))
    return Drawing(experiment, Figure(curves=curves, x_names=names, **values), note)


def to_lines(drawings: Sequence[Drawing]) -> list[str]:
    """Say in words what is drawn: every curve's range and end."""
    texts = []
    for drawing in drawings:
        figure = drawing.figure
        texts.append(f"{drawing.experiment}: {figure.title}; {figure.y_label}")
        texts += [f"  {curve.name}: {_range(curve)}" for curve in figure.curves]
    return texts


def _range(curve: Series) -> str:
    values = curve.y[np.isfinite(curve.y)]
    if values.size == 0:
        return "nothing"
    low, high, last = float(values.min()), float(values.max()), float(values[-1])
    return f"{low:.4g} to {high:.4g}, {last:.4g} at the end"


def _short(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.5g}") if np.isfinite(v) else None for v in values]
