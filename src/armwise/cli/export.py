"""armwise export: an estimate for a simulator, and what that simulator cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    MappingFile,
    Seed,
    SkipBadRows,
    load_model,
    load_servo,
    output_file,
    read_logs,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn

if TYPE_CHECKING:
    import numpy as np

    from armwise.arms import Arm
    from armwise.identification import Estimate
    from armwise.servos import Servo
    from armwise.simulators import Export


def export(
    arm: ArmName,
    to: Annotated[
        str, typer.Option(help="mjcf, urdf, sdf, isaaclab, mjlab, drake or json.")
    ],
    output: Annotated[Path, output_file("File to write.")],
    template: Annotated[
        Path | None,
        typer.Option(help="Your own MJCF or URDF, into which the numbers go."),
    ] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(help="A log whose motion costs are computed on; repeatable."),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(min=0, max=100_000, help="Models to draw for randomisation."),
    ] = 0,
    seed: Seed = 0,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    json: AsJson = False,
) -> None:
    """Write an estimate or servos for a simulator, and what it cannot express.

    Example: armwise export out/estimate.json --to mjcf -o arm.xml

    Example: armwise export out/estimate.json --to isaaclab --draws 1000 -o arm.py
    """
    from armwise import simulators
    from armwise.arms import Arm
    from armwise.recordings import load_mapping, prepare

    servo = load_servo(arm)
    model = servo or load_model(arm)
    data, recordings = None, []
    if log:
        described = model if isinstance(model, Arm) else _description(model)
        mapped = None if mapping is None else load_mapping(mapping)
        recordings = read_logs(log, described, mapped, column, skip_bad_rows)
        data = None if servo else prepare(recordings, arm=described)
    result = simulators.export(
        model,
        output,
        to=to,
        template=template,
        data=data,
        recordings=recordings if servo else (),
        draws=draws,
        seed=seed,
    )
    for note in result.notes:
        warn(note)
    if json:
        print_json(result.to_dict())
        return
    _show(result)


def _description(model: Estimate | Servo) -> Arm:
    return model.arm if hasattr(model, "signs") else model.prior_arm


def _show(result: Export) -> None:
    out = console()
    if result.losses:
        of = "in mrad of free run" if result.unit == "rad" else "of each joint's torque"
        title = f"What {result.to} cannot express, {of}"
        rows = table(title, ["effect", *result.joints])
        for loss in result.losses:
            rows.add_row(loss.effect, *_cells(loss.cost, result.unit))
        if len(result.losses) > 1:
            rows.add_row("together", *_cells(result.cost, result.unit))
        out.print(rows)
        out.print(f"On {result.motion}.")
    else:
        out.print(f"{result.to} expresses everything that was identified.")
    files = [str(path) for path in result.files]
    for path in files[:4]:
        out.print(path, soft_wrap=True)
    if len(files) > 4:
        out.print(f"and {len(files) - 4} more, up to {files[-1]}", soft_wrap=True)


def _cells(values: np.ndarray, unit: str) -> list[str]:
    sizes = [float(v) for v in values]
    if unit == "rad":
        # Not a number: no log was named.
        return [f"{figure(1e3 * v, 3)} mrad" if v == v else "?" for v in sizes]
    return [f"{figure(100 * v, 3)} %" for v in sizes]
