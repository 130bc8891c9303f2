"""`armwise world`: run worlds described in TOML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from armwise.cli.arguments import output_folder
from armwise.cli.output import AsJson, console, figure, print_json, table
from armwise.errors import WorldError

if TYPE_CHECKING:
    from armwise.worlds import Run

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode="markdown"
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A world in TOML.")]
Out = Annotated[Path | None, output_folder("Folder for table, ledger, figures.")]


@app.callback()
def _world() -> None:
    """Simulate rigid and articulated bodies under point constraints."""


@app.command()
def run(
    file: File,
    output: Out = None,
    duration: Annotated[
        float | None, typer.Option(help="Run this long instead, in [s].")
    ] = None,
    view: Annotated[bool, typer.Option(help="Play it in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a world and print its energy ledger.

    Example: armwise world run nail.toml -o nail
    """
    from dataclasses import replace

    from armwise.report import write_world
    from armwise.worlds import read_world, summary

    scenario = read_world(file)
    if duration is not None:
        scenario = replace(scenario, duration=duration)
    problem = None
    try:
        result = scenario.run()
    except WorldError as stopped:
        problem, result = stopped, cast("Run", stopped.run)
    report = summary(result)
    if output is not None:
        report["files"] = [str(path) for path in write_world(result, output)]
    if as_json:
        print_json(report)
    else:
        _show(report)
    if problem is not None:
        raise problem
    if view:
        from armwise.view import make_world_scene, serve_scene

        scene = make_world_scene(result)
        serve_scene(scene, None, lambda address: console().print(f"Open {address}"))


def _show(report: dict[str, object]) -> None:
    out = console()
    out.print(f"{report['world']}: {figure(cast('float', report['duration']))} s")
    deviation = cast("float", report["largest_deviation"])
    out.print(f"largest deviation {figure(deviation)} m")
    ledger = table("Energy ledger", ("account", "J"))
    for name, value in cast("dict[str, float]", report["ledger"]).items():
        if name != "relative balance":
            ledger.add_row(name, figure(value, 6))
    out.print(ledger)
    balance = cast("float", report["relative_balance"])
    out.print(f"ledger closes to {figure(balance)} of the energy in play")
    for line in cast("list[dict[str, object]]", report["log"]):
        out.print(
            f"{line['time']:.4f} s  {line['kind']} {line['name']}: {line['cause']}"
        )
    for path in cast("list[str]", report.get("files", [])):
        out.print(f"wrote {path}")
