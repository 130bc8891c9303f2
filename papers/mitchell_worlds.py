"""`mitchell1997` chapter 2: its figures on dynamic constraints, ours beside them.

The thesis prints curves without numbers, so "paper" holds what its text says of them;
masses, lengths, springs and bounds are its own, starting poses and λ are ours.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from armwise.errors import MissingExtra, WorldError
from armwise.worlds import (
    CashKarp,
    Pseudoinverse,
    RigidBody,
    Run,
    World,
    rod,
    simulate,
)
from papers.mitchell_mechanisms import (
    Cylinder,
    breaking_run,
    critically_damped,
    elbow_run,
    hinge_run,
    three_link_run,
    three_link_world,
)
from papers.mitchell_rivals import compare
from papers.rows import Row, agrees, claim, explained, own
from papers.world_drawings import figures

__all__ = ["figures", "rows"]


def rows(rival_duration: float = 5.0) -> list[Row]:
    """Run every experiment of chapter 2 and compare with what the thesis says.

    Args:
        rival_duration: How long others hold the same mechanisms, in [s].
    """
    return [
        *_cylinder_rows(),
        *_workless_rows(),
        *_hinge_rows(),
        *_strength_rows(),
        *_singular_rows(),
        *_elbow_rows(),
        *_rival_rows(rival_duration),
    ]


def _cylinder_rows() -> list[Row]:
    free, heavy, sprung = (
        Cylinder(gravity, spring).run()
        for gravity, spring in ((False, False), (True, False), (True, True))
    )
    law = critically_damped(free, "nail")
    miss = float(np.abs(free.deviation("nail") - law).max())
    kinetic = free.ledger.kinetic["cylinder"]
    force = np.linalg.norm(free.force("nail"), axis=1)
    late = free.time > 5.0
    energy = heavy.ledger.energy[heavy.time > 5.0]
    heavy_force = np.linalg.norm(heavy.force("nail"), axis=1)[heavy.time > 5.0]
    same = max(
        float(np.abs(run.deviation("nail") - free.deviation("nail")).max())
        for run in (heavy, sprung)
    )
    size = float(np.sqrt(np.mean(law**2)))
    along = float((free.deviation("nail") * law).sum() / (law * law).sum()) * size
    scale = heavy.ledger.scale
    return [
        agrees("Fig. 2.2", "D under D̈ + 2λḊ + λ²D = 0: size, largest deviation of ours "
               "[m]", (size, 0.0), (along, miss), absolute=1e-8,
               at="the equation solved", shown=f"{along:.5g}, {miss:.0e}"),
        claim("Fig. 2.2", "kinetic energy injected [J]; its late variation over that",
              "rises from 0, approaches a constant",
              (float(kinetic[-1]), float(np.ptp(kinetic[late]) / kinetic[-1])),
              above=(0.01, 0.0), below=(0.5, 1e-3),
              why="a hundredth of a joule shows on the plot; constant to a thousandth"),
        claim("Fig. 2.2", "late variation of the force over its largest",
              "the force approaches a constant",
              float(np.ptp(force[late]) / force.max()), below=1e-3,
              why="constant to a thousandth"),
        claim("Fig. 2.3", "largest residual [m/s²]", "microscopic",
              float(free.residual.max()), below=1e-9, why="rounding"),
        claim("Fig. 2.4", "late variation of the energy, relative",
              "approaches a constant", float(np.ptp(energy) / scale), below=1e-3,
              why="constant to a thousandth"),
        claim("Fig. 2.4", "late force, largest over smallest", "oscillates",
              float(heavy_force.max() / heavy_force.min()), above=1.1,
              why="a tenth at least, visible on the plot"),
        claim("Fig. 2.5", "kinetic energy left after the run, of the largest energy",
              "10 N/m, 3 N s/m: the motion dies down",
              float(sprung.ledger.kinetic["cylinder"][-1] / scale), below=0.01,
              why="a hundredth"),
        claim("Figs. 2.2–2.5", "D differs between the three by, of its size",
              "the point is driven identically", same / size, below=1e-6,
              why="rounding and integration"),
    ]  # fmt: skip


def _workless_rows() -> list[Row]:
    run = Cylinder(has_gravity=True, gap=0.0).run(20.0)
    largest = float(np.linalg.norm(run.deviation("nail"), axis=1).max())
    ledger = run.ledger
    drift = float((ledger.energy[-1] - ledger.energy[0]) / ledger.scale)
    booked = float(
        ledger.work_of("constraint")[-1] + ledger.work_of("stabilisation")[-1]
    )
    spin = _spinning()
    change = float(np.abs(spin.ledger.energy / spin.ledger.energy[0] - 1).max())
    return [
        claim("Fig. 2.6", "largest ‖D‖ over 20 s from D = 0 [m]", "small", largest,
              below=1e-4, why="a ten-thousandth of the cylinder's length"),
        explained(
            claim("Fig. 2.7", "energy drift over 20 s, relative",
                  "a steady drift, by the constraint's force", abs(drift), above=1e-3,
                  why="what a plot shows",
                  note="the constraint's work and the stabilisation's are integrated "
                  f"here with the state; booked to the nail: {booked:.1e} J"),
            "the drift is the integrator's: with steps of 60 ms instead of 1 ms ours "
            "is {:.4f}", _coarse_drift(0.06), above=1e-3, below=0.1,
        ),
        claim("§2.3.2", "energy change of the free, spinning cylinder, relative",
              "in practice perfectly conserved", change, below=1e-9, why="rounding"),
        own("§2.3.2", "ledger balance of the 20 s, relative", "our aim",
            ledger.relative_balance, below=1e-8),
    ]  # fmt: skip


def _coarse_drift(step: float) -> float:
    """A probe: energy drift over 20 s at a coarser step [s]."""
    coarse = simulate(Cylinder(has_gravity=True, gap=0.0).world(), 20.0, step=step)
    ledger = coarse.ledger
    return float(abs(ledger.energy[-1] - ledger.energy[0]) / ledger.scale)


def _spinning() -> Run:
    segment = rod(1.0, (0.0, 0.0, -0.5), (0.0, 0.0, 0.5), 0.05)
    body = RigidBody.from_segments(
        "cylinder", [segment], None, (0.0, 0.0, 0.0), (1.0, 2.0, 3.0)
    )
    return simulate(World((body,), gravity=(0.0, 0.0, 0.0)), 20.0)


def _hinge_rows() -> list[Row]:
    run = hinge_run()
    values = run.singular_values
    ratio = float((values[:, 0] / values[:, 1]).max())
    rank = int((values[0] > 1e-9 * values[0, -1]).sum())
    return [
        agrees("Fig. 2.8", "rank of A for a hinge of two points (6 rows)", "5", rank,
               absolute=0.5, note="removes 5 degrees of freedom: underdetermined"),
        own("Fig. 2.8", "σ1 / σ2 at most; largest ‖D‖ over 5 s [m]", "our aim",
            (abs(ratio), run.largest_deviation), below=(1e-6, 1e-6)),
    ]  # fmt: skip


def _strength_rows() -> list[Row]:
    strong, weak, worn = (breaking_run(force) for force in (1000.0, 2.0, 12.0))
    fall = float(np.sqrt(2.0 * 0.05 / 9.81))
    largest = float(np.linalg.norm(worn.force("nail"), axis=1).max())
    return [
        claim("§2.3.4", "what a nail of 1000 N holds within [m]",
              "holds below its strength", strong.largest_deviation, below=1e-6,
              why="it holds"),
        own("§2.3.4", "a nail of 2 N breaks at 5 cm of its fall [s]",
            f"free fall: {fall:.4f} s", weak.log[0].time, above=0.98 * fall,
            below=1.02 * fall, note="it cannot hold the rod at all: every singular "
            "value is dropped"),
        claim("§2.3.4", "a nail of 12 N: largest force over its strength",
              "never more than its strength", largest / 12.0, above=0.9, below=1.0001,
              why="used, and not exceeded",
              note=f"the swinging rod asks for 24 N; it breaks at "
              f"{worn.log[0].time:.2f} s"),
    ]  # fmt: skip


def _singular_rows() -> list[Row]:
    run = three_link_run()
    careful = simulate(three_link_world(), 5.0, integrator=CashKarp())
    force = np.linalg.norm(run.force("nail"), axis=1)
    deviation = np.linalg.norm(run.deviation("nail"), axis=1)
    values = run.singular_values
    zero = values[0] < 1e-9 * values[0, -1]
    jump = float(run.time[np.argmax(run.dropped < run.dropped[0])])
    naive = _naive()
    late = float(run.residual[run.time > 0.5].max())
    return [
        claim("Fig. 2.10", "largest force over its bound of 200 000 N",
              "bounded, varies rapidly, far off the plot", float(force.max()) / 2e5,
              above=0.5, below=1.0001, why="used, and not exceeded"),
        claim("Fig. 2.10", "‖D‖ after 5 s over that at the start", "damped, stable",
              float(deviation[-1] / deviation[0]), below=1e-3, why="a thousandth",
              shown=f"{deviation[-1] / deviation[0]:.1e} (from {deviation[0]:.2f} m)"),
        claim("Fig. 2.11", "residual at the start [m/s²]; after 0.5 s over that",
              "large, then an abrupt transition",
              (float(run.residual[0]), late / float(run.residual[0])),
              above=(1.0, 0.0), below=(np.inf, 1e-6),
              why="of the size of gravity; then rounding",
              note=f"the transition is at {jump:.3f} s"),
        agrees("Fig. 2.11", "singular values near zero at the start, of 3", "2",
               int(zero.sum()), absolute=0.5),
        own("§2.5", "ledger balance, relative: RK4 1 ms, Cash–Karp", "our aim for the "
            "second", (run.ledger.relative_balance, careful.ledger.relative_balance),
            below=(np.inf, 1e-7),
            note="RK4 steps over a force of 2e5 N in 1 ms; Cash–Karp resolves it"),
        claim("§2.5", "naive SVD: fraction of the 5 s that it survives",
              "destabilises the integration", naive[0] / 5.0, below=0.9,
              why="stopped before the end",
              shown=f"{naive[0] / 5.0:.2f} (largest force {naive[1]:.1e} N)"),
    ]  # fmt: skip


def _naive() -> tuple[float, float]:
    """Run with plain pseudoinversion; return when it stopped and its largest force."""
    try:
        run = simulate(three_link_world(), 5.0, method=Pseudoinverse())
    except WorldError as stopped:
        run = cast("Run", stopped.run)
    with np.errstate(over="ignore", invalid="ignore"):
        force = np.linalg.norm(run.force("nail"), axis=1)
    return float(run.time[-1]), float(force[np.isfinite(force)].max())


def _elbow_rows() -> list[Row]:
    run = elbow_run()
    late = run.time > 2.0
    force = np.linalg.norm(run.force("nail"), axis=1)[late]
    least = run.singular_values[late, 0]
    near = least < np.quantile(least, 0.05)
    peak = float(np.median(force[near]) / np.median(force))
    return [
        claim("Fig. 2.12", "smallest singular value, largest over smallest",
              "into and out of singularity", float(least.max() / least.min()),
              above=20.0, why="a twentieth of its largest",
              shown=f"{least.max() / least.min():.0f} ({least.min():.2g} to "
              f"{least.max():.2g} 1/kg)"),
        claim("Fig. 2.12", "force where it is smallest over the median force",
              "the force reflects it", peak, above=2.0, why="twice at least"),
    ]  # fmt: skip


def _rival_rows(duration: float) -> list[Row]:
    try:
        found = compare(duration)
    except MissingExtra as missing:
        return [own("§2.3.3", "rivals", str(missing), np.nan, shown="not run")]
    lines = []
    for mechanism, (ours, *others) in found.items():
        lines.append(
            own("§2.3.3", f"{mechanism}: largest ‖D‖ [m]; ledger balance", "our aim",
                (ours.deviation, cast("float", ours.balance)), below=(np.inf, 1e-8))
        )  # fmt: skip
        for other in others:
            lines.append(
                own("§2.3.3", f"{mechanism}: deviation of {other.by} over ours",
                    f"{other.by}, {other.deviation:.3g} m",
                    other.deviation / ours.deviation, above=100.0)
            )  # fmt: skip
    return lines
