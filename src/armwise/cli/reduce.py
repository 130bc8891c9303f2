"""armwise reduce: the parameters that matter, identified again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    Logs,
    MappingFile,
    SkipBadRows,
    output_file,
)
from armwise.cli.output import AsJson, console, print_json, table


def reduce(
    arm: ArmName,
    estimate: Annotated[
        Path, typer.Argument(help="estimate.json of armwise identify.")
    ],
    logs: Logs,
    threshold: Annotated[
        float, typer.Option(help="Fraction of a joint's largest torque that matters.")
    ] = 0.01,
    output: Annotated[
        Path | None, output_file("File of the reduced estimate (.json).")
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    json: AsJson = False,
) -> None:
    """Drop parameters whose torque never matters, and identify the others again.

    Example: armwise reduce panda out/estimate.json run1.csv -o small.json
    """
    from armwise.cli.arguments import load_described, read_logs
    from armwise.identification import read_estimate, write_estimate
    from armwise.identification import reduce as reduce_estimate
    from armwise.recordings import prepare

    described, mapped = load_described(arm, mapping)
    whole = read_estimate(estimate, described)
    recordings = read_logs(logs, described, mapped, column, skip_bad_rows)
    data = prepare(recordings, arm=described)
    small = reduce_estimate(whole, data, threshold)
    if output:
        write_estimate(small, output)
    summary: dict[str, Any] = {
        "base_parameters": whole.base.count,
        "kept": small.base.count,
        "names": [small.base.names[i] for i in small.base.indices],
        "condition_number": {
            "whole": whole.condition_number,
            "small": small.condition_number,
        },
        "relative_error": {
            "whole": whole.validate(data).relative_error,
            "small": small.validate(data).relative_error,
        },
        "output": str(output) if output else None,
    }
    if json:
        print_json(summary)
        return
    _show(summary, described.coordinate_names)


def _show(summary: dict[str, Any], joints: tuple[str, ...]) -> None:
    rows = table(
        f"{summary['kept']} of {summary['base_parameters']} base parameters matter",
        ["joint", "error before", "error after"],
    )
    errors = summary["relative_error"]
    for name, before, after in zip(
        joints, errors["whole"], errors["small"], strict=True
    ):
        rows.add_row(name, f"{100 * before:.2f} %", f"{100 * after:.2f} %")
    out = console()
    out.print(rows)
    out.print(f"Kept: {', '.join(summary['names'])}")
    if summary["output"]:
        out.print(f"estimate: {summary['output']}")
