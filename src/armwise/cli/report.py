"""armwise report: all there is to say about an estimate, again or elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.output import AsJson, console, print_json
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.identification import Estimate, Identification

PathList = list[Path]


def report(
    arm: Annotated[str, typer.Argument(help="The description it was made from.")],
    estimate: Annotated[Path, typer.Argument(help="estimate.json of identify.")],
    logs: Annotated[
        PathList | None,
        typer.Argument(help="Logs it was fitted to, for figures.", metavar="[LOG]..."),
    ] = None,
    validate: Annotated[
        PathList | None, typer.Option("--validate", help="A log to validate on.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A file: .html, .json or .txt."),
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option("--mapping", help="TOML that describes the logs.")
    ] = None,
    cutoff_hz: Annotated[
        float | None, typer.Option("--cutoff-hz", help="Low-pass; chosen if absent.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Report on an estimate: on the terminal, or as a page with figures.

    Example: armwise report panda out/estimate.json run1.csv -o report.html
    """
    from armwise.identification import read_estimate
    from armwise.report import make_report, report_to_text, write_report

    described, mapped = _load(arm, mapping)
    alone = read_estimate(estimate, described)
    found: Identification | Estimate = alone
    if logs or validate:
        found = _with_data(
            alone, described, mapped, logs or [], validate or [], cutoff_hz
        )
    if output is not None:
        write_report(found, output)
    if json:
        print_json(make_report(found).to_dict())
    elif output is not None:
        console().print(f"Open {output}", soft_wrap=True)
    else:
        typer.echo(report_to_text(make_report(found)), nl=False)


def _load(arm: str, mapping: Path | None) -> tuple[Arm, Any]:
    from armwise.arms import load_arm
    from armwise.recordings.mapping import apply_mapping_to_arm
    from armwise.recordings.mapping_file import load_mapping

    described = load_arm(arm)
    if mapping is None:
        return described, None
    mapped = load_mapping(mapping)
    return apply_mapping_to_arm(described, mapped), mapped


def _with_data(
    found: Estimate,
    arm: Arm,
    mapping: Any,
    logs: PathList,
    validate: PathList,
    cutoff_hz: float | None,
) -> Identification:
    """Prepare the logs as `identify` does, and validate again."""
    from armwise.identification import Identification
    from armwise.identification.diagnosis import diagnose
    from armwise.recordings import prepare
    from armwise.recordings.read import read_recording

    if not logs:
        raise ArgumentError("--validate needs the logs of the fit too: name them.")
    read = [read_recording(path, arm, mapping) for path in logs]
    others = [read_recording(path, arm, mapping) for path in validate]
    fitted = prepare(read, cutoff_hz, arm=arm)
    held_out = prepare(others, like=fitted) if others else None
    checked = None if held_out is None else found.validate(held_out)
    doubts = diagnose(found, fitted, checked)
    return Identification(found, fitted, held_out, checked, doubts)
