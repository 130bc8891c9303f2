"""The figures of `mitchell1997` chapter 3, drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.report import Figure, Series
from papers.drawings import Drawing, line, path, tics
from papers.mitchell_grid import RATE_HZ, whole_grid
from papers.mitchell_runs import fast_sinusoid, pd_errors
from papers.mitchell_statistics import errors
from papers.mitchell_tasks import ADAPTIVE, AREAS, Task

if TYPE_CHECKING:
    import polars as pl

SLOTINE, UNO = "two_link_slotine", "two_link_uno"


def figures(grid: pl.DataFrame | None = None) -> list[Drawing]:
    """Figures 3.2 to 3.10."""
    frame = whole_grid() if grid is None else grid
    return [
        *_task_drawings(),
        _pd_drawing(),
        *_pursuit_drawings("Fig. 3.4", "PD"),
        _bars("Fig. 3.5", "Slotine–Li arm, sinusoids, η = 0.01", frame, SLOTINE, 0.01,
              motion="sinusoid"),
        *_pursuit_drawings("Fig. 3.6", "M4"),
        *(
            _bars("Fig. 3.7", f"Uno arm, η = {eta:g}", frame, UNO, eta)
            for eta in (0.1, 0.05, 0.01)
        ),
        _gravity_drawing(frame),
        _bars("Fig. 3.8", "b. With gravity, η = 0.01", frame, None, 0.01, "gravity"),
        _bars("Fig. 3.9", "With nonlinear viscosity, η = 0.01", frame, None, 0.01,
              "viscosity"),
        _parameter_drawing(),
        _partition_drawing(frame),
    ]  # fmt: skip


def _task_drawings() -> list[Drawing]:
    time = np.linspace(0.0, 8.0, 800)
    areas = []
    for name, ((a1, a2), (b1, b2)) in AREAS.items():
        x = a1 + np.array([0.0, 2.0, 2.0, 0.0, 0.0]) * b1
        y = a2 + np.array([-1.0, -1.0, 1.0, 1.0, -1.0]) * b2
        areas.append(Series(name, x, y, "series"))
    made = [("a. Areas of joint space", tuple(areas))]
    for letter, kind in (("b", "sinusoid"), ("c", "point to point")):
        q = Task(kind, "wide", 1.0).plan(8.0).sample(time).q
        made.append((f"{letter}. {kind.capitalize()}", (path(kind, q[:, 0], q[:, 1]),)))
    return [
        Drawing(
            "Fig. 3.2",
            Figure(title, "shoulder [rad]", "elbow [rad]", curves),
            "two of the areas are ours: the scan has lost them" if k == 0 else "",
        )
        for k, (title, curves) in enumerate(made)
    ]


def _pd_drawing() -> Drawing:
    scales = tuple(np.linspace(0.05, 1.0, 20).tolist())
    figure = Figure(
        "Error of PD on Uno's arm", "bandwidth scale k", "L2 error [rad]",
        tuple(
            Series(f"gain ×{gain:g}", np.array(scales), values, "series")
            for gain, values in pd_errors(scales).items()
        ),
    )  # fmt: skip
    return Drawing("Fig. 3.3", figure, "gain 1 is K_p 9, K_d 1")


def _pursuit_drawings(experiment: str, name: str) -> list[Drawing]:
    found = fast_sinusoid(name)
    late = found.time > 32.0
    q, wanted = found.q[late], found.wanted[late]
    return [
        Drawing(
            experiment,
            Figure(
                f"a. Joint errors of {name}", "time [s]", "error [rad]",
                (
                    line("shoulder", found.time[late], (q - wanted)[:, 0]),
                    line("elbow", found.time[late], (q - wanted)[:, 1]),
                ),
            ),
        ),
        Drawing(
            experiment,
            Figure(
                f"b. Path of {name} in joint space", "shoulder [rad]", "elbow [rad]",
                (
                    path("desired", wanted[:, 0], wanted[:, 1], "level"),
                    path("actual", q[:, 0], q[:, 1]),
                ),
            ),
        ),
    ]  # fmt: skip


def _bars(
    experiment: str,
    title: str,
    frame: pl.DataFrame,
    arm: str | None,
    eta: float,
    force: str = "none",
    motion: str | None = None,
) -> Drawing:
    """Means of every scheme, both rules, and one standard deviation of each."""
    index = np.arange(len(ADAPTIVE), dtype=float)
    curves = []
    for k, rule in enumerate(("gradient", "recursive")):
        found = list(errors(frame, rule, eta, force, arm, motion=motion).values())
        if not any(x.size for x in found):
            continue
        mean, std = (np.array([_of(f, x) for x in found]) for f in (np.mean, np.std))
        place = index + 0.15 * (2 * k - 1)
        curves.append(Series(f"{rule} rule, mean", place, mean, "series"))
        curves.append(tics("one standard deviation", place, mean, std))
    figure = Figure(
        title, "", "error over PD's", tuple(curves), is_stems=True, x_names=ADAPTIVE
    )
    return Drawing(experiment, figure, "unstable cells left out; lines: one std")


def _of(statistic: Callable[[np.ndarray], Any], values: np.ndarray) -> float:
    return float(statistic(values)) if values.size else float("nan")


def _gravity_drawing(frame: pl.DataFrame) -> Drawing:
    index = np.arange(len(ADAPTIVE), dtype=float)
    curves = []
    for force, name in (("none", "without gravity"), ("gravity", "with gravity")):
        found = errors(frame, "gradient", 0.01, force, column="l2").values()
        mean = np.array([_of(np.mean, x) for x in found])
        curves.append(Series(name, index, mean, "series"))
    figure = Figure(
        "a. Absolute errors, gradient rule, η = 0.01", "", "L2 error [rad]",
        tuple(curves), is_stems=True, x_names=ADAPTIVE,
    )  # fmt: skip
    return Drawing("Fig. 3.8", figure)


def _parameter_drawing() -> Drawing:
    weights = fast_sinusoid("M4").weights
    largest = np.argsort(-np.abs(weights[-1]))[:6]
    time = np.arange(len(weights)) / RATE_HZ
    figure = Figure(
        "The six largest parameters of M4", "time [s]", "value",
        tuple(line(f"parameter {k + 1}", time, weights[:, k]) for k in sorted(largest)),
    )  # fmt: skip
    return Drawing("Fig. 3.10", figure, "Uno arm, standard sinusoid, η = 0.05")


def _partition_drawing(frame: pl.DataFrame) -> Drawing:
    found = errors(frame, "gradient", 0.01, "none")
    counts = np.arange(1.0, 9.0)
    medians = np.array([_of(np.median, found[f"M{n}"]) for n in range(1, 9)])
    figure = Figure(
        "Median error of mixtures, no external force", "partitions", "error over PD's",
        (Series("gradient rule, η = 0.01", counts, medians, "series"),),
    )  # fmt: skip
    return Drawing("Partitions", figure)
