"""armwise identify-fleet: many robots from many logs, and those that differ."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    FixedTerms,
    Folder,
    Logs,
    MappingFile,
    MethodName,
    SkipBadRows,
    free_terms,
    load_described,
    method_named,
    named_columns,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn

if TYPE_CHECKING:
    from armwise.fleets import FleetEstimate

_MOST_SHOWN = 20
"""Robots that are listed, a screenful; all of them are in fleet.json."""


def identify_fleet(
    arm: ArmName,
    logs: Logs,
    group_by: Annotated[
        str,
        typer.Option(
            "--group-by",
            metavar="NAME",
            help="What names the robot: a folder NAME=…, a column NAME, or folders.",
        ),
    ] = "robot",
    output: Folder = None,
    mapping: MappingFile = None,
    column: Columns = None,
    method: MethodName = "physical",
    fix: FixedTerms = None,
    cutoff_hz: CutoffHz = None,
    like: Annotated[
        Path | None,
        typer.Option("--like", metavar="FILE", help="Prepare logs as fleet.json says."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A dask scheduler, or local."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes (default: all cores).")
    ] = None,
    skip_bad_logs: Annotated[
        bool, typer.Option("--skip-bad-logs", help="Leave out and name bad logs.")
    ] = False,
    skip_bad_rows: SkipBadRows = False,
    json: AsJson = False,
) -> None:
    """Identify many like robots from their logs, and flag those that differ.

    Example: armwise identify-fleet panda 'logs/**/*.parquet' -o out
    """
    from armwise import fleets
    from armwise.cli.output import progress_bar

    solver, terms = method_named(method), free_terms(fix)
    described, mapped = load_described(arm, mapping)
    if cluster:
        logging.disable(logging.ERROR)  # dask's own; what matters is raised
    prepared = fleets.read_preparation(like) if like else (None, None)
    with progress_bar("Identify", quiet=json) as report:
        fleet = fleets.identify_fleet(
            described,
            logs,
            group_by=group_by,
            method=solver,
            terms=terms,
            cutoff_hz=cutoff_hz,
            like=prepared[0],
            lags=prepared[1],
            mapping=mapped,
            columns=named_columns(column),
            skip_bad_logs=skip_bad_logs,
            skip_bad_rows=skip_bad_rows,
            workers=workers,
            cluster=cluster,
            parts=output / "parts" if output else None,
            progress=report,
            dashboard=lambda link: console(error=True).print(f"Dashboard: {link}"),
        )
    files = _write(fleet, arm, output) if output else {}
    if json:
        print_json(fleets.fleet_to_dict(fleet) | {"files": files})
    else:
        _show(fleet, files)


def _show(fleet: FleetEstimate, files: dict[str, str]) -> None:
    """Print a fleet for people."""
    out = console()
    work = fleet.work
    out.print(
        f"{fleet.problem.columns.arm.name}: {len(fleet.robots)} robots, {work.logs} "
        f"logs, {work.rows:,} rows in {work.seconds:.1f} s "
        f"({work.reused} of {work.chunks} chunks were there already)."
    )
    _show_fit(fleet)
    _show_flags(fleet)
    for key, path in files.items():
        out.print(f"{key}: {path}", markup=False)
    for bad in fleet.bad_logs:
        warn(f"left out: {bad.problem}")


def _show_fit(fleet: FleetEstimate) -> None:
    """One row per joint: the error of one model for all, and of one for each."""
    import numpy as np

    rows = table("Residual torque", ["joint", "one model for all", "own model"])
    own = np.array([one.fit.relative_error for one in fleet.robots.values()])
    pooled = fleet.pooled.fit.relative_error
    for j, name in enumerate(fleet.problem.columns.arm.coordinate_names):
        median = float(np.median(own[:, j]))
        rows.add_row(name, f"{100 * pooled[j]:.2f} %", f"{100 * median:.2f} %")
    console().print(rows)


def _show_flags(fleet: FleetEstimate) -> None:
    """One row per robot that differs."""
    from armwise.report import fleet_verdict

    if not fleet.flagged:
        (console().print if fleet.can_tell else warn)(fleet_verdict(fleet))
        return
    columns = ["robot", "most likely", "explains", "differs in", "by chance"]
    rows = table(f"{len(fleet.flagged)} robots differ", columns)
    for one in fleet.flagged[:_MOST_SHOWN]:
        defect, largest = one.defect, one.differences[:2]
        rows.add_row(
            one.robot,
            str(defect) if defect else "no known defect",
            f"{100 * defect.explained:.0f} %" if defect else "–",
            ", ".join(f"{d.expression} ({d.score:+.0f} σ)" for d in largest) or "–",
            figure(one.false_alarm, 1),
        )
    console().print(rows)


def _write(fleet: FleetEstimate, source: str, folder: Path) -> dict[str, str]:
    """Write the whole estimate, and the pooled model if it is physically realisable."""
    from armwise.arms import save_arm
    from armwise.fleets import write_fleet
    from armwise.report import write_fleet_report

    folder.mkdir(parents=True, exist_ok=True)
    files = {"fleet": folder / "fleet.json"}
    write_fleet(fleet, files["fleet"])
    files["report"] = folder / "report.html"
    write_fleet_report(fleet, files["report"])
    arm = fleet.pooled.arm
    if defects := arm.defects():
        for name, why in defects.items():
            warn(f"{name}: {why}; fleet.urdf is not written. Use --method physical.")
    else:
        files["urdf"] = folder / "fleet.urdf"
        template = source if source.lower().endswith(".urdf") else None
        save_arm(arm, files["urdf"], template=template)
    return {key: str(path) for key, path in files.items()}
