"""armwise identify-servo: servo models from commands and positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
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
    ServoCalibration,
    SkipBadRows,
    Strict,
    Validate,
)
from armwise.cli.output import AsJson, console, heads, print_json, progress_bar, table

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings import Recording
    from armwise.servos import FreeRunErrors, Servo


def identify_servo(
    arm: ArmName,
    logs: Logs,
    validate: Validate = None,
    gains: Annotated[
        str | None,
        typer.Option(
            help="The servo's gain register in each LOG, then in each --validate."
        ),
    ] = None,
    loads: Annotated[
        Path | None,
        typer.Option(help="CSV of logs: columns log, arm (with its load), gain."),
    ] = None,
    calibration: ServoCalibration = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    starts: Annotated[
        # A thousand take a minute on a GPU; a million no memory holds.
        int,
        typer.Option(min=1, max=100_000, help="Random starts of every joint's fit."),
    ] = 256,
    backend: Annotated[
        str, typer.Option(help='"c", or "cuda": fit every start, on a GPU.')
    ] = "c",
    seed: Seed = 0,
    output: Folder = None,
    strict: Strict = False,
    json: AsJson = False,
) -> None:
    """Identify the servos of an arm from commands and positions alone.

    Logs hold command_1 … and q_1 …, or LeRobot's action and observation.state.

    Example: armwise identify-servo so101.urdf move1.csv move2.csv -o out
    """
    from armwise.cli.arguments import load_described, plain_logs, read_servo_logs
    from armwise.servos import identify_servo as identify
    from armwise.servos import require_same_mechanism, validated_on_fit

    others = validate or []
    plain = plain_logs([*logs, *others])
    described, mapped = load_described(arm, mapping, plain)

    def read(paths: Sequence[Path]) -> list[Recording]:
        return read_servo_logs(
            paths, described, mapped, column, skip_bad_rows, calibration
        )

    if loads is not None and (gains is not None or len(plain) < len([*logs, *others])):
        raise typer.BadParameter(
            "--loads goes with plain logs, one recording each, and has their gains."
        )
    listed = None if loads is None else _Loads.read(loads)
    recordings, unseen = read(logs), read(others)
    registers = None if gains is None else _numbers(gains)
    arms, held = [described] * len(recordings), [described] * len(unseen)
    other_registers: list[float] | None = None
    if registers is not None:
        count = len(recordings)
        if len(registers) != count + len(unseen):
            raise typer.BadParameter(
                f"--gains has {len(registers)} numbers for {count} logs and "
                f"{len(unseen)} of --validate."
            )
        registers, other_registers = registers[:count], registers[count:]
    if listed is not None:
        arms, registers = listed.of(logs)
        held, other_registers = listed.of(others)
        for one in (*arms, *held):
            require_same_mechanism(one, described)
    with progress_bar("servos", quiet=json) as progress:
        servo = identify(
            arms if listed is not None else described,
            recordings,
            registers,
            starts=starts,
            seed=seed,
            backend=backend,
            progress=progress,
        )
        # The arm that was named, not the first log's with its load.
        servo = validated_on_fit(servo.on(described), recordings, unseen)
        validation = servo.errors(unseen, held, other_registers) if unseen else None
    files: dict[str, str] = {}
    if output:
        from armwise.report import write_servo_files

        # Judgement: four motions of traces are what one looks at.
        bodies = held if unseen else arms
        set_to = other_registers if unseen else registers
        shown = [
            servo.motion(r, bodies[k], set_to[k] if set_to else None)
            for k, r in enumerate((unseen or recordings)[:4])
        ]
        files = write_servo_files(servo, output, shown, validation)
    from armwise.report import servo_verdicts, worst_of

    judged = servo_verdicts(servo, validation)
    if json:
        verdicts = {"verdicts": [asdict(one) for one in judged]}
        print_json(_plain(servo, validation) | verdicts | {"files": files})
    else:
        _show(servo, validation, files)
        worst = worst_of(judged)
        why = "" if worst.verdict == "pass" else f". {worst.question} {worst.why}"
        console().print(f"Verdict: {worst.verdict}{why}", markup=False)
    if strict and worst_of(judged).verdict == "fail":
        raise typer.Exit(1)


class _Loads:
    """A table of logs: the arm with its load, and the servo's gain, in each."""

    def __init__(self, path: Path, rows: dict[str, dict[str, str]]) -> None:
        self.path, self.rows = path, rows
        self.arms: dict[str, Arm] = {}

    @classmethod
    def read(cls, path: Path) -> _Loads:
        """Read it: a header, then a row for each log."""
        import csv

        from armwise.errors import ArgumentError

        try:
            with path.open(newline="", encoding="utf-8") as file:
                header = file.readline()
                file.seek(0)
                # Spreadsheets of half the world separate by semicolons.
                between = ";" if ";" in header else ","
                rows = list(csv.DictReader(file, delimiter=between))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ArgumentError(f"{path} cannot be read: {error}") from None
        missing = {"log", "arm", "gain"} - set(rows[0] if rows else ())
        if missing:
            raise ArgumentError(
                f"{path} lacks the columns {', '.join(sorted(missing))}: it needs a "
                "header log,arm,gain and a row for each log."
            )
        return cls(path, {Path(row["log"] or "").name: row for row in rows})

    def of(self, logs: Sequence[Path]) -> tuple[list[Arm], list[float]]:
        """Return the arm and the gain of every log."""
        from armwise.cli.arguments import load_named
        from armwise.errors import ArgumentError

        arms, gains = [], []
        for log in logs:
            row = self.rows.get(log.name)
            if row is None:
                raise ArgumentError(f"{self.path} has no row for {log.name}. Add one.")
            # Beside the table, as its author saw it, or a bundled name.
            name, beside = row["arm"], self.path.parent / row["arm"]
            if name not in self.arms:
                self.arms[name] = load_named(str(beside if beside.exists() else name))
            arms.append(self.arms[name])
            try:
                gains.append(float(row["gain"].replace(",", ".")))
            except (TypeError, ValueError, AttributeError):
                raise ArgumentError(
                    f"{self.path}: the gain of {log.name} is {row['gain']!r}, not a "
                    "number. Write the servo's gain register, or 1."
                ) from None
        return arms, gains


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
