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
    output_file,
    read_logs,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn

if TYPE_CHECKING:
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
    """Write an estimate for a simulator, and what that simulator cannot express.

    Example: armwise export out/estimate.json --to mjcf -o arm.xml

    Example: armwise export out/estimate.json --to isaaclab --draws 1000 -o arm.py
    """
    from armwise import simulators
    from armwise.arms import Arm
    from armwise.cli.arguments import load_described
    from armwise.recordings import prepare

    model = load_model(arm)
    data = None
    if log:
        described = model if isinstance(model, Arm) else model.prior_arm
        _, mapped = load_described(arm, mapping, log)
        recordings = read_logs(log, described, mapped, column, skip_bad_rows)
        data = prepare(recordings, arm=described)
    result = simulators.export(
        model,
        output,
        to=to,
        template=template,
        data=data,
        draws=draws,
        seed=seed,
    )
    for note in result.notes:
        warn(note)
    if json:
        print_json(result.to_dict())
        return
    _show(result)


def _show(result: Export) -> None:
    out = console()
    if result.losses:
        title = f"What {result.to} cannot express, of each joint's torque"
        rows = table(title, ["effect", *result.joints])
        for loss in result.losses:
            rows.add_row(loss.effect, *_per_cent(loss.cost))
        if len(result.losses) > 1:
            rows.add_row("together", *_per_cent(result.cost))
        out.print(rows)
        out.print(f"On {result.motion}.")
    else:
        out.print(f"{result.to} expresses everything that was identified.")
    files = [str(path) for path in result.files]
    for path in files[:4]:
        out.print(path, soft_wrap=True)
    if len(files) > 4:
        out.print(f"and {len(files) - 4} more, up to {files[-1]}", soft_wrap=True)


def _per_cent(values: object) -> list[str]:
    return [f"{figure(100 * float(v), 3)} %" for v in values]  # type: ignore[attr-defined]
