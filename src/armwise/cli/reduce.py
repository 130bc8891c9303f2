"""armwise reduce: the parameters that matter, identified again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    MappingFile,
    SensorsFile,
    SkipBadRows,
    Validate,
    bundled_names,
    load_described,
    load_named,
    number,
    output_file,
    read_logs,
    with_own_arm,
)
from armwise.cli.output import AsJson, console, figure, print_json, table

if TYPE_CHECKING:
    from armwise.identification import Estimate
    from armwise.recordings import Samples

RULES = {
    "joint": "of the joint's own largest torque",
    "arm": "of the largest torque of all joints",
}
"""What a parameter's torque is compared with, as the user types it."""


def reduce(
    arm: ArmName,
    estimate: Annotated[
        Path | None,
        typer.Argument(help="estimate.json of armwise identify, unless it is ARM."),
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Argument(help="CSV, JSON lines, Parquet, NPZ, MAT, bag.", metavar="LOG"),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Fraction of the largest torque that matters.")
    ] = 0.01,
    of: Annotated[
        str,
        typer.Option(help="Largest torque of the joint, or of the whole arm."),
    ] = "joint",
    from_tip: Annotated[
        bool,
        typer.Option(
            "--from-tip",
            help="Combinations led by motors and the links at the tip.",
        ),
    ] = False,
    largest_relative_std: Annotated[
        float | None,
        number("Also drop what is less certain than this fraction.", 1e-9, 1e9),
    ] = None,
    validate: Validate = None,
    hold_out: Annotated[
        float, number("Fraction of the end to validate on.", 0.0, 0.9)
    ] = 0.0,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="ARM",
            help="A reduced model of this arm: say which of its parameters stay.",
            autocompletion=bundled_names,
        ),
    ] = None,
    output: Annotated[
        Path | None, output_file("File of the reduced estimate (.json).")
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    sensors: SensorsFile = None,
    json: AsJson = False,
) -> None:
    """Drop parameters whose torque never matters, and identify the others again.

    Example: armwise reduce out/estimate.json run1.csv -o small.json

    Example: armwise reduce panda out/estimate.json run1.csv --of arm
    --largest-relative-std 0.3
    """
    from armwise.identification import (
        led_from_tip,
        read_estimate,
        standing_of,
        write_estimate,
    )
    from armwise.identification import reduce as reduce_estimate
    from armwise.recordings import prepare

    arm, estimate, logs = with_own_arm(arm, estimate, logs)
    if not logs:
        raise typer.BadParameter("Name the log that it is identified from again.")
    described, mapped = load_described(arm, mapping, logs)
    published = load_named(compare) if compare is not None else None
    whole = read_estimate(estimate, described)
    if from_tip:
        whole = led_from_tip(whole)
    recordings = read_logs(logs, described, mapped, column, skip_bad_rows, sensors)
    data = prepare(recordings, arm=described)
    others = read_logs(
        validate or [], described, mapped, column, skip_bad_rows, sensors
    )
    held_out = [prepare(others, like=data)] if others else []
    if hold_out:
        data, end = data.split(1.0 - hold_out)
        held_out.append(end)
    small = reduce_estimate(
        whole,
        data,
        threshold,
        of=of,  # type: ignore[arg-type]
        largest_relative_std=largest_relative_std,
    )
    summary = _summary(whole, small, data, threshold)
    if held_out:
        summary["validation"] = _errors(whole, small, held_out)
    if published is not None:
        summary["compared"] = standing_of(published, whole, small)
    if output:
        write_estimate(small, output)
    summary["output"] = str(output) if output else None
    if json:
        print_json(summary)
        return
    _show(summary, described.coordinate_names, threshold, of)


def _summary(
    whole: Estimate, small: Estimate, data: Samples, threshold: float
) -> dict[str, Any]:
    import numpy as np

    from armwise.identification import reduction_cost, significance

    leaders = [whole.base.names[i] for i in whole.base.indices]
    rules = {
        rule: [
            name
            for name, size in zip(
                leaders,
                significance(whole, [data], rule),  # type: ignore[arg-type]
                strict=True,
            )
            if size >= threshold
        ]
        for rule in RULES
    }
    return {
        # Not those that were fixed as described.
        "parameters": len(whole.base.unidentifiable)
        + int(np.count_nonzero(whole.base.matrix.any(axis=0))),
        "base_parameters": whole.base.count,
        "kept": small.base.count,
        "names": [small.base.names[i] for i in small.base.indices],
        "left_out": list(small.left_out),
        "rules": rules,
        "condition_number": {
            "whole": whole.condition_number,
            "small": small.condition_number,
        },
        **_errors(whole, small, [data]),
        "cost": vars(reduction_cost(whole, small, data)),
    }


def _errors(whole: Estimate, small: Estimate, data: list[Samples]) -> dict[str, Any]:
    return {
        "relative_error": {
            "whole": whole.validate(data).relative_error,
            "small": small.validate(data).relative_error,
        }
    }


def _show(
    summary: dict[str, Any], joints: tuple[str, ...], threshold: float, of: str
) -> None:
    validated = summary.get("validation", {}).get("relative_error")
    headings = ["joint", "error before", "after", "rms change", "largest change"]
    rows = table(
        f"{summary['kept']} of {summary['base_parameters']} base parameters "
        f"({summary['parameters']} parameters) matter: {100 * threshold:g} % "
        f"{RULES[of]}",
        headings + (["validated before", "after"] if validated else []),
    )
    errors, cost = summary["relative_error"], summary["cost"]
    for i, name in enumerate(joints):
        # In per cent of the peak, beside N m: joints differ a hundredfold.
        changes = [
            f"{figure(cost[k][i])} N m, {_per_cent(cost[k][i], cost['peak'][i])}"
            for k in ("rms", "largest")
        ]
        checked = [errors] + ([validated] if validated else [])
        before, *more = [f"{100 * e[k][i]:.2f} %" for e in checked for k in e]
        rows.add_row(name, before, more[0], *changes, *more[1:])
    out = console()
    out.print(rows)
    out.print(f"Stay: {', '.join(summary['names'])}", markup=False)
    for rule, names in summary["rules"].items():
        out.print(
            f"{len(names)} reach {100 * threshold:g} % {RULES[rule]}"
            + ("" if rule == "arm" else "; beside the other rule's: ")
            + ("" if rule == "arm" else _difference(summary["rules"])),
            markup=False,
        )
    if "compared" in summary:
        _show_compared(summary["compared"])
    if summary["output"]:
        out.print(f"estimate: {summary['output']}", markup=False)


def _per_cent(value: float, peak: float) -> str:
    return f"{100 * value / peak:.2f} %" if peak > 0 else "–"


def _difference(rules: dict[str, list[str]]) -> str:
    more = [name for name in rules["joint"] if name not in rules["arm"]]
    return ", ".join(more) or "none"


def _show_compared(standing: dict[str, str | None]) -> None:
    alone = [name for name, leader in standing.items() if leader == name]
    merged = [f"{k} (in {v})" for k, v in standing.items() if v not in (k, None)]
    lost = [name for name, leader in standing.items() if leader is None]
    out = console()
    out.print(
        f"Of the {len(standing)} parameters of the other model {len(alone)} are here "
        f"by themselves, {len(merged)} in a combination, {len(lost)} are not.",
        markup=False,
    )
    for title, names in (("In a combination", merged), ("Not here", lost)):
        if names:
            out.print(f"{title}: {', '.join(names)}", markup=False)
