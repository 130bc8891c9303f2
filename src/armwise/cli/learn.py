"""armwise learn: learn one motion by practice on a simulated arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    FASTEST,
    ArmName,
    Duration,
    Model,
    check_output_file,
    load_named,
    number,
)
from armwise.cli.output import AsJson, console, figure, print_json, table

if TYPE_CHECKING:
    from armwise.learning import Session


def learn(
    arm: ArmName,
    model: Model = None,
    model_error: Annotated[
        float, number("Relative error of the perturbed model.", 0.0, 0.9)
    ] = 0.1,
    friction: Annotated[
        float, number("Unmodelled friction, as a fraction of torque.", 0.0, 10.0)
    ] = 0.02,
    noise: Annotated[float, number("Velocity noise [rad/s].", 0.0, 100.0)] = 0.002,
    trials: Annotated[int, number("Attempts.", 1, 1000)] = 4,
    cutoff_hz: Annotated[float, typer.Option(help="Zero-phase low-pass [Hz].")] = 8.0,
    duration: Duration = 2.0,
    natural_hz: Annotated[
        float, number("Natural frequency of the feedback [Hz].", 0.01, 100.0)
    ] = 2.0,
    rate_hz: Annotated[float, number("Control rate [Hz].", 1.0, FASTEST)] = 500.0,
    memory: Annotated[
        Path | None,
        typer.Option(
            help="Resume from this file (.npz), and save to it.",
            callback=check_output_file,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Learn one motion by repeating it, and predict beforehand whether that converges.

    Example: armwise learn ddarm --trials 4 --model-error 0.1
    """
    from armwise.learning import Session
    from armwise.plants import perturbed

    loaded = load_named(arm)
    session = Session(
        loaded,
        load_named(model) if model is not None else perturbed(loaded, model_error),
        friction=friction,
        noise=noise,
        duration=duration,
        natural_hz=natural_hz,
        rate_hz=rate_hz,
    )
    _show(session, session.report(trials, cutoff_hz, memory), json)


def _show(session: Session, report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    out = console()
    out.print(report["analysis"]["reason"])
    names = session.arm.coordinate_names
    lines = table("RMS velocity error (rad/s, m/s)", ("trial", *names, "all"))
    for k, row in enumerate(report["velocity_error"]):
        lines.add_row(str(k + 1), *map(figure, row), figure(report["overall_error"][k]))
    floor = [*report["floor"], report["overall_floor"]]
    lines.add_row("noise floor", *map(figure, floor))
    out.print(lines)
    out.print(
        f"Best: trial {report['best'] + 1}, {figure(report['improvement'])} times "
        f"better than the first. Ended: {report['ending']}."
    )
