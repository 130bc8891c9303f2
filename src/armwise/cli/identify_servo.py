"""armwise identify-servo: servo models from commands and positions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    Folder,
    Logs,
    MappingFile,
    Seed,
    SkipBadRows,
    Validate,
)
from armwise.cli.output import AsJson, console, heads, print_json, progress_bar, table

if TYPE_CHECKING:
    from armwise.recordings import Recording
    from armwise.servos import FreeRunErrors, Servo


def identify_servo(
    arm: ArmName,
    logs: Logs,
    validate: Validate = None,
    gains: Annotated[
        str | None,
        typer.Option(help="The servo's gain register in each LOG, such as 4,8,16."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(help="LeRobot's calibration, for logs in -100 to 100."),
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    starts: Annotated[
        int, typer.Option(min=1, help="Random starts of every joint's fit.")
    ] = 256,
    backend: Annotated[
        str, typer.Option(help='"c", or "cuda": fit every start, on a GPU.')
    ] = "c",
    seed: Seed = 0,
    output: Folder = None,
    json: AsJson = False,
) -> None:
    """Identify the servos of an arm from commands and positions alone.

    Logs hold command_1 … and q_1 …, or LeRobot's action and observation.state.

    Example: armwise identify-servo so101.urdf move1.csv move2.csv -o out
    """
    from armwise.cli.arguments import load_described, read_logs
    from armwise.servos import identify_servo as identify
    from armwise.servos import is_lerobot, read_lerobot

    others = validate or []
    plain = [path for path in [*logs, *others] if not is_lerobot(path)]
    described, mapped = load_described(arm, mapping, plain)

    def read(paths: Sequence[Path]) -> list[Recording]:
        recordings = []
        for path in paths:
            if is_lerobot(path):
                recordings += read_lerobot(path, described, calibration)
            else:
                recordings += read_logs(
                    [path], described, mapped, column, skip_bad_rows
                )
        return recordings

    recordings, unseen = read(logs), read(others)
    registers = None if gains is None else _numbers(gains)
    with progress_bar("servos", quiet=json) as progress:
        servo = identify(
            described,
            recordings,
            registers,
            starts=starts,
            seed=seed,
            backend=backend,
            progress=progress,
        )
        validation = servo.errors(unseen) if unseen else None
    files: dict[str, str] = {}
    if output:
        from armwise.report import write_servo_files

        # Judgement: four motions of traces are what one looks at.
        shown = [servo.motion(r) for r in (unseen or recordings)[:4]]
        files = write_servo_files(servo, output, shown, validation)
    if json:
        print_json(_plain(servo, validation) | {"files": files})
    else:
        _show(servo, validation, files)


def _numbers(text: str) -> list[float]:
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"--gains takes numbers such as 4,8,16, not {text!r}."
        ) from None


def _plain(servo: Servo, validation: FreeRunErrors | None) -> dict[str, Any]:
    from armwise.servos import servo_to_dict

    plain = servo_to_dict(servo)
    del plain["arm"]
    plain["fit"] = _errors(servo.fit)
    if validation is not None:
        plain["validation"] = _errors(validation)
    return plain


def _errors(errors: FreeRunErrors | None) -> dict[str, Any] | None:
    if errors is None:
        return None
    return {
        "mrad": 1e3 * errors.joints,
        "delay_line_mrad": 1e3 * errors.delay_line_joints,
        "motions": {name: 1e3 * row for name, row in errors.motions.items()},
        "contact": dict(errors.contact),
    }


def _show(
    servo: Servo, validation: FreeRunErrors | None, files: dict[str, str]
) -> None:
    from rich.markup import escape

    screen = console()
    names = [joint.name for joint in servo.arm.joints]
    values = table(f"Servos of {servo.arm.name}", ["", *heads(names)])
    for name, unit, cells in servo.rows():
        values.add_row(escape(f"{name} [{unit}]"), *cells)
    screen.print(values)
    screen.print("± is two standard deviations; ? is not known.", markup=False)
    errors = table("Mean error in free run [mrad]", ["", *heads(names)])
    for label, e in (("fitted", servo.fit), ("other motions", validation)):
        if e is not None:
            errors.add_row(label, *(f"{1e3 * x:.2f}" for x in e.joints))
            line = (f"{1e3 * x:.1f}" for x in e.delay_line_joints)
            errors.add_row(f"{label}, a delay line", *line)
    screen.print(errors)
    unseen = validation.statements() if validation else ()
    for sentence in (*servo.statements(), *unseen):
        screen.print(f"- {sentence}", markup=False)
    for sentence in servo.record_next():
        screen.print(f"- Next: {sentence}", markup=False)
    for kind, path in files.items():
        screen.print(f"  {kind}: {path}", markup=False)
