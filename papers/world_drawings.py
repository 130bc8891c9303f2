"""The figures of `mitchell1997` chapter 2, drawn."""

from __future__ import annotations

import numpy as np

from armwise.errors import MissingExtra
from armwise.report import Figure, Series
from armwise.worlds import Point, Run
from papers.drawings import Drawing, line, path
from papers.mitchell_mechanisms import (
    Cylinder,
    elbow_run,
    hinge_run,
    three_link_run,
)
from papers.mitchell_rivals import compare

FLOOR = 1e-17
"""Where a logarithmic axis ends: what is below is zero."""

FRAME = 1.0 / 3.0
"""Time between the frames of Figure 2.9 in [s]."""


def figures() -> list[Drawing]:
    """Figures 2.2 to 2.12, and the rivals."""
    free, heavy = Cylinder(), Cylinder(has_gravity=True)
    sprung = Cylinder(has_gravity=True, has_spring=True)
    workless = Cylinder(has_gravity=True, gap=0.0).run(20.0)
    return [
        _force("Fig. 2.2", free.run()),
        _energies("Fig. 2.2", free.run()),
        _deviation("Fig. 2.2", free.run()),
        _residual("Fig. 2.3", free.run()),
        _force("Fig. 2.4", heavy.run()),
        _energies("Fig. 2.4", heavy.run()),
        _force("Fig. 2.5", sprung.run()),
        _energies("Fig. 2.5", sprung.run()),
        *_workless_drawings(workless),
        _singular("Fig. 2.8", hinge_run()),
        _frames(three_link_run()),
        _force("Fig. 2.10", three_link_run(), 150.0),
        _energies("Fig. 2.10", three_link_run()),
        _deviation("Fig. 2.10", three_link_run()),
        _force("Fig. 2.11", three_link_run(), is_logarithmic=True, end=0.5),
        _residual("Fig. 2.11", three_link_run(), end=0.5),
        _singular("Fig. 2.11", three_link_run()),
        _force("Fig. 2.12", elbow_run()),
        _singular("Fig. 2.12", elbow_run()),
        *_rival_drawings(),
    ]


def _force(
    name: str,
    run: Run,
    top: float = np.inf,
    is_logarithmic: bool = False,
    end: float = np.inf,
) -> Drawing:
    kept = run.time <= end
    size = np.linalg.norm(run.force("nail"), axis=1)[kept]
    clipped = f", clipped at {top:g} N" if top < np.inf else ""
    figure = Figure(
        f"Magnitude of the constraint's force{clipped}", "time [s]", "force [N]",
        (line("force", run.time[kept], np.minimum(size, top)),),
        is_logarithmic=is_logarithmic,
    )  # fmt: skip
    return Drawing(name, figure)


def _energies(name: str, run: Run) -> Drawing:
    ledger = run.ledger
    zero = np.zeros_like(run.time)
    parts = {"kinetic": ledger.kinetic, "gravitational": ledger.gravitational}
    parts["spring"] = ledger.stored
    sums = {what: sum(found.values(), start=zero) for what, found in parts.items()}
    curves = [line(what, run.time, e) for what, e in sums.items() if np.ptp(e) > 0.0]
    if len(curves) > 1:
        curves.append(line("total", run.time, ledger.energy, "level"))
    figure = Figure("Energy", "time [s]", "energy [J]", tuple(curves))
    return Drawing(name, figure)


def _deviation(name: str, run: Run) -> Drawing:
    figure = Figure(
        "Deviation and its rate", "time [s]", "‖D‖ [m], ‖Ḋ‖ [m/s]",
        (
            line("‖D‖", run.time, np.linalg.norm(run.deviation("nail"), axis=1)),
            line("‖Ḋ‖", run.time, np.linalg.norm(run.deviation_rate("nail"), axis=1)),
        ),
    )  # fmt: skip
    return Drawing(name, figure)


def _residual(name: str, run: Run, end: float = np.inf) -> Drawing:
    kept = run.time <= end
    left = np.where(run.residual > 0.0, run.residual, np.nan)[kept]
    figure = Figure(
        "Residual of the constraint equation", "time [s]", "residual [m/s²]",
        (line("residual", run.time[kept], left),), is_logarithmic=True,
    )  # fmt: skip
    return Drawing(name, figure)


def _singular(name: str, run: Run) -> Drawing:
    values = np.maximum(run.singular_values, FLOOR)
    figure = Figure(
        "Singular values of the constraint matrix", "time [s]", "value [1/kg]",
        tuple(line(f"σ{k + 1}", run.time, y) for k, y in enumerate(values.T)),
        is_logarithmic=True,
    )  # fmt: skip
    note = f"below {FLOOR:g} drawn there" if values.min() == FLOOR else ""
    return Drawing(name, figure, note)


def _workless_drawings(run: Run) -> list[Drawing]:
    D = run.deviation("nail")
    energy = run.ledger.energy
    return [
        Drawing(
            "Fig. 2.6",
            Figure(
                "a. Size of the deviation", "time [s]", "‖D‖ [m]",
                (line("‖D‖", run.time, np.linalg.norm(D, axis=1)),),
            ),
        ),
        Drawing(
            "Fig. 2.6",
            Figure(
                "b. Path of the deviation, seen along y", "x [m]", "z [m]",
                (path("D", D[:, 0], D[:, 2]),),
            ),
        ),
        Drawing(
            "Fig. 2.7",
            Figure(
                "Change of the total energy", "time [s]", "energy [J]",
                (line("change", run.time, energy - energy[0]),),
            ),
            f"of {run.ledger.scale:.3g} J in play",
        ),
    ]  # fmt: skip


def _frames(run: Run) -> Drawing:
    """The arm every third of a second, and the nail, from the side."""
    joints = [Point("arm", (0.0, 0.0, 0.0), f"link_{k}") for k in (1, 2, 3)]
    places = run.point_positions([*joints, Point("arm", link="tip")])
    curves = []
    for k in range(6):
        row = int(np.searchsorted(run.time, k * FRAME))
        arm = places[min(row, len(places) - 1)]
        curves.append(Series(f"{k}/3 s", arm[:, 0], arm[:, 2], "series"))
    (nail,) = run.world.relations
    x, _, z = nail.fixed_target
    curves.append(Series("nail", np.array([x]), np.array([z]), "printed"))
    figure = Figure(
        "Three links on a nail, seen along y", "x [m]", "z [m]", tuple(curves)
    )
    return Drawing("Fig. 2.9", figure, "the thesis prints no pose; ours starts along x")


def _rival_drawings() -> list[Drawing]:
    try:
        found = compare()
    except MissingExtra:
        return []
    first = next(iter(found.values()))
    index = np.arange(len(first), dtype=float)
    figure = Figure(
        "Largest distance from the nail in 5 s", "", "distance [m]",
        tuple(
            Series(name, index, np.array([x.deviation for x in held]), "series")
            for name, held in found.items()
        ),
        is_logarithmic=True, is_stems=True, x_names=tuple(x.by for x in first),
    )  # fmt: skip
    return [Drawing("§2.3.3", figure, "steps of 1 ms, RK4")]
