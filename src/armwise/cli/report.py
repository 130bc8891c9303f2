"""armwise report: a page, file or text about an estimate."""

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
    with_own_arm,
)
from armwise.cli.output import AsJson, console, print_json
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from armwise.identification import Estimate
    from armwise.recordings import Recording

PathList = list[Path]


def report(
    arm: ArmName,
    estimate: Annotated[
        Path | None,
        typer.Argument(help="estimate.json of identify, unless it is ARM."),
    ] = None,
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

    Example: armwise report out/estimate.json run1.csv -o report.html
    """
    from armwise.identification import read_estimate
    from armwise.report import make_report, report_to_text, write_report

    arm, estimate, logs = with_own_arm(arm, estimate, logs)
    described, mapped = load_described(arm, mapping, [*(logs or []), *(validate or [])])

    def read(paths: PathList | None) -> list[Recording]:
        return read_logs(paths or [], described, mapped, column, skip_bad_rows)

    subject = read_estimate(estimate, described)
    if validate and not logs:
        raise ArgumentError("--validate needs the logs of the fit too: name them.")
    if logs:
        subject = _with_data(subject, read(logs), read(validate), cutoff_hz)
    sources: list[str | Path] = [arm, estimate, *(logs or []), *(validate or [])]
    if output is not None:
        write_report(subject, output, sources=sources)
    if json:
        print_json(make_report(subject, sources=sources).to_dict())
    elif output is not None:
        console().print(f"Open {output}", soft_wrap=True)
    else:
        typer.echo(report_to_text(make_report(subject, sources=sources)), nl=False)


def _with_data(
    estimate: Estimate,
    logs: list[Recording],
    others: list[Recording],
    cutoff_hz: float | None,
) -> Estimate:
    """Prepare the logs as `identify` does, and validate and diagnose again."""
    from dataclasses import replace

    from armwise.identification import diagnose
    from armwise.recordings import prepare

    samples = prepare(logs, cutoff_hz, arm=estimate.prior_arm)
    held_out = (prepare(others, like=samples),) if others else ()
    estimate = replace(
        estimate,
        samples=(samples,),
        validation=estimate.validate(held_out) if held_out else estimate.validation,
        validation_samples=held_out,
    )
    return replace(estimate, warnings=diagnose(estimate))
