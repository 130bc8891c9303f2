"""armwise view: an arm in the browser, with its motion, torques and inertias."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    MappingFile,
    SkipBadRows,
    load_described,
    read_logs,
)
from armwise.cli.output import AsJson, console, print_json, warn

if TYPE_CHECKING:
    from armwise.recordings import Samples
    from armwise.view import Scene
    from armwise.worlds import Run

PathList = list[Path]


def view(
    arm: ArmName,
    recording: Annotated[
        Path | None, typer.Argument(metavar="LOG", help="To play, with its torques.")
    ] = None,
    estimate: Annotated[
        PathList | None,
        typer.Option("--estimate", help="estimate.json of identify; two to compare."),
    ] = None,
    world: Annotated[
        Path | None, typer.Option("--world", help="A world in TOML around the arm.")
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    cutoff_hz: CutoffHz = None,
    meshes: Annotated[
        PathList | None,
        typer.Option("--meshes", help="A folder that may hold the arm's meshes."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help="8080 or any free one if absent."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show an arm in the browser, until Ctrl-C.

    Example: armwise view panda run1.csv --estimate out/estimate.json
    """
    from armwise.identification import read_estimate
    from armwise.recordings import prepare
    from armwise.view import distinct_names, make_scene, serve_scene

    described, mapped = load_described(
        arm, mapping, [recording] if recording is not None else []
    )
    samples: Samples | None = None
    if recording is not None:
        recordings = read_logs([recording], described, mapped, column, skip_bad_rows)
        samples = prepare(recordings, cutoff_hz, arm=described)
    file = Path(arm)  # or a bundled name
    scene = make_scene(
        described,
        samples,
        {
            name: read_estimate(path, described)
            for name, path in distinct_names(estimate or []).items()
        },
        None if world is None else _run(world),
        description=file if file.is_file() else None,
        meshes=meshes or (),
    )
    serve_scene(scene, port, lambda address: _show(scene, address, json))


def _run(world: Path) -> Run:
    from armwise.errors import WorldError
    from armwise.worlds import read_world

    try:
        return read_world(world).run()
    except WorldError as stopped:
        if stopped.run is None:
            raise
        warn(f"{stopped} Shown up to there.")
        return cast("Run", stopped.run)


def _show(scene: Scene, address: str, as_json: bool) -> None:
    if as_json:
        print_json({"address": address, "arm": scene.arm.name, "notes": scene.notes})
        return
    for note in scene.notes:
        console().print(note, markup=False)
    console().print(f"Open {address}   (Ctrl-C ends)", markup=False)
