"""armwise report: all there is to say about an estimate, again or elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    MappingFile,
    SkipBadRows,
    Validate,
    load_described,
    output_file,
    read_logs,
)
from armwise.cli.output import AsJson, console, print_json
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.identification import Estimate, Identification
    from armwise.recordings import Recording

PathList = list[Path]


def report(
    arm: ArmName,
    estimate: Annotated[Path, typer.Argument(help="estimate.json of identify.")],
    logs: Annotated[
        PathList | None,
        typer.Argument(help="Logs it was fitted to, for figures.", metavar="LOG"),
    ] = None,
    validate: Validate = None,
    output: Annotated[
        Path | None,
        output_file("A file: .html, .json or .txt."),
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    cutoff_hz: CutoffHz = None,
    json: AsJson = False,
) -> None:
    """Report on an estimate: on the terminal, or as a page with figures.

    Example: armwise report panda out/estimate.json run1.csv -o report.html
    """
    from armwise.identification import read_estimate
    from armwise.report import make_report, report_to_text, write_report

    described, mapped = load_described(arm, mapping)

    def read(paths: PathList | None) -> list[Recording]:
        return read_logs(paths or [], described, mapped, column, skip_bad_rows)

    alone = read_estimate(estimate, described)
    found: Identification | Estimate = alone
    if validate and not logs:
        raise ArgumentError("--validate needs the logs of the fit too: name them.")
    if logs:
        found = _with_data(alone, described, read(logs), read(validate), cutoff_hz)
    if output is not None:
        write_report(found, output)
    if json:
        print_json(make_report(found).to_dict())
    elif output is not None:
        console().print(f"Open {output}", soft_wrap=True)
    else:
        typer.echo(report_to_text(make_report(found)), nl=False)


def _with_data(
    found: Estimate,
    arm: Arm,
    logs: list[Recording],
    others: list[Recording],
    cutoff_hz: float | None,
) -> Identification:
    """Prepare the logs as `identify` does, and validate again."""
    from armwise.identification import Identification, diagnose
    from armwise.recordings import prepare

    fitted = prepare(logs, cutoff_hz, arm=arm)
    held_out = prepare(others, like=fitted) if others else None
    checked = None if held_out is None else found.validate(held_out)
    doubts = diagnose(found, fitted, checked)
    return Identification(found, fitted, held_out, checked, doubts)
