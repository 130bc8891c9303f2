"""`aah1986` §2.1 and §4.1: recursive estimates, and what an estimate is for."""

from __future__ import annotations

import numpy as np

from armwise.report import Figure
from papers.atkeson_loads import BAR, BAR_INERTIA
from papers.drawings import Drawing, line
from papers.load_uses import (
    OBJECTS,
    grasps,
    held,
    recognised,
    recursive,
    rigid_and_loose,
    without,
)
from papers.rows import Row, row

_NOTE = "PUMA, shaking, with encoders and a sensor that drifts; 15 s designed for loads"


def rows() -> list[Row]:
    """What §2.1 and §4.1 say can be done with an estimate, done."""
    return [*_recursive_rows(), _recognition_row(), _grasp_row(), _rigidity_row()]


def figures() -> list[Drawing]:
    """The mass, sample by sample."""
    _, masses = recursive()
    time, mass = masses.T
    figure = Figure(
        "Recursive estimate of the bar's mass", "time [s]", "mass [kg]",
        (
            line("recursive", time, mass),
            line("all at once", time[[0, -1]], [held("bar").mass] * 2, "level"),
        ),
    )  # fmt: skip
    return [Drawing("§2.1", figure)]


def _recursive_rows() -> list[Row]:
    online, _ = recursive()
    batch = held("bar")
    few = without(("fx", "tz"))
    apart = abs(online.mass - batch.mass)
    miss = [
        1e3 * float(np.abs(x.central_inertia - BAR_INERTIA).max()) for x in (batch, few)
    ]
    return [
        row("§2.1, recursive", "mass, sample by sample and all at once [kg]",
            "the same estimate", f"{online.mass:.4f}, {batch.mass:.4f}", apart < 0.005,
            f"true {BAR.mass:g} kg; the second weighs every frequency by its noise"),
        row("§2.1, missing components", "largest inertia error with six components and "
            "without fx and tz [10⁻³ kg m²]", "their rows drop out",
            f"{miss[0]:.2f}, {miss[1]:.2f}", miss[1] < 1.0, _NOTE),
    ]  # fmt: skip


def _recognition_row() -> Row:
    found = recognised()
    right = sum(name == told for name, told in found.items())
    return row(
        "uses of an estimate, recognition",
        f"objects recognised, of {len(OBJECTS)}: {', '.join(OBJECTS)}",
        "match mass and principal moments",
        right,
        right == len(OBJECTS),
        f"three weigh 1.1 kg, so moments must tell; {_NOTE}",
    )


def _grasp_row() -> Row:
    proper, near, far = grasps()
    words = {True: "as expected", False: "noticed"}
    return row(
        "uses of an estimate, grasp",
        "block held right, 10 mm off and 20 mm off",
        "verify where an object is held",
        ", ".join(words[x] for x in (proper, near, far)),
        proper and not far,
        f"joints off by 0.2° allow no more; {_NOTE}",
    )


def _rigidity_row() -> Row:
    rigid, loose = (x.rigidity for x in rigid_and_loose())
    assert rigid is not None
    assert loose is not None
    return row(
        "uses of an estimate, rigidity",
        "wrench that a rigid load leaves unexplained: the bar, a bar that sloshes [%]",
        "residuals tell",
        f"{100 * rigid.unexplained:.1f} ({'rigid' if rigid.is_rigid else 'not'}), "
        f"{100 * loose.unexplained:.1f} ({'rigid' if loose.is_rigid else 'not'})",
        rigid.is_rigid and not loose.is_rigid,
        f"a fifth of its wrench comes 0.15 s late; {_NOTE}",
    )
