"""armwise excite-load: a motion that determines what the hand holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
from armwise.cli.output import AsJson, console, print_json, table


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
    if output is not None:
        console().print(f"plan: {output}", markup=False)


def _positions(text: str) -> list[float]:
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--from takes q1,q2,…, not {text!r}.") from None
