"""armwise excite and excite-load: motions that determine an arm or its load best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from armwise.cli.arguments import (
    FASTEST,
    ArmName,
    Duration,
    Seed,
    load_named,
    number,
    output_file,
)
from armwise.cli.output import AsJson, console, figure, print_json, progress_bar, table

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.excitation import Box, ExcitationPlan


def excite(
    arm: ArmName,
    duration: Duration = 20.0,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        output_file("Write it: .csv, .json or .yaml (ROS)."),
    ] = None,
    rate_hz: Annotated[
        float, number("Rate of the points in the file [Hz].", 0.1, FASTEST)
    ] = 100,
    limit_fraction: Annotated[
        float,
        typer.Option(
            "--limit-fraction",
            "--limit-share",
            help="Fraction of every limit that may be used.",
        ),
    ] = 0.95,
    harmonics: Annotated[
        int | None,
        number("Harmonics of the series; from limits and duration if absent.", 1, 100),
    ] = None,
    budget_s: Annotated[float, number("Longest search [s].", 0.0, 1e6)] = 30.0,
    floor: Annotated[
        str, typer.Option(help="Height of the floor [m], auto or none.")
    ] = "auto",
    box: Annotated[
        list[str] | None,
        typer.Option(help="Keep out of x0,y0,z0,x1,y1,z1[,frame] [m]; repeatable."),
    ] = None,
    clearance: Annotated[
        float, number("Least distance from everything [m].", 0.0, 10.0)
    ] = 0.02,
    radius: Annotated[
        float | None, number("Thickness of links without outlines [m].", 0.0, 10.0)
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="estimate.json of identify: determine what it leaves open."),
    ] = None,
    friction: Annotated[
        bool,
        typer.Option(
            "--friction",
            help="Play it at full, half and quarter speed, within the duration: load "
            "and speed vary independently, which tells friction terms apart.",
        ),
    ] = False,
    keep_out: Annotated[
        bool, typer.Option("--keep-out/--no-keep-out", help="Avoid floor, self, boxes.")
    ] = True,
    json: AsJson = False,
) -> None:
    """Plan a motion that determines an arm's parameters well.

    Example: armwise excite panda --duration 10 --budget-s 3 -o plan.csv
    """
    from armwise.excitation import FRICTION_SPEEDS, KeepOut, design_excitation
    from armwise.motions import write_motion

    loaded = load_named(arm)
    boxes = [_box(text) for text in box or []]
    avoided = KeepOut(_height(floor), True, boxes, clearance, radius)
    # What is slower takes longer.
    length = duration / sum(1.0 / f for f in FRICTION_SPEEDS) if friction else duration
    with progress_bar("excite", quiet=json) as tell:
        plan = design_excitation(
            loaded, length, seed, keep_out=avoided if keep_out else None,
            limit_fraction=limit_fraction, harmonics=harmonics, budget_s=budget_s,
            progress=tell, **_prior(loaded, known),
        )  # fmt: skip
    motion = plan.at_speeds() if friction else plan
    if output is not None:
        write_motion(motion, output, rate_hz, loaded.coordinate_names)
    report = describe(loaded, plan, output)
    report |= {"duration": motion.duration}
    report |= {"speeds": list(FRICTION_SPEEDS) if friction else [1.0]}
    print_json(report) if json else _show(report)


def describe(arm: Arm, plan: ExcitationPlan, output: Path | None) -> dict[str, Any]:
    """Collect what there is to say of a plan."""
    return {
        "arm": arm.name,
        "duration": plan.duration,
        "harmonics": plan.motion.harmonics,
        "start": plan.start,
        "condition_number": plan.condition_number,
        "log_det": plan.log_det,
        "base_parameter_count": len(plan.information),
        "joints": list(arm.coordinate_names),
        "verified": plan.verified,
        "search": plan.search,
        "notes": list(plan.notes),
        "file": None if output is None else str(output),
    }


def _prior(arm: Arm, path: Path | None) -> dict[str, Any]:
    """Read the information of an earlier estimate, and the noise of its torques."""
    if path is None:
        return {}
    from armwise.excitation import information_from_covariance
    from armwise.identification import read_estimate

    estimate = read_estimate(path, arm)
    count = arm.parameters.size  # friction terms beyond the arm's own come after
    own = [k for k, index in enumerate(estimate.base.indices) if index < count]
    covariance = estimate.base_covariance[own][:, own]
    information = information_from_covariance(covariance)
    return {"prior": information, "torque_std": estimate.torque_std}


def _height(text: str) -> float | Literal["auto"] | None:
    if text == "auto":
        return "auto"
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"--floor takes a height in metres, auto or none, not {text!r}."
        ) from None


def _box(text: str) -> Box:
    from armwise.excitation import Box

    parts = text.split(",")
    try:
        numbers = [float(part) for part in parts[:6]]
    except ValueError:
        numbers = []
    if len(numbers) != 6 or len(parts) > 7:
        raise typer.BadParameter(
            f"--box takes x0,y0,z0,x1,y1,z1[,frame] in metres, not {text!r}."
        )
    return Box(numbers[:3], numbers[3:], parts[6] if len(parts) == 7 else None)


def _show(report: dict[str, Any]) -> None:
    screen, verified = console(), report["verified"]
    screen.print(
        f"[bold]{report['arm']}[/bold]: {figure(report['duration'])} s, "
        f"{report['harmonics']} harmonics; {report['base_parameter_count']} base "
        f"parameters, condition number {figure(report['condition_number'])}, "
        f"log det {figure(report['log_det'])}"
    )
    lines = table(
        f"Largest fraction of each limit, {verified.instants} instants",
        ("joint", "start", "position", "speed", "accel.", "effort"),
    )
    used = (verified.position, verified.velocity, verified.acceleration)
    columns = (report["start"], *used, verified.effort)
    for name, *row in zip(report["joints"], *columns, strict=True):
        lines.add_row(name, *(figure(float(x), 3) for x in row))
    screen.print(lines)
    if verified.room is not None:
        screen.print(
            f"Closest approach: {figure(verified.room)} m beyond the clearance."
        )
    if len(report["speeds"]) > 1:
        listed = ", ".join(f"{f:g}" for f in report["speeds"])
        screen.print(f"At {listed} of its speed, one after the other.")
    for note in report["notes"]:
        screen.print(f"Note: {note}", markup=False)
    if report["file"]:
        screen.print(f"Written: {report['file']}", markup=False)


# armwise excite-load: a motion that determines what the hand holds.


def excite_load(
    arm: ArmName,
    frame: Annotated[
        str, typer.Option("--frame", help="Frame of the wrist sensor, and of the load.")
    ] = "wrist",
    duration: Duration = 10.0,
    seed: Seed = 0,
    known: Annotated[
        Path | None,
        typer.Option(help="load.json of identify-load: determine what it leaves open."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="Joints now, q1,q2,… [rad]: begin and end there."),
    ] = None,
    effort: Annotated[float, number("Fraction of the limits to use.", 0.01, 1.0)] = 0.9,
    output: Annotated[
        Path | None, output_file("Write it: .csv, .json or .yaml (ROS).")
    ] = None,
    rate_hz: Annotated[
        float, number("Rate of the points in the file [Hz].", 0.1, FASTEST)
    ] = 100,
    json: AsJson = False,
) -> None:
    """Plan a motion within limits that determines a load's inertia well.

    Example: armwise excite-load panda --frame link_7 -o wave.csv
    """
    from armwise.arms import INERTIAL_NAMES
    from armwise.loads import design_load_excitation, read_load_estimate
    from armwise.motions import write_motion

    loaded = load_named(arm)
    before = None if known is None else read_load_estimate(known)
    plan = design_load_excitation(
        loaded,
        frame,
        duration=duration,
        effort=effort,
        seed=seed,
        known=before,
        start=None if start is None else _positions(start),
    )
    if output is not None:
        write_motion(plan.motion, output, rate_hz, loaded.coordinate_names)
    report: dict[str, Any] = {
        "frame": frame,
        "duration": plan.motion.duration,
        "std": dict(zip(INERTIAL_NAMES, plan.std.tolist(), strict=True)),
        "known": None
        if before is None
        else dict(zip(INERTIAL_NAMES, before.std.parameters.tolist(), strict=True)),
        "notes": list(plan.notes),
        "file": None if output is None else str(output),
    }
    if json:
        print_json(report)
        return
    rows = table(
        "Standard deviation to expect (kg, kg m, kg m²)", ("", "before", "after")
    )
    for name, std in report["std"].items():
        old = "–" if report["known"] is None else f"{report['known'][name]:.2g}"
        rows.add_row(name, old, f"{std:.2g}")
    console().print(rows)
    for note in plan.notes:
        console().print(f"Note: {note}", markup=False)
    if output is not None:
        console().print(f"plan: {output}", markup=False)


def _positions(text: str) -> list[float]:
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--from takes q1,q2,…, not {text!r}.") from None
