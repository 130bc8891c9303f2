"""armwise control: compare controllers on a simulated arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import ArmName, Model
from armwise.cli.output import AsJson, console, figure, print_json, table, warn

if TYPE_CHECKING:
    from armwise.control import TrackingTable

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Compare controllers on an arm."
)


@app.callback()
def _control() -> None:
    """Compare controllers on an arm."""


@app.command()
def compare(
    arm: ArmName,
    model: Model = None,
    model_error: Annotated[
        float, typer.Option(help="Relative error of the perturbed model.")
    ] = 0.1,
    friction: Annotated[
        float, typer.Option(help="Unmodelled friction, as a share of torque.")
    ] = 0.02,
    natural_hz: Annotated[
        float, typer.Option(help="Stiffness of feedback [Hz].")
    ] = 3.0,
    duration: Annotated[float, typer.Option(help="Length of the wave task [s].")] = 4.0,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 1,
    mujoco: Annotated[bool, typer.Option(help="Run on MuJoCo as well.")] = False,
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
    cache: Annotated[Path | None, typer.Option(help="Folder of results.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the table (.parquet).")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Write interactive figures (.html).")
    ] = None,
    json: AsJson = False,
) -> None:
    """Run PD to adaptive control on an arm with friction none of them knows.

    Example: armwise control compare ddarm --model-error 0.1 --friction 0.02
    """
    from armwise.arms import load_arm
    from armwise.cli.progress import progress_bar
    from armwise.control import benchmark_tracking, comparison

    loaded = load_arm(arm)
    believed = load_arm(model) if model else comparison.perturbed(loaded, model_error)
    with progress_bar("controllers", quiet=json) as tell:
        result = benchmark_tracking(
            comparison.tracking_tasks(loaded, duration),
            comparison.standard_plants(loaded, friction, mujoco),
            comparison.standard_controllers(believed, natural_hz),
            range(seeds),
            workers=workers,
            cache=cache,
            progress=lambda done, all_: tell(f"{done} of {all_}", done / all_),
        )
    if output is not None:
        result.write(output)
    if figures is not None:
        result.write_figures(figures, "PD")
    _show(result, json)


def _show(result: TrackingTable, as_json: bool) -> None:
    rows: list[dict[str, Any]] = result.normalised("PD").to_dicts()
    if as_json:
        print_json({"rows": rows, "unstable": result.unstable})
        return
    made = table(
        "Tracking error (rad, m)",
        ("controller", "task", "plant", "seed", "RMS", "peak", "RMS / PD's"),
    )
    for row in rows:
        numbers = (row["rms_error"], row["peak_error"], row["normalised"])
        made.add_row(
            row["controller"],
            row["task"],
            row["plant"],
            str(row["seed"]),
            *map(figure, numbers),
        )
    console().print(made)
    if result.unstable:
        warn(f"{result.unstable} runs were unstable and have no error.")
