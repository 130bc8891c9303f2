"""armwise control: compare controllers on a simulated arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Duration,
    Model,
    check_output_file,
    load_named,
    number,
    output_file,
    with_part_options,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn
from armwise.errors import PlantDiverged

if TYPE_CHECKING:
    from armwise.control import TrackingTable

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode="markdown"
)


@app.callback()
def _control() -> None:
    """Compare controllers on an arm."""


@app.command()
@with_part_options
def compare(
    arm: ArmName,
    model: Model = None,
    model_error: Annotated[
        float, number("Relative error of the perturbed model.", 0.0, 0.9)
    ] = 0.1,
    friction: Annotated[
        float, number("Unmodelled friction, as a fraction of torque.", 0.0, 10.0)
    ] = 0.02,
    natural_hz: Annotated[
        float, number("Natural frequency of the feedback [Hz].", 0.01, 100.0)
    ] = 3.0,
    duration: Duration = 4.0,
    seeds: Annotated[
        int, number("Runs of each controller, with different noise.", 1, 10_000)
    ] = 1,
    load: Annotated[
        float, number("Mass in the hand that no model knows of [kg].", 0.0, 1e4)
    ] = 0.0,
    frame: Annotated[
        str | None,
        typer.Option(help="Frame of that load and its wrist sensor; the last link's."),
    ] = None,
    mujoco: Annotated[bool, typer.Option(help="Run on MuJoCo as well.")] = False,
    workers: Annotated[int, number("Processes.", 1, 1000)] = 1,
    cache: Annotated[Path | None, typer.Option(help="Folder of results.")] = None,
    output: Annotated[Path | None, output_file("Write the table (.parquet).")] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Write interactive figures (.html).", callback=check_output_file
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare controllers, from PD to adaptive, on an arm with unmodelled friction.

    Example: armwise control compare ddarm --friction 0.02 --duration 2

    Example: armwise control compare two_link_slotine --load 2 --duration 1
    """
    from functools import partial

    from armwise.cli.output import progress_bar
    from armwise.control import (
        benchmark_tracking,
        compact_load,
        standard_controllers,
        standard_feedback,
        standard_plants,
        tracking_tasks,
    )
    from armwise.learning import practised_feedforward
    from armwise.plants import perturbed
    from armwise.report import write_tracking_report

    if frame is not None and not load:
        raise typer.BadParameter("--frame is where a load is held: give --load, too.")
    described = load_named(arm)
    assumed = (
        load_named(model) if model is not None else perturbed(described, model_error)
    )
    held = compact_load(described, load, frame) if load else None
    tasks = tracking_tasks(described, duration)
    plants = standard_plants(described, friction, mujoco, held)
    wrist = None if held is None else held.frame
    controllers = standard_controllers(assumed, natural_hz, wrist)
    # Local models are learned on the same tasks, a fifth slower.
    controllers["feedforward + practice"] = partial(
        practised_feedforward,
        partial(plants["simulated"], 1),
        tuple(tracking_tasks(described, duration, slowed=1.2).values()),
        tuple(tasks.values()),
        assumed,
        standard_feedback(assumed, natural_hz),
    )
    with progress_bar("controllers", quiet=json) as tell:
        result = benchmark_tracking(
            tasks,
            plants,
            controllers,
            range(seeds),
            workers=workers,
            cache=cache,
            progress=lambda done, all_: tell(f"{done} of {all_}", done / all_),
        )
    if output is not None:
        result.write(output)
    if figures is not None:
        write_tracking_report(result, figures, "PD")
    _show(result, json)


def _show(result: TrackingTable, as_json: bool) -> None:
    rows: list[dict[str, Any]] = result.normalised("PD").to_dicts()
    if result.unstable == len(rows):
        raise PlantDiverged(
            "Every run was unstable: the arm cannot be simulated as it is described. "
            "Do all its joints move something that has inertia?"
        )
    if as_json:
        print_json({"rows": rows, "unstable": result.unstable})
        return
    lines = table(
        "Tracking error (rad, m)",
        ("controller", "task", "plant", "seed", "RMS", "peak", "RMS / PD's"),
    )
    for row in rows:
        numbers = (row["rms_error"], row["peak_error"], row["normalised"])
        lines.add_row(
            row["controller"],
            row["task"],
            row["plant"],
            str(row["seed"]),
            *map(figure, numbers),
        )
    console().print(lines)
    if result.unstable:
        warn(f"{result.unstable} runs were unstable and have no error.")
