"""What `armwise identify --group-by` does: a fleet from many logs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from armwise.cli.output import console, figure, print_json, table, warn

if TYPE_CHECKING:
    from armwise.fleets import FleetEstimate

GroupBy = Annotated[
    str | None,
    typer.Option(
        "--group-by",
        metavar="NAME",
        help="Many robots, told apart by a folder NAME=…, a column NAME, or folders.",
    ),
]
"""What makes the logs those of a fleet."""

ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ADDRESS", help="A dask scheduler, or local; for fleets."
    ),
]
"""Where a fleet's logs are read."""

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="Processes for a fleet (default: all cores)."
    ),
]
"""By how many."""

SkipBadLogs = Annotated[
    bool,
    typer.Option("--skip-bad-logs", help="Leave out and name a fleet's bad logs."),
]
"""Whether logs that cannot be read are left out, or an error."""

Like = Annotated[
    Path | None,
    typer.Option(
        "--like", metavar="FILE", help="Prepare a fleet's logs as fleet.json says."
    ),
]
"""An earlier run whose parts are to be found again."""

_SHOWN = 20
"""Robots that are listed; all of them are in fleet.json."""


class FleetReading(NamedTuple):
    """How the logs of a fleet are to be read."""

    mapping: Path | None
    columns: Sequence[str] | None
    cutoff_hz: float | None
    like: Path | None
    skip_bad_rows: bool
    skip_bad_logs: bool


class FleetWork(NamedTuple):
    """How the work is shared, and where results go."""

    group_by: str
    cluster: str | None
    workers: int | None
    output: Path | None


def run_fleet(
    arm: str,
    logs: Sequence[Path],
    reading: FleetReading,
    share: FleetWork,
    method: Any,
    terms: Sequence[str],
    json: bool,
) -> None:
    """Identify a fleet; print and write what came of it."""
    from armwise.cli.arguments import load_described, named_columns
    from armwise.cli.output import progress_bar
    from armwise.fleets import identify_fleet, read_preparation

    described, mapped = load_described(arm, reading.mapping)
    if share.cluster:
        logging.disable(logging.ERROR)  # dask's own; what matters is raised
    with progress_bar("Identify", quiet=json) as tell:
        fleet = identify_fleet(
            described,
            logs,
            group_by=share.group_by,
            method=method,
            terms=terms,
            cutoff_hz=reading.cutoff_hz,
            like=read_preparation(reading.like) if reading.like else None,
            mapping=mapped,
            columns=named_columns(reading.columns),
            skip_bad_logs=reading.skip_bad_logs,
            skip_bad_rows=reading.skip_bad_rows,
            workers=share.workers,
            cluster=share.cluster,
            parts=share.output / "parts" if share.output else None,
            progress=tell,
            dashboard=lambda link: console(error=True).print(f"Dashboard: {link}"),
        )
    files = write_fleet_files(fleet, arm, share.output) if share.output else {}
    show_fleet(fleet, files, json)


def show_fleet(fleet: FleetEstimate, files: dict[str, str], json: bool) -> None:
    """Print a fleet for a machine or for people."""
    from armwise.fleets import fleet_to_dict

    if json:
        print_json(fleet_to_dict(fleet) | {"files": files})
        return
    out = console()
    work = fleet.work
    out.print(
        f"{fleet.problem.columns.arm.name}: {len(fleet.robots)} robots, {work.logs} "
        f"logs, {work.rows:,} rows in {work.seconds:.1f} s "
        f"({work.found} of {work.pieces} pieces were there already)."
    )
    _show_fit(fleet)
    _show_flags(fleet)
    for key, path in files.items():
        out.print(f"{key}: {path}")
    for bad in fleet.bad_logs:
        warn(f"left out: {bad.problem}")
    if len(fleet.robots) == 1:
        warn("all logs are of one robot, so there is nothing to compare it with.")


def _show_fit(fleet: FleetEstimate) -> None:
    """One row per joint: the error of one model for all, and of one for each."""
    import numpy as np

    shown = table(
        "Torque left unexplained", ["joint", "one model for all", "own model"]
    )
    own = np.array([one.fit.relative_error for one in fleet.robots.values()])
    pooled = fleet.pooled.fit.relative_error
    for j, name in enumerate(fleet.problem.columns.arm.coordinate_names):
        middle = float(np.median(own[:, j]))
        shown.add_row(name, f"{100 * pooled[j]:.2f} %", f"{100 * middle:.2f} %")
    console().print(shown)


def _show_flags(fleet: FleetEstimate) -> None:
    """One row per robot that differs."""
    if not fleet.flagged:
        console().print("No robot differs from the others.")
        return
    columns = ["robot", "most likely", "explains", "differs in", "by chance"]
    shown = table(f"{len(fleet.flagged)} robots differ", columns)
    for one in fleet.flagged[:_SHOWN]:
        defect, most = one.defect, one.differences[:2]
        shown.add_row(
            one.robot,
            str(defect) if defect else "nothing known here",
            f"{100 * defect.explained:.0f} %" if defect else "–",
            ", ".join(f"{d.expression} ({d.score:+.0f} σ)" for d in most),
            figure(one.false_alarm, 1),
        )
    console().print(shown)


def write_fleet_files(
    fleet: FleetEstimate, source: str, folder: Path
) -> dict[str, str]:
    """Write the whole estimate, and the pooled model if a body can have it."""
    from armwise.arms import save_arm
    from armwise.fleets import write_fleet

    folder.mkdir(parents=True, exist_ok=True)
    files = {"fleet": folder / "fleet.json"}
    write_fleet(fleet, files["fleet"])
    arm = fleet.pooled.arm
    if defects := arm.defects():
        for name, why in defects.items():
            warn(f"{name}: {why}; fleet.urdf is not written. Use --method physical.")
    else:
        files["urdf"] = folder / "fleet.urdf"
        template = source if source.lower().endswith(".urdf") else None
        save_arm(arm, files["urdf"], template=template)
    return {key: str(path) for key, path in files.items()}
