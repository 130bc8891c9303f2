"""armwise calibrate-torques: gains of joint torques, weighed against a known load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armwise.cli.arguments import (
    FASTEST,
    ArmName,
    Columns,
    Logs,
    MappingFile,
    SkipBadRows,
    number,
    output_file,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn


def calibrate_torques(
    arm: ArmName,
    logs: Logs,
    loaded: Annotated[
        list[Path], typer.Option(help="A log with the known load; repeatable.")
    ],
    load_mass: Annotated[float, number("Mass of that load [kg].", 1e-6, 1e4)],
    load_center: Annotated[
        str | None,
        typer.Option(help="Its centre x,y,z in its frame [m]; found if absent."),
    ] = None,
    load_frame: Annotated[
        str | None,
        typer.Option(
            "--load-frame", "--frame", help="The frame it is held at; the last link's."
        ),
    ] = None,
    cutoff_hz: Annotated[
        float | None,
        number("Low-pass of the logs [Hz]; from the data if absent.", 0.01, FASTEST),
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    output: Annotated[
        Path | None, output_file("Write the gains, for identify-load --gains.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Find what recorded torques must be multiplied by, from logs with a known load.

    LOG is motion without the load: best the same motion; of another one the arm is
    identified first. Only the load's mass has to be known.

    Example: armwise calibrate-torques ddarm a.csv --loaded b.csv --load-mass 5
    """
    from armwise import calibration
    from armwise.cli.arguments import load_described, read_logs
    from armwise.loads import write_torque_gains

    center = None if load_center is None else _position(load_center)
    described, mapped = load_described(arm, mapping, [*logs, *loaded])
    bare, carrying = (
        read_logs(paths, described, mapped, column, skip_bad_rows)
        for paths in (logs, loaded)
    )
    gains = calibration.calibrate_torques(
        described,
        bare,
        carrying,
        load_mass=load_mass,
        load_center=center,
        frame=load_frame,
        cutoff_hz=cutoff_hz,
    )
    if output is not None:
        write_torque_gains(gains, output)
    lines = list(
        zip(gains.joint_names, gains.gain.tolist(), gains.std.tolist(), strict=True)
    )
    if json:
        path = None if output is None else str(output)
        listed = [{"name": n, "gain": gain, "std": std} for n, gain, std in lines]
        print_json({"torque_gains": listed, "notes": list(gains.notes), "file": path})
        return
    rows = table("True over recorded torque", ("joint", "gain", "±"))
    for name, gain, std in lines:
        rows.add_row(name, figure(gain), figure(std))
    console().print(rows)
    for note in gains.notes:
        warn(note)
    if output is not None:
        console().print(f"gains: {output}", markup=False)


def _position(text: str) -> list[float]:
    import numpy as np

    try:
        position = [float(x) for x in text.split(",")]
    except ValueError:
        position = []
    if len(position) != 3 or not np.isfinite(position).all():
        raise typer.BadParameter(f"--load-center takes x,y,z in [m], not {text!r}.")
    return position
