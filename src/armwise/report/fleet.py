"""Report on a fleet: who differs and why, how well each robot fits, what they share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from armwise.fleets import FleetEstimate, fleet_to_dict
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
)


def make_fleet_report(fleet: FleetEstimate, title: str | None = None) -> Report:
    """Return the report on a fleet."""
    name = fleet.problem.columns.arm.name
    heading = title or f"{name}: a fleet of {len(fleet.robots)}"
    sections = (_summary(fleet), _differing(fleet), _robots(fleet), _family(fleet))
    return Report(heading, sections)


def write_fleet_report(
    fleet: FleetEstimate, path: str | Path, title: str | None = None
) -> Path:
    """Write a report on a fleet: .html (self-contained), .json or .txt."""
    return save_report(path, lambda: make_fleet_report(fleet, title))


def fleet_verdict(fleet: FleetEstimate) -> str:
    """Say in a sentence whether any robot differs, or that this cannot be told."""
    count = len(fleet.robots)
    if fleet.flagged:
        names = sorted({one.robot for one in fleet.flagged})
        shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        return f"{len(names)} of {count} robots differ: {shown}."
    if fleet.can_tell:
        return "No robot differs from the others."
    if count == 1:
        return "All logs are of one robot: there is nothing to compare it with."
    return (
        f"{count} robots are too few to tell whether one differs: it would have to by "
        f"{fleet.limit:.0f} standard deviations. Compare ten or more."
    )


def _summary(fleet: FleetEstimate) -> Section:
    work = fleet.work
    lags = 1e3 * np.array(list(fleet.lags.values()))
    texts = (
        fleet_verdict(fleet),
        f"{len(fleet.robots)} robots, {work.logs} logs, {work.rows:,} rows; "
        f"{len(fleet.bad_logs)} logs were left out.",
        f"Torque lags the motion by {1e3 * fleet.preparation.lag:.2f} ms; the robots' "
        f"own lags are {lags.min():.2f} to {lags.max():.2f} ms, and are taken out.",
        f"A robot is flagged beyond {fleet.limit:.1f} standard deviations between "
        "robots, in a parameter or along a known defect.",
    )
    blocks: tuple[Block, ...] = (BulletList(texts),)
    if fleet.bad_logs:
        rows = tuple((str(bad.path), bad.problem) for bad in fleet.bad_logs)
        blocks += (ReportTable(("log", "why it was left out"), rows, is_folded=True),)
    data = fleet_to_dict(fleet)
    return Section("summary", "The fleet", blocks, {"verdict": texts[0], **data})


def _differing(fleet: FleetEstimate) -> Section:
    if not fleet.flagged:
        words = (Paragraph(fleet_verdict(fleet)),)
        return Section("differing", "Robots that differ", words, {})
    rows: list[tuple[Cell, ...]] = []
    for one in fleet.flagged:
        rows.append(
            (
                one.robot,
                str(one.defect) if one.defect else "no known defect",
                f"{100 * one.defect.explained:.0f} %" if one.defect else None,
                ", ".join(f"{d.expression} {d.score:+.0f} σ" for d in one.differences),
                one.false_alarm,
            )
        )
    columns = ("robot", "most likely", "explains", "differs in", "chance of that")
    table = ReportTable(columns, tuple(rows), digits=2)
    return Section("differing", "Robots that differ", (table,), {})


def _robots(fleet: FleetEstimate) -> Section:
    """Every robot: its error, its lag, its largest score."""
    names = tuple(fleet.robots)
    worst = np.abs(fleet.family.scores).max(axis=1)
    errors = np.array([one.fit.relative_error for one in fleet.robots.values()])
    rows = tuple(
        (
            name,
            fleet.robots[name].fit.samples,
            100.0 * float(errors[r].max()),
            1e3 * fleet.lags[name],
            float(worst[r]),
        )
        for r, name in enumerate(names)
    )
    columns = (
        *("robot", "samples", "largest error of a joint [%]"),
        *("lag [ms]", "largest score of a parameter [σ]"),
    )
    numbers = np.arange(len(names), dtype=float)
    level = Series("flagged above", numbers, np.full(len(names), fleet.limit), "level")
    points = Series("largest score", numbers, worst, "measured")
    figure = Figure(
        "How far each robot is from its fleet",
        "robot",
        "largest score of a parameter [σ]",
        (points, level),
        is_stems=True,
        x_names=names,
    )
    table = ReportTable(columns, rows, digits=3, is_folded=len(rows) > 20)
    return Section("robots", "Robot by robot", (figure, table), {})


def _family(fleet: FleetEstimate) -> Section:
    """What the robots have in common, and how they spread."""
    spread = np.sqrt(np.diag(fleet.spread))
    rows = tuple(
        (expression, float(mean), float(std), float(between))
        for expression, mean, std, between in zip(
            fleet.problem.base.expressions,
            fleet.mean,
            fleet.mean_std,
            spread,
            strict=True,
        )
    )
    columns = ("combination", "mean", "± of the mean", "spread between robots")
    table = ReportTable(columns, rows, is_folded=True)
    return Section("family", "What they share", (table,), {})
