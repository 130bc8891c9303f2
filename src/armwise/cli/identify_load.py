"""armwise identify-load: what the hand holds, ready for the robot's driver."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    Folder,
    Logs,
    MappingFile,
    SkipBadRows,
    number,
)
from armwise.cli.output import AsJson, console, print_json, warn

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.loads import LoadEstimate
    from armwise.recordings import Recording, Samples

METHODS = ("accelerations", "static", "integral", "momentum", "optimal")

PathList = list[Path]


def identify_load(
    arm: ArmName,
    logs: Logs,
    frame: Annotated[
        str, typer.Option("--frame", help="Frame of the sensor and of the result.")
    ] = "wrist",
    bare: Annotated[
        PathList | None,
        typer.Option("--bare", help="The same motion without load: use joint torques."),
    ] = None,
    gripper: Annotated[
        Path | None, typer.Option("--gripper", help="load.json of the empty gripper.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = (
        "accelerations"
    ),
    bias: Annotated[
        str, typer.Option(help="The sensor's zero: segment, common or none.")
    ] = "segment",
    drift: Annotated[bool, typer.Option(help="Whether that zero may wander.")] = True,
    components: Annotated[
        str | None, typer.Option(help="Components that count, such as fx,fy,fz.")
    ] = None,
    pose_offset: Annotated[
        str, typer.Option(help="Also find the sensor's rotation or whole pose.")
    ] = "none",
    consistent: Annotated[
        bool, typer.Option("--consistent", help="The best load that can exist.")
    ] = False,
    resolution: Annotated[
        float | None,
        number("One count of the encoders [rad], for --method optimal.", 1e-12, 1.0),
    ] = None,
    cutoff_hz: CutoffHz = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    output: Folder = None,
    json: AsJson = False,
) -> None:
    """Identify a load from a wrist sensor, or from joint torques.

    Example: armwise identify-load puma600 held.csv --frame wrist -o load

    Example: armwise identify-load puma600 held.csv --bare empty.csv --frame wrist
    """
    from armwise.cli.arguments import load_described, read_logs
    from armwise.loads import identify_load as find
    from armwise.loads import read_load_estimate

    _check(method, bias, pose_offset, resolution)
    described, mapped = load_described(arm, mapping)
    held = read_logs(logs, described, mapped, column, skip_bad_rows)
    empty = read_logs(bare or [], described, mapped, column, skip_bad_rows)
    load = find(
        _samples(held, method, cutoff_hz),
        described,
        sensor_frame=frame,
        method=_method(method, resolution),
        bias=bias,  # type: ignore[arg-type]
        drift=drift,
        components=None if components is None else components.split(","),
        gripper=None if gripper is None else read_load_estimate(gripper),
        pose_offset=pose_offset,  # type: ignore[arg-type]
        bare=_samples(empty, method, cutoff_hz) if empty else None,
        consistent=consistent,
    )
    files = _write(load, output, described) if output else {}
    _tell(load, files, json)


def _check(method: str, bias: str, pose_offset: str, resolution: float | None) -> None:
    choices = {
        "--method": (method, METHODS),
        "--bias": (bias, ("segment", "common", "none")),
        "--pose-offset": (pose_offset, ("none", "rotation", "pose")),
    }
    for option, (value, known) in choices.items():
        if value not in known:
            raise typer.BadParameter(f"{option} is {', '.join(known)}, not {value!r}.")
    if method == "optimal" and resolution is None:
        raise typer.BadParameter("--method optimal needs --resolution [rad].")


def _method(name: str, resolution: float | None) -> Any:
    from armwise import loads

    if name == "optimal":
        return loads.OptimalFilter((resolution or 0.0) / math.sqrt(12.0))
    return {
        "accelerations": loads.Accelerations,
        "static": loads.StaticPoses,
        "integral": loads.IntegralWindows,
        "momentum": loads.MomentumRate,
    }[name]()


def _samples(
    recordings: list[Recording], method: str, cutoff_hz: float | None
) -> Samples:
    from armwise.recordings import prepare

    if method == "optimal":
        return prepare(recordings, cutoff_hz=math.inf, decimation=1, keep_rest=True)
    keep_rest = method == "static"
    return prepare(recordings, cutoff_hz=cutoff_hz, keep_rest=keep_rest)


def _write(load: LoadEstimate, folder: Path, arm: Arm) -> dict[str, str]:
    """Write the estimate, what drivers take, and a report."""
    from armwise.errors import NotIdentifiable, NotPhysical
    from armwise.loads import write_load, write_load_estimate
    from armwise.report import write_load_report

    folder.mkdir(parents=True, exist_ok=True)
    files = {"estimate": str(write_load_estimate(load, folder / "load.json"))}
    title = f"{arm.name}: the load at {load.frame}"
    files["report"] = str(write_load_report(load, folder / "report.html", title))
    drivers = {
        "ur": "payload.script",
        "franka": "set_load.json",
        "ros": "inertia.yaml",
        "urdf": "load.urdf",
    }
    for kind, name in drivers.items():
        try:
            files[kind] = str(write_load(load, folder / name))
        except (NotPhysical, NotIdentifiable) as problem:
            warn(f"{name} was not written. {problem}")
    return files


def _tell(load: LoadEstimate, files: dict[str, str], json: bool) -> None:
    from armwise.loads import load_to_dict

    if json:
        print_json({**load_to_dict(load), "files": files})
        return
    screen = console()
    for line in load.statement().split("\n"):
        screen.print(line, markup=False)
    for kind, path in files.items():
        screen.print(f"  {kind}: {path}", markup=False)
