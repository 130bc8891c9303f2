"""armwise calibrate --loaded: torque gains, weighed against a known load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from armwise.cli.output import console, figure, print_json, table, warn

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.calibration import Structure, TorqueGains
    from armwise.plants import Payload
    from armwise.recordings import Recording


def known_load(arm: Arm, mass: float | None, center: str, frame: str | None) -> Payload:
    """The body that was carried, taken to be small."""
    import numpy as np

    from armwise.arms import InertialParameters
    from armwise.plants import Payload

    if mass is None:
        raise typer.BadParameter("--loaded needs --load-mass, in [kg].")
    try:
        place = [float(x) for x in center.split(",")]
    except ValueError:
        place = []
    if len(place) != 3 or not np.isfinite(place).all():
        raise typer.BadParameter(f"--load-center takes x,y,z in [m], not {center!r}.")
    body = InertialParameters.from_center_of_mass(mass, place, np.zeros((3, 3)))
    return Payload(frame or arm.links[-1].name, body)


def weigh_torques(
    structure: Structure,
    unloaded: list[Recording],
    loaded: list[Recording],
    load: Payload,
    cutoff_hz: float,
    as_json: bool,
) -> None:
    """Find torque gains, and show them."""
    from armwise.calibration import calibrate_torques

    found = calibrate_torques(structure, unloaded, loaded, load, cutoff_hz=cutoff_hz)
    if as_json:
        print_json({"torque_gains": _rows(found), "notes": list(found.notes)})
        return
    made = table("True over recorded torque", ("joint", "gain", "±"))
    for row in _rows(found):
        made.add_row(row["name"], figure(row["gain"]), figure(row["std"]))
    console().print(made)
    for note in found.notes:
        warn(note)


def _rows(found: TorqueGains) -> list[dict[str, Any]]:
    return [
        {"name": name, "gain": float(gain), "std": float(std)}
        for name, gain, std in zip(
            found.joint_names, found.gain, found.std, strict=True
        )
    ]
