"""armwise calibrate-moving: joint sensors calibrated by moving the arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    AsDescribed,
    Seed,
    load_named,
    number,
    output_file,
)
from armwise.cli.calibrate import show_outlook, summarise
from armwise.cli.output import AsJson, console, figure, print_json, table
from armwise.errors import ArgumentError, NotIdentifiable

if TYPE_CHECKING:
    import numpy as np

    from armwise.calibration import Calibration, Observability, Rehearsal, Structure
    from armwise.plants import Plant

_REHEARSALS = ("simulated", "mujoco")


def calibrate_moving(
    arm: ArmName,
    plant: Annotated[
        str | None,
        typer.Option(
            help="Your robot, FILE.py:NAME (a Plant, or a function that makes one); "
            "simulated or mujoco to rehearse. Absent: say what will be calibrated."
        ),
    ] = None,
    known: AsDescribed = None,
    full_scale: Annotated[
        str, typer.Option(help="How far readings may go from --center: 6 or 6,6,4.")
    ] = "6",
    center: Annotated[
        str, typer.Option(help="Readings in the middle of the ranges: 0 or 1,0,2.")
    ] = "0",
    effort: Annotated[
        str | None,
        typer.Option(help="Largest torques [N m] (default: the arm's limits)."),
    ] = None,
    gain_percent: Annotated[
        float, number("Widest 95 % interval of a gain, ± [%].", 1e-3, 100.0)
    ] = 0.6,
    offset_deg: Annotated[
        float, number("Widest 95 % interval of an offset, ± [°].", 1e-3, 90.0)
    ] = 0.3,
    bend_percent: Annotated[
        float, number("How far sensors may bend from a straight line [%].", 0.0, 99.0)
    ] = 0.5,
    longest: Annotated[float, number("Longest time in motion [s].", 30.0)] = 400.0,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        output_file("Write a calibration file, and a report beside it."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Calibrate joint sensors by moving the arm, gravity being the reference.

    Example: armwise calibrate-moving panda

    Rehearse with --plant simulated; your robot: --plant robot.py:connect.
    """
    from armwise.calibration import Flaws, Moves, Structure, calibrate, prospects
    from armwise.cli.output import progress_bar

    described = load_named(arm)
    structure = Structure(
        described, tuple(known or ()), flaws=Flaws(bend=bend_percent / 100.0)
    )
    rehearsal = _rehearsal(structure, plant, seed)
    limits = None if effort is None else _numbers(effort, "--effort")
    if limits is None and rehearsal is not None:
        limits = rehearsal.effort
    moves, precision = Moves(longest=longest), _asked(gain_percent, offset_deg)
    outlook = prospects(structure, effort=limits, moves=moves, **precision)
    if plant is None:
        show_outlook(outlook, None, json)
        return
    robot = _loaded(plant) if rehearsal is None else rehearsal.plant
    if not json:
        _announce(outlook)
    with progress_bar("Calibrate", quiet=json) as report:
        result = calibrate(
            robot,
            structure,
            full_scale=_numbers(full_scale, "--full-scale"),
            center=_numbers(center, "--center"),
            posture=None if rehearsal is None else rehearsal.posture,
            effort=limits,
            moves=moves,
            outlook=outlook,
            progress=report,
            **precision,
        )
    files = _write(result, output) if output is not None else {}
    if json:
        print_json(summarise(result, files) | _truth(rehearsal, result))
    else:
        _show(result, rehearsal)
    promised = set(outlook.hidden) ^ set(result.observability.hidden)
    if promised:
        raise NotIdentifiable(
            f"Not as sure as asked: {', '.join(sorted(promised))}. Ask for less "
            "(--gain-percent, --offset-deg), or move for longer (--longest)."
        )


def _asked(gain_percent: float, offset_deg: float) -> dict[str, Any]:
    """Standard deviations from half the widths of 95 % intervals."""
    from math import radians

    return {
        "gain_std": gain_percent / 100.0 / 1.96,
        "offset_std": radians(offset_deg) / 1.96,
    }


def _rehearsal(structure: Structure, plant: str | None, seed: int) -> Rehearsal | None:
    if plant not in _REHEARSALS:
        return None
    from armwise.calibration import rehearse

    return rehearse(structure, seed, mujoco=plant == "mujoco")


def _loaded(place: str) -> Plant:
    """The plant that FILE.py:NAME is, or makes."""
    from importlib.util import module_from_spec, spec_from_file_location

    from armwise.plants import Plant

    file, _, name = place.rpartition(":")
    path = Path(file)
    if not file or path.suffix != ".py" or not path.is_file():
        raise typer.BadParameter(
            f"--plant is simulated, mujoco or FILE.py:NAME of a file, not {place!r}."
        )
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    robot = getattr(module, name, None)
    if robot is None:
        raise ArgumentError(f"{path} has no {name!r}.")
    if not isinstance(robot, Plant) and callable(robot):
        robot = robot()
    if not isinstance(robot, Plant):
        raise ArgumentError(
            f"{place} is not a Plant: it needs dof, batch, control_period, "
            "joint_names, time, diverged, logs, reset and step (armwise.plants.Plant)."
        )
    return robot


def _numbers(text: str, option: str) -> np.ndarray:
    import numpy as np

    try:
        values = np.array([float(x) for x in text.split(",")])
    except ValueError:
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        raise typer.BadParameter(f"{option} takes numbers such as 6 or 6,6,4.")
    return values[0] if values.size == 1 else values


def _write(result: Calibration, file: Path) -> dict[str, str]:
    from armwise.recordings import write_calibration
    from armwise.report import write_calibration_report

    reasons = {p.name: p.reason for p in result.observability.prospects}
    write_calibration(result.sensors, file, reasons)
    report = write_calibration_report(result, file.with_suffix(".html"))
    return {"file": str(file), "report": str(report)}


def _announce(outlook: Observability) -> None:
    """Name what gravity cannot see, before anything moves."""
    sought = [p.name for p in outlook.prospects if p.is_calibratable]
    console().print(f"To be calibrated: {', '.join(sought) or 'nothing'}.")
    for p in outlook.prospects:
        if not p.is_calibratable:
            console().print(f"Not {p.name}: {p.reason}.")


def _truth(rehearsal: Rehearsal | None, result: Calibration) -> dict[str, Any]:
    """The simulated sensors' own lines, where there are any."""
    if rehearsal is None:
        return {}
    alpha, beta = rehearsal.sensors.lines(result.recordings)
    return {"truth": {"alpha": alpha, "beta": beta}}


def _show(result: Calibration, rehearsal: Rehearsal | None) -> None:
    import numpy as np

    titles = ["joint", "gain", "± %", "offset (°)", "± °"]
    if rehearsal is not None:
        titles += ["gain off by %", "offset off by °"]
    rows = table("Joint sensors, 95 % intervals", titles)
    columns = [
        result.alpha,
        196.0 * result.alpha_std / np.abs(result.alpha),
        np.rad2deg(result.beta),
        np.rad2deg(1.96 * result.beta_std),
    ]
    if rehearsal is not None:
        alpha, beta = rehearsal.sensors.lines(result.recordings)
        turn = np.angle(np.exp(1j * (result.beta - beta)))
        columns += [100.0 * (result.alpha / alpha - 1.0), np.rad2deg(turn)]
    for name, *values in zip(result.joint_names, *columns, strict=True):
        rows.add_row(name, *(figure(float(v)) for v in values))
    console().print(rows)
    for p in result.observability.prospects:
        if not p.is_calibratable:
            console().print(f"{p.name} is unknown: {p.reason}.")
    for note in result.notes:
        console().print(note)
