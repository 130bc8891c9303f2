"""armwise calibrate: what joint sensors say, found against gravity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    FASTEST,
    ArmName,
    AsDescribed,
    Columns,
    MappingFile,
    NotNegative,
    SkipBadRows,
    load_named,
    number,
    output_file,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn

if TYPE_CHECKING:
    from armwise.calibration import Calibration, Observability

PathList = list[Path]


def calibrate(
    arm: ArmName,
    logs: Annotated[
        PathList | None,
        typer.Argument(
            help="Logs with volts_1 … or q_1 …, and tau_1 ….", metavar="LOG"
        ),
    ] = None,
    known: AsDescribed = None,
    positive: NotNegative = None,
    offsets_only: Annotated[
        bool, typer.Option("--offsets-only", help="Gains are known.")
    ] = False,
    volts: Annotated[
        bool, typer.Option("--volts", help="Gains are not even roughly known.")
    ] = False,
    offset_range_deg: Annotated[
        float, number("How far offsets may be from zero [°].", 0.0, 360.0)
    ] = 180.0,
    cutoff_hz: Annotated[
        float, number("Low-pass of the log [Hz].", 0.01, FASTEST)
    ] = 10.0,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    torque_gains_percent: Annotated[
        float, number("How far the motors' torque constants may be off [%].", 0.0, 99.0)
    ] = 0.0,
    bend_percent: Annotated[
        float, number("How far sensors may bend from a straight line [%].", 0.0, 99.0)
    ] = 0.0,
    output: Annotated[
        Path | None,
        output_file(
            "Write a calibration file, and a report beside it; without a log, the "
            "motion to record (.csv, or .json for ROS)."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Find gain and offset of every joint sensor; without a log, say which can be.

    Example: armwise calibrate panda

    Example: armwise calibrate ddarm ddarm.csv --offsets-only -o sensors.toml
    """
    import numpy as np

    from armwise.calibration import (
        Flaws,
        Structure,
        calibratable,
        calibrate_recording,
    )
    from armwise.cli.arguments import read_logs
    from armwise.cli.output import progress_bar

    structure = Structure(
        load_named(arm),
        tuple(known or ()),
        tuple(positive or ()),
        offsets_only,
        Flaws(torque_gains_percent / 100.0, bend_percent / 100.0),
    )
    outlook = calibratable(structure)
    if not logs:
        show_outlook(outlook, output, json)
        return
    with progress_bar("Calibrate", quiet=json) as tell:
        calibration = calibrate_recording(
            structure,
            read_logs(logs, None, mapping, column, skip_bad_rows),
            alpha=None if volts else 1.0,
            offset_range=np.deg2rad(offset_range_deg),
            cutoff_hz=cutoff_hz,
            outlook=outlook,
            progress=tell,
        )
    files = _write(calibration, output) if output is not None else {}
    if json:
        print_json(summarise(calibration, files))
        return
    _show(calibration)


def _write(found: Calibration, place: Path) -> dict[str, str]:
    """Write what `read_recording` applies, and a report beside it."""
    from armwise.recordings import write_calibration
    from armwise.report import write_calibration_report

    write_calibration(found.sensors, place)
    report = write_calibration_report(found, place.with_suffix(".html"))
    return {"file": str(place), "report": str(report)}


def summarise(found: Calibration, files: dict[str, str]) -> dict[str, Any]:
    """Collect what a machine wants to know."""
    return {
        "joints": [
            {"name": name, "alpha": a, "beta": b, "alpha_std": sa, "beta_std": sb}
            for name, a, b, sa, sb in zip(
                found.joint_names,
                found.alpha,
                found.beta,
                found.alpha_std,
                found.beta_std,
                strict=True,
            )
        ],
        "not_calibrated": list(found.not_calibrated),
        "torque_std": found.torque_std,
        "flaws": dict(
            zip(
                found.unknowns[len(found.unknowns) - found.flaws.size :],
                found.flaws,
                strict=True,
            )
        ),
        "notes": list(found.notes),
        "file": files.get("file"),
        "report": files.get("report"),
    }


def _show(found: Calibration) -> None:
    import numpy as np

    listing = table("Joint sensors", ("joint", "gain", "±", "offset (°)", "±"))
    numbers = zip(
        found.joint_names,
        found.alpha,
        found.alpha_std,
        np.rad2deg(found.beta),
        np.rad2deg(found.beta_std),
        strict=True,
    )
    for name, *values in numbers:
        listing.add_row(name, *(figure(float(v)) for v in values))
    console().print(listing)
    for name in found.not_calibrated:
        warn(f"{name} cannot be calibrated this way and keeps its first value.")
    for note in found.notes:
        warn(note)


def show_outlook(
    outlook: Observability, motion_file: Path | None, as_json: bool
) -> None:
    """Print what can be calibrated; write the motion to record."""
    from math import isfinite

    from armwise.motions import write_motion

    if motion_file is not None and outlook.motion is not None:
        write_motion(outlook.motion, motion_file)
    if as_json:
        target = str(motion_file) if motion_file else None
        prospects = [p._asdict() for p in outlook.prospects]
        print_json({"prospects": prospects, "motion": target})
        return
    titles = ("unknown", "predicted ± (95 %)", "reason")
    listing = table("What can be calibrated", titles)
    for p in outlook.prospects:
        half = p.with_unit(p.std) if isfinite(p.std) else "–"
        listing.add_row(p.name, half, p.reason)
    console().print(listing)
