"""armwise identify-load: inertia of what the hand holds, from a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    Folder,
    MappingFile,
    SensorsFile,
    SkipBadRows,
    number,
)
from armwise.cli.output import AsJson, console, print_json, warn

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.loads import LoadEstimate, LoadMethod
    from armwise.recordings import Recording

_METHODS = {
    "accelerations": "Accelerations",
    "static": "StaticPoses",
    "integral": "IntegralWindows",
    "momentum": "MomentumRate",
    "optimal": "OptimalFilter",
}

PathList = list[Path]

OptionalLogs = Annotated[
    PathList | None,
    typer.Argument(metavar="LOG", help="CSV, JSON lines, Parquet, NPZ, MAT, bag."),
]
"""Logs; none where a wrist sensor's own file stands for the arm."""


def identify_load(
    arm: ArmName,
    logs: OptionalLogs = None,
    frame: Annotated[
        str, typer.Option("--frame", help="Frame of the sensor and of the result.")
    ] = "wrist",
    bare: Annotated[
        PathList | None,
        typer.Option(
            "--bare",
            help="The same motion without load: use joint torques. With an estimate "
            "as ARM: any motion without load.",
        ),
    ] = None,
    gain_std: Annotated[
        str | None,
        typer.Option(
            "--gain-std",
            help="How well torques' gains are known: 0.1 (10 %), or one per joint.",
        ),
    ] = None,
    signal: Annotated[
        str,
        typer.Option(help="Torques come from motor current (10 %) or sensor (1.5 %)."),
    ] = "current",
    gains: Annotated[
        Path | None, typer.Option("--gains", help="gains.json of calibrate-torques.")
    ] = None,
    gripper: Annotated[
        Path | None, typer.Option("--gripper", help="load.json of the empty gripper.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(_METHODS)}.")] = (
        "accelerations"
    ),
    bias: Annotated[
        str, typer.Option(help="The sensor's zero: segment, common or none.")
    ] = "segment",
    drift: Annotated[bool, typer.Option(help="Whether that zero may drift.")] = True,
    components: Annotated[
        str | None, typer.Option(help="Components to use, such as fx,fy,fz.")
    ] = None,
    pose_offset: Annotated[
        str, typer.Option(help="Also estimate the sensor's rotation or whole pose.")
    ] = "none",
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Fit only physically realisable loads.")
    ] = False,
    resolution: Annotated[
        float | None,
        number(
            "One count of the encoders [rad], for --method optimal; found where "
            "velocities were measured, too.",
            1e-12,
            1.0,
        ),
    ] = None,
    driver: Annotated[
        str | None,
        typer.Option("--for", help="Print a driver's text: ur, franka, kuka, ros2."),
    ] = None,
    servo: Annotated[
        Path | None,
        typer.Option("--servo", help="servo.json of identify-servo: use positions."),
    ] = None,
    joint: Annotated[
        str | None,
        typer.Option(help="Joint that carries the load, with --servo; the last."),
    ] = None,
    registers: Annotated[
        str | None,
        typer.Option(help="The servo's gain register in each LOG, with --servo."),
    ] = None,
    cutoff_hz: CutoffHz = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    sensors: SensorsFile = None,
    output: Folder = None,
    json: AsJson = False,
) -> None:
    """Identify a load from a wrist sensor, from joint torques, or from servos.

    Without an ARM, from files of a wrist sensor: its wrench, its orientation (r11 … r33
    or qx … qw) and, if there is one, an accelerometer (ax, ay, az), each with a clock
    of its own; or poses at rest, one a row.

    Example: armwise identify-load puma600 held.csv --frame wrist -o load

    Example: armwise identify-load wrench.csv accelerometer.csv orientation.csv

    Example: armwise identify-load ur10 held.csv --bare empty.csv --frame flange
    --gains gains.json

    Example: armwise identify-load so101.urdf move2.csv --servo servo.json
    """
    from armwise.cli.arguments import load_described, load_model, read_logs
    from armwise.identification import Estimate
    from armwise.loads import identify_load as identify
    from armwise.loads import read_load_estimate, read_torque_gains
    from armwise.report import write_load_files

    _check("--method", method, tuple(_METHODS))
    _check("--bias", bias, ("segment", "common", "none"))
    _check("--pose-offset", pose_offset, ("none", "rotation", "pose"))
    _check("--signal", signal, ("current", "sensor"))
    if driver is not None:
        from armwise.loads import DRIVERS

        _check("--for", driver, tuple(DRIVERS))
    solver = _method(method, resolution)
    if Path(arm).suffix.lower() in _TABLES:
        paths = [Path(arm), *(logs or [])]
        _identify_wrist(
            paths, frame, method, bias, drift, consistent, output, driver, json
        )
        return
    if not logs:
        raise typer.BadParameter("Missing argument 'LOG'.")
    described, mapped = load_described(arm, mapping, [*logs, *(bare or [])])
    held = read_logs(logs, described, mapped, column, skip_bad_rows, sensors)
    if servo is not None:
        _identify_by_servo(described, held, servo, joint, registers, output, json)
        return
    empty = read_logs(bare or [], described, mapped, column, skip_bad_rows, sensors)
    model = load_model(arm)
    # An estimate stands for the empty run where its arm is the one that is used.
    is_whole = isinstance(model, Estimate) and model.arm.dof == described.dof
    load = identify(
        held,
        model if is_whole else described,
        frame=frame,
        method=solver,
        bias=bias,  # type: ignore[arg-type]
        drift=drift,
        components=None if components is None else components.split(","),
        gripper=None if gripper is None else read_load_estimate(gripper),
        pose_offset=pose_offset,  # type: ignore[arg-type]
        bare=empty or None,
        gain_std=_numbers(gain_std),
        signal=signal,  # type: ignore[arg-type]
        gains=None if gains is None else read_torque_gains(gains, described),
        consistent=consistent,
        cutoff_hz=cutoff_hz,
    )
    files: dict[str, str] = {}
    if output:
        files, unwritten = write_load_files(load, output, described.name)
        for problem in unwritten:
            warn(problem)
    _show(load, files, json, driver, described)


