"""armwise calibrate, calibrate-moving, calibrate-torques: sensors and torque gains."""

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
    Seed,
    SkipBadRows,
    load_named,
    number,
    output_file,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn
from armwise.errors import ArgumentError, NotIdentifiable

if TYPE_CHECKING:
    import numpy as np

    from armwise.calibration import Calibration, Observability, Rehearsal, Structure
    from armwise.plants import Plant

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


# armwise calibrate-torques: gains of joint torques, weighed against a known load.


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


# armwise calibrate-moving: joint sensors calibrated by moving the arm.

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
    files = _write_moving(result, output) if output is not None else {}
    if json:
        print_json(summarise(result, files) | _truth(rehearsal, result))
    else:
        _show_moving(result, rehearsal)
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


def _write_moving(result: Calibration, file: Path) -> dict[str, str]:
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
            console().print(f"Not {p.name}: {p.reason}.", markup=False)


def _truth(rehearsal: Rehearsal | None, result: Calibration) -> dict[str, Any]:
    """The simulated sensors' own lines, where there are any."""
    if rehearsal is None:
        return {}
    alpha, beta = rehearsal.sensors.lines(result.recordings)
    return {"truth": {"alpha": alpha, "beta": beta}}


def _show_moving(result: Calibration, rehearsal: Rehearsal | None) -> None:
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
            console().print(f"{p.name} is unknown: {p.reason}.", markup=False)
    for note in result.notes:
        console().print(note, markup=False)
