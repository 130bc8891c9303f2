"""armwise learn: one motion learned by practice, through files or simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    FASTEST,
    ArmName,
    Columns,
    Duration,
    MappingFile,
    Model,
    check_output_file,
    load_described,
    load_named,
    number,
    output_file,
    read_logs,
)
from armwise.cli.output import AsJson, console, figure, heads, print_json, table, warn

if TYPE_CHECKING:
    from armwise.learning import Session


def learn(
    arm: ArmName,
    motion: Annotated[
        Path | None, typer.Option(help="Planned motion to learn: .csv or .json.")
    ] = None,
    attempt: Annotated[
        Path | None, typer.Option(help="Log of the last attempt at it.")
    ] = None,
    output: Annotated[
        Path | None, output_file("Command of the next attempt: .csv, .json, .yaml.")
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Remembers the attempts at this motion.")
    ] = Path("practice"),
    takes: Annotated[
        str, typer.Option(help="What the arm is commanded by: position or torque.")
    ] = "position",
    rule: Annotated[
        str, typer.Option(help="Correct by the inverse response, or by the error.")
    ] = "inverse",
    gain: Annotated[
        float, number("Fraction of the correction that is made.", 0.01, 2.0)
    ] = 1.0,
    start: Annotated[
        float, number("When the motion began in the log [s].", 0.0, 1e12)
    ] = 0.0,
    kp: Annotated[
        str | None, typer.Option(help="Feedback [N m/rad], comma-separated (torque).")
    ] = None,
    kd: Annotated[
        str | None, typer.Option(help="Feedback [N m s/rad], comma-separated.")
    ] = None,
    model: Model = None,
    model_error: Annotated[
        float, number("Relative error of the model to allow for.", 0.0, 0.9)
    ] = 0.1,
    friction: Annotated[
        float, number("Unmodelled friction, as a fraction of torque.", 0.0, 10.0)
    ] = 0.02,
    noise: Annotated[float, number("Velocity noise [rad/s].", 0.0, 100.0)] = 0.002,
    trials: Annotated[int, number("Attempts.", 1, 1000)] = 4,
    cutoff_hz: Annotated[
        float | None,
        typer.Option(help="Zero-phase low-pass [Hz]; as high as converges if absent."),
    ] = None,
    duration: Duration = 2.0,
    natural_hz: Annotated[
        float, number("Natural frequency of the feedback [Hz].", 0.01, 100.0)
    ] = 2.0,
    rate_hz: Annotated[
        float | None, number("Control rate, or of the command [Hz].", 1.0, FASTEST)
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            help="Resume from this file (.npz), and save to it.",
            callback=check_output_file,
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Simulated: practise what may diverge.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Learn one motion by repeating it: a planned one on your arm, through files.

    Each call takes the log of an attempt and writes the next command, if practice will
    converge. Without --motion a simulated arm practises a reach, to see how it goes.

    Example: armwise learn panda --motion plan.csv --attempt try.csv -o next.csv

    Example: armwise learn ddarm --trials 4 --model-error 0.1
    """
    if motion is None:
        if attempt is not None or output is not None:
            raise typer.BadParameter("--attempt and -o need the --motion they are of.")
        _practise_simulated(
            arm, model, model_error, friction, noise, trials,
            8.0 if cutoff_hz is None else cutoff_hz, duration, natural_hz,
            rate_hz or 500.0, memory, anyway, json,
        )  # fmt: skip
        return
    if anyway:
        raise typer.BadParameter("--anyway is for simulated practice only.")
    if output is None:
        raise typer.BadParameter("name the file of the next command: -o next.csv.")
    from armwise.learning import Practice, PracticeSettings, practise
    from armwise.motions import read_motion, write_motion

    described, mapped = load_described(arm, mapping)
    settings = PracticeSettings(takes, rule, gain, cutoff_hz, model_error)  # type: ignore[arg-type]
    practice = Practice(
        described,
        read_motion(motion, described),
        settings,
        rate_hz or 200.0,
        _gains(kp, kd, described.dof),
    )
    logs = [attempt] if attempt is not None else []
    recordings = read_logs(logs, described, mapped, column)
    following = practise(practice, folder, recordings[0] if recordings else None, start)
    command = practice.as_motion(following.command)
    effort = {"tau": command.effort_at} if command.effort is not None else None
    names = described.coordinate_names
    write_motion(command, output, practice.rate_hz, names, effort)
    report = {
        "reason": following.reason,
        "worst_factor": following.worst_factor,
        "position_error": following.errors,
        "overall_error": following.overall,
        "response": None if following.response is None else vars(following.response),
        "output": str(output),
    }
    if json:
        print_json(report)
        return
    _show_practice(report, names)


def _gains(kp: str | None, kd: str | None, dof: int) -> tuple[Any, Any] | None:
    if kp is None and kd is None:
        return None
    if kp is None or kd is None:
        raise typer.BadParameter("give --kp and --kd, or neither.")
    import numpy as np

    try:
        gains = [np.array([float(x) for x in text.split(",")]) for text in (kp, kd)]
    except ValueError:
        raise typer.BadParameter("--kp and --kd are numbers with commas.") from None
    if any(len(x) not in (1, dof) or not np.all(x > 0) for x in gains):
        raise typer.BadParameter(f"--kp and --kd are {dof} positive numbers, or one.")
    both = [np.broadcast_to(x, dof).astype(float) for x in gains]
    return both[0], both[1]


def _show_practice(report: dict[str, Any], names: tuple[str, ...]) -> None:
    out = console()
    out.print(report["reason"], markup=False)
    if len(report["overall_error"]):
        lines = table("RMS position error (rad, m)", ("attempt", *heads(names), "all"))
        for k, row in enumerate(report["position_error"]):
            total = report["overall_error"][k]
            lines.add_row(str(k + 1), *map(figure, row), figure(total))
        out.print(lines)
        errors = report["overall_error"]
        if errors[-1] > errors.min():
            best = int(errors.argmin()) + 1
            warn(f"The last attempt is not the best: the command goes on from {best}.")
    out.print(f"next: {report['output']}", markup=False)


def _practise_simulated(
    arm: str,
    model: str | None,
    model_error: float,
    friction: float,
    noise: float,
    trials: int,
    cutoff_hz: float,
    duration: float,
    natural_hz: float,
    rate_hz: float,
    memory: Path | None,
    anyway: bool,
    json: bool,
) -> None:
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
    _show(session, session.report(trials, cutoff_hz, memory, anyway), json)


def _show(session: Session, report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    out = console()
    out.print(report["analysis"]["reason"], markup=False)
    names = session.arm.coordinate_names
    lines = table("RMS velocity error (rad/s, m/s)", ("trial", *heads(names), "all"))
    for k, row in enumerate(report["velocity_error"]):
        lines.add_row(str(k + 1), *map(figure, row), figure(report["overall_error"][k]))
    floor = [*report["floor"], report["overall_floor"]]
    lines.add_row("noise floor", *map(figure, floor))
    out.print(lines)
    out.print(
        f"Best: trial {report['best'] + 1}, {figure(report['improvement'])} times "
        f"better than the first. Ended: {report['ending']}."
    )