def _identify_by_servo(
    described: Arm,
    held: Sequence[Recording],
    path: Path,
    joint: str | None,
    registers: str | None,
    output: Path | None,
    json: bool,
) -> None:
    """A load from commands and positions."""
    from armwise.servos import identify_servo_load, read_servo, write_servo_load

    servo = read_servo(path).on(described)
    load = identify_servo_load(
        servo, held, _numbers(registers, "--registers"), joint=joint
    )
    files = {}
    if output:
        files["load"] = str(output / "load.json")
        write_servo_load(load, output / "load.json")
    if json:
        print_json({**load.to_dict(), "files": files})
        return
    for line in load.statement().split("\n"):
        console().print(line, markup=False)
    for kind, name in files.items():
        console().print(f"  {kind}: {name}", markup=False)


_TABLES = (".csv", ".parquet", ".npz", ".mat", ".txt", ".jsonl")
"""Files that hold no arm."""


def _identify_wrist(
    paths: PathList,
    frame: str,
    method: str,
    bias: str,
    drift: bool,
    consistent: bool,
    output: Path | None,
    driver: str | None,
    json: bool,
) -> None:
    """A load from a log without joints."""
    from armwise.loads import identify_load as identify
    from armwise.loads import read_wrist_log
    from armwise.report import write_load_files

    if method != "accelerations":
        raise typer.BadParameter("Without an arm there is --method accelerations only.")
    load = identify(
        read_wrist_log(paths),
        frame=frame,
        bias=bias,  # type: ignore[arg-type]
        drift=drift,
        consistent=consistent,
    )
    files: dict[str, str] = {}
    if output:
        files, unwritten = write_load_files(load, output, "wrist sensor")
        for problem in unwritten:
            warn(problem)
    _show(load, files, json, driver, None)


def _check(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise typer.BadParameter(f"{option} is {', '.join(choices)}, not {value!r}.")


def _numbers(text: str | None, option: str = "--gain-std") -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{option} takes a number, or several such as 1,2,3, not {text!r}."
        ) from None


def _method(name: str, resolution: float | None) -> LoadMethod:
    from armwise import loads

    if name != "optimal":
        method: LoadMethod = getattr(loads, _METHODS[name])()
        return method
    if resolution is None:
        return loads.OptimalFilter()
    return loads.OptimalFilter.from_resolution(resolution)


def _show(
    load: LoadEstimate,
    files: dict[str, str],
    json: bool,
    driver: str | None,
    arm: Arm | None,
) -> None:
    from armwise.loads import driver_text, load_to_dict

    text = None if driver is None else driver_text(load, driver, arm)
    if json:
        print_json({**load_to_dict(load), "driver": text, "files": files})
        return
    if text is not None:
        # Alone on standard output, to be passed on; what to know of it goes beside.
        typer.echo(load.statement(), err=True)
        typer.echo(text.rstrip("\n"))
        return
    screen = console()
    for line in load.statement().split("\n"):
        screen.print(line, markup=False)
    for kind, path in files.items():
        screen.print(f"  {kind}: {path}", markup=False)
