"""armwise calibrate-torques: gains of joint torques, weighed against a known load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    FASTEST,
    ArmName,
    AsDescribed,
    Columns,
    Logs,
    MappingFile,
    NotNegative,
    SkipBadRows,
    load_named,
    number,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.calibration import TorqueGains
    from armwise.plants import Payload


def calibrate_torques(
    arm: ArmName,
    logs: Logs,
    loaded: Annotated[
        list[Path], typer.Option(help="A log with the known load; repeatable.")
    ],
    load_mass: Annotated[float, number("Mass of that load [kg].", 1e-6, 1e4)],
    load_center: Annotated[
        str | None, typer.Option(help="Its centre of mass x,y,z in its frame [m].")
    ] = None,
    load_frame: Annotated[
        str | None, typer.Option(help="The frame it is held at; the last link's.")
    ] = None,
    known: AsDescribed = None,
    positive: NotNegative = None,
    cutoff_hz: Annotated[
        float, number("Low-pass of the logs [Hz].", 0.01, FASTEST)
    ] = 10.0,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    json: AsJson = False,
) -> None:
    """Find what recorded torques must be multiplied by, from logs with a known load.

    LOG is motion without the load; another motion than the loaded one is as good.

    Example: armwise calibrate-torques ddarm a.csv --loaded b.csv --load-mass 5
    """
    from armwise import calibration
    from armwise.cli.arguments import read_logs

    described = load_named(arm)
    bare, carrying = (
        read_logs(paths, None, mapping, column, skip_bad_rows)
        for paths in (logs, loaded)
    )
    gains = calibration.calibrate_torques(
        calibration.Structure(described, tuple(known or ()), tuple(positive or ())),
        bare,
        carrying,
        _payload(described, load_mass, load_center or "0,0,0", load_frame),
        cutoff_hz=cutoff_hz,
    )
    notes = list(gains.notes)
    if load_center is None:
        frame = load_frame or described.links[-1].name
        notes.append(
            f"The load's centre of mass is taken to be at the origin of {frame}: a few "
            "centimetres change the gains by per cents. Measure it: --load-center."
        )
    if json:
        print_json({"torque_gains": _rows(gains), "notes": notes})
        return
    rows = table("True over recorded torque", ("joint", "gain", "±"))
    for row in _rows(gains):
        rows.add_row(row["name"], figure(row["gain"]), figure(row["std"]))
    console().print(rows)
    for note in notes:
        warn(note)


def _payload(arm: Arm, mass: float, center: str, frame: str | None) -> Payload:
    """The body that was carried, taken to be small."""
    import numpy as np

    from armwise.arms import InertialParameters
    from armwise.plants import Payload

    try:
        position = [float(x) for x in center.split(",")]
    except ValueError:
        position = []
    if len(position) != 3 or not np.isfinite(position).all():
        raise typer.BadParameter(f"--load-center takes x,y,z in [m], not {center!r}.")
    body = InertialParameters.from_center_of_mass(mass, position, np.zeros((3, 3)))
    return Payload(frame or arm.links[-1].name, body)


def _rows(gains: TorqueGains) -> list[dict[str, Any]]:
    return [
        {"name": name, "gain": float(gain), "std": float(std)}
        for name, gain, std in zip(
            gains.joint_names, gains.gain, gains.std, strict=True
        )
    ]
