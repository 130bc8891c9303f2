"""`mitchell1997` ch. 3: mixture compensators against PD and Slotine–Li."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.report import Figure, Series
from papers.drawings import Drawing, line, path, tics
from papers.mitchell_grid import (
    RATE_HZ,
    coarse_instability,
    errors,
    medians,
    unstable,
    whole_grid,
)
from papers.mitchell_runs import (
    fast_sinusoid,
    fluctuation,
    informed_error,
    pd_errors,
)
from papers.mitchell_tasks import ADAPTIVE, AREAS, Task
from papers.rows import Row, claim, explained

if TYPE_CHECKING:
    import polars as pl


# Figures.

SLOTINE, UNO = "two_link_slotine", "two_link_uno"

SCALES = tuple(np.linspace(0.05, 1.0, 20).tolist())
"""Bandwidths over which Fig. 3.3 is drawn."""


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
    figure = Figure(
        "Error of PD on Uno's arm", "bandwidth scale k", "L2 error [rad]",
        tuple(
            Series(f"gain ×{gain:g}", np.array(SCALES), values, "series")
            for gain, values in pd_errors(SCALES).items()
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


# Tables: our numbers beside the paper's.

__all__ = ["figures", "rows"]

NOTE = (
    "24 tasks (2 motion types, 3 areas, 4 speeds) × 2 arms; 30 s of adaptation, L2 "
    "error over 10 s divided by PD's; K_p 9, K_d 1, 500 Hz. Two of the areas, the "
    "viscosity and the gating centres are ours: the scan has lost them."
)


def rows(
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
    grid: pl.DataFrame | None = None,
) -> list[Row]:
    """Figures 3.3 to 3.10, ours beside the thesis'.

    Args:
        workers: Processes for the grid.
        progress: Told (done, all) as the grid goes on.
        grid: Another outcome of `run_grid`, such as a part of it.
    """
    frame = whole_grid(workers, progress) if grid is None else grid
    return [
        *_pd_rows(),
        _fast_row(),
        *_scheme_rows(frame),
        *_gain_rows(frame),
        *_force_rows(frame),
        *_partition_rows(frame),
        *_fluctuation_rows(),
    ]


def _pd_rows() -> list[Row]:
    errors = pd_errors()
    text = "; ".join(
        f"gain ×{gain:g}: " + ", ".join(f"{e:.3f}" for e in row)
        for gain, row in errors.items()
    )
    stiffer = [
        float(np.max(errors[high] / errors[low]))
        for low, high in ((1.0, 2.0), (2.0, 4.0))
    ]
    slower = [float(np.max(row[:-1] / row[1:])) for row in errors.values()]
    note = "Uno arm; speeds ¼, ½, ¾, 1; gains 1, 2 and 4 times K_p 9, K_d 1"
    softest = pd_errors(SCALES)[1.0]
    return [
        claim("Fig. 3.3", "PD error, twice the gain over the gain, at its worst speed",
              "stiffer is better", stiffer, below=1.0, why="less error",
              shown=f"{stiffer[0]:.2f}, {stiffer[1]:.2f} ({text} rad)", note=note),
        explained(
            claim("Fig. 3.3", "PD error, each speed over the next higher, at worst: "
                  "gains ×1, ×2, ×4", "slower is better", slower, below=1.0,
                  why="less error", note=note),
            "the softest loop has a resonance below full speed: its error is largest "
            "at k = {:.2f} and less beyond", SCALES[int(np.argmax(softest))],
            above=0.5, below=0.96,
        ),
    ]  # fmt: skip


def _fast_row() -> Row:
    pd, mixture = (fast_sinusoid(name).l2_error(30.0) for name in ("PD", "M4"))
    return claim(
        "Fig. 3.6",
        "L2 error of PD (Fig. 3.4) over that of M4 on the fast sinusoid",
        "PD does a rather poor job; a dramatic improvement",
        pd / mixture,
        above=4.0,
        why="a quarter of the error at most",
        shown=f"{pd / mixture:.1f} ({pd:.3f} and {mixture:.3f} rad)",
        note="Uno arm, standard sinusoid, the last 10 of 40 s; η = 0.05",
    )


def _scheme_rows(frame: pl.DataFrame) -> list[Row]:
    made = []
    for rule in ("gradient", "recursive"):
        found = medians(frame, rule, 0.01, "none")
        others = min(v for k, v in found.items() if k != "IDSL")
        text = ", ".join(f"{k} {v:.2f}" for k, v in found.items())
        name = f"Fig. 3.5, {rule} rule, η = 0.01, no external force"
        made += [
            claim(name, "median normalised error of the worst adaptive scheme",
                  "all substantially better than PD", max(found.values()), below=0.5,
                  why="half of PD's error at most", shown=text, note=NOTE),
            explained(
                claim(name, "median error of IDSL over that of the best mixture",
                      "IDSL is best", found["IDSL"] / others, below=1.0,
                      why="less error", note=NOTE),
                "the thesis shows IDSL with the gradient rule only; under the other "
                "rule it is best on Uno's arm, {:.2f} of the best mixture, and falls "
                "behind on Slotine and Li's",
                _standing(medians(frame, rule, 0.01, "none", UNO)), below=1.0,
            ),
        ]  # fmt: skip
    return made


def _standing(found: dict[str, float]) -> float:
    """Median error of IDSL over that of the best mixture."""
    return found["IDSL"] / min(v for k, v in found.items() if k != "IDSL")


def _gain_rows(frame: pl.DataFrame) -> list[Row]:
    made = []
    note = (
        f"{NOTE} Unstable: the arm or its parameters ran away, or the error passed 2π "
        "rad."
    )
    high, low = coarse_instability(0.1), coarse_instability(0.01)
    for rule, eta in (
        ("gradient", 0.1), ("recursive", 0.1), ("gradient", 0.05), ("gradient", 0.01),
        ("recursive", 0.01),
    ):  # fmt: skip
        counts = unstable(frame, rule, eta)
        found = medians(frame, rule, eta, "none", "two_link_uno")
        is_high = eta == 0.1
        row = claim(
            f"Fig. 3.7, η = {eta:g}, {rule} rule",
            "cells that are unstable, and one (so that none counts as one)",
            "unstable for some schemes" if is_high else "stable",
            1 + sum(counts.values()),
            above=2.0 if is_high else 1.0,
            below=np.inf if is_high else 1.5,
            why="one cell at least" if is_high else "none",
            shown=f"{sum(counts.values())} unstable {counts or ''}; medians on the "
            "Uno arm " + ", ".join(f"{k} {v:.2f}" for k, v in found.items()),
            note=note,
        )
        made.append(
            explained(row, "instability comes from discretisation, so it depends on "
                      "the integrator (the thesis has an adaptive Runge–Kutta): at "
                      "100 Hz instead of 500 ours has {:.0f} unstable cells",
                      sum(high.values()), above=0.5)
        )  # fmt: skip
    made.append(
        claim(
            "Fig. 3.7, gradient rule, 100 Hz",
            "unstable cells of 432 at η = 0.1, over one more than at η = 0.01",
            "high gains can induce instability, because of discretisation",
            sum(high.values()) / (1 + sum(low.values())),
            above=2.0,
            why="twice as many at least",
            shown=f"{sum(high.values())} ({', '.join(high)}), {sum(low.values())}",
            note="the same tasks at a fifth of the rate: why 500 Hz shows none at "
            "η = 0.1",
        )
    )
    return made


def _force_rows(frame: pl.DataFrame) -> list[Row]:
    made, gaps = [], {}
    for force in ("none", "gravity", "viscosity"):
        found = medians(frame, "gradient", 0.01, force)
        mixtures = float(np.median([v for k, v in found.items() if k != "IDSL"]))
        gaps[force] = float(abs(np.log(mixtures / found["IDSL"])))
        if force == "none":
            continue
        experiment = f"Fig. {'3.8' if force == 'gravity' else '3.9'}, {force}"
        made += [
            explained(
                claim(
                    experiment, "gap between mixtures and IDSL (factor either way), "
                    "with over without the force, logarithms",
                    "the gap closes", gaps[force] / gaps["none"], below=1.0,
                    why="a smaller factor than without it, whoever is ahead",
                    shown=f"{gaps[force] / gaps['none']:.2f} (mixtures over IDSL "
                    f"{mixtures / found['IDSL']:.2f}; without force a factor of "
                    f"{np.exp(gaps['none']):.2f})", note=NOTE,
                ),
                "IDSL's parameters cannot express gravity, which no controller knows "
                "of, and the mixtures' bias terms can: with gravity's terms IDSL errs "
                "{:.3f} times as much on the standard sinusoid", informed_error(),
                below=0.5,
            ),
            claim(
                experiment, "median normalised error of the worst scheme",
                "improvements over PD are still typical", max(found.values()),
                below=1.0, why="better than PD",
                shown=", ".join(f"{k} {v:.2f}" for k, v in found.items()), note=NOTE,
            ),
        ]  # fmt: skip
    return made


def _partition_rows(frame: pl.DataFrame) -> list[Row]:
    found = medians(frame, "gradient", 0.01, "none")
    mixtures = [found[name] for name in ADAPTIVE if name != "IDSL"]
    return [
        claim("Partitions", "worst over best median of M1 … M8", "little difference",
              max(mixtures) / min(mixtures), above=1.0, below=2.0,
              why="less than a factor of two", note=NOTE)
    ]  # fmt: skip


def _fluctuation_rows() -> list[Row]:
    spread, error = fluctuation()
    return [
        claim("Fig. 3.10", "late fluctuation of M4's largest parameters, relative",
              "parameters do not converge but fluctuate", spread, above=0.05, below=1.0,
              why="more than a twentieth of their size, visible on the plot, and less "
              "than all of it",
              shown=f"{spread:.2f} (error {error:.3f} rad)",
              note="Standard sinusoid on the Uno arm, η = 0.05, the last 10 of 40 s.")
    ]  # fmt: skip
