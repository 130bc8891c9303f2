"""armwise identify: from a description and logs to a model one can trust."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    Folder,
    Logs,
    MappingFile,
    SkipBadRows,
    Validate,
)
from armwise.cli.fleet import (
    ClusterAddress,
    FleetReading,
    FleetWork,
    GroupBy,
    Like,
    SkipBadLogs,
    Workers,
    run_fleet,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn

if TYPE_CHECKING:
    from armwise.identification import Identification

_METHODS = {
    "physical": "PhysicallyConsistent",
    "weighted": "WeightedLeastSquares",
    "ordinary": "OrdinaryLeastSquares",
    "ridge": "Ridge",
    "total": "TotalLeastSquares",
    "robust": "Robust",
    "prior": "PriorWeighted",
}


def identify(
    arm: ArmName,
    logs: Logs,
    validate: Validate = None,
    output: Folder = None,
    mapping: MappingFile = None,
    column: Columns = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(_METHODS)}.")] = (
        "physical"
    ),
    friction: Annotated[
        str | None,
        typer.Option(
            help="auto: choose terms that predict better; or linear, as for fleets."
        ),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option("--fix", help="Keep a term, such as rotor_inertia, as described."),
    ] = None,
    cutoff_hz: CutoffHz = None,
    hold_out: Annotated[
        float, typer.Option("--hold-out", help="Fraction of the end to validate on.")
    ] = 0.0,
    skip_bad_rows: SkipBadRows = False,
    group_by: GroupBy = None,
    cluster: ClusterAddress = None,
    workers: Workers = None,
    skip_bad_logs: SkipBadLogs = False,
    like: Like = None,
    json: AsJson = False,
) -> None:
    """Identify an arm from logs of its motion; with --group-by, a fleet of them.

    Example: armwise identify panda run1.csv --validate run2.csv -o out

    Example: armwise identify panda 'logs/**/*.parquet' --group-by robot -o out
    """
    if group_by or cluster or workers or skip_bad_logs or like:
        if validate or hold_out:
            raise typer.BadParameter("a fleet has no --validate and no --hold-out.")
        if _friction(friction or "linear") != "linear":
            raise typer.BadParameter("a fleet's friction is linear, not auto.")
        reading = FleetReading(
            mapping, column, cutoff_hz, like, skip_bad_rows, skip_bad_logs
        )
        share = FleetWork(group_by or "robot", cluster, workers, output)
        run_fleet(arm, logs, reading, share, _method(method), _terms(fix or []), json)
        return
    from armwise.cli.arguments import load_described, read_logs
    from armwise.cli.output import progress_bar
    from armwise.identification import identify_recordings

    described, mapped = load_described(arm, mapping)
    chosen = _method(method)
    with progress_bar("Identify", quiet=json) as tell:
        fitted = read_logs(logs, described, mapped, column, skip_bad_rows)
        held_out = read_logs(validate or [], described, mapped, column, skip_bad_rows)
        result = identify_recordings(
            described,
            fitted,
            held_out,
            method=chosen,
            friction=_friction(friction or "auto"),  # type: ignore[arg-type]
            terms=_terms(fix or []),
            cutoff_hz=cutoff_hz,
            hold_out=hold_out,
            progress=tell,
        )
    files = _write(result, arm, output) if output else {}
    summary = summarise(result, files)
    if json:
        print_json(summary)
        return
    _show(result, summary)


def summarise(result: Identification, files: dict[str, str]) -> dict[str, Any]:
    """Collect what a machine wants to know."""
    estimate = result.estimate
    checked = result.validation
    return {
        "arm": estimate.prior_arm.name,
        "method": estimate.method,
        "base_parameter_count": estimate.base.count - len(estimate.columns.friction),
        "condition_number": estimate.condition_number,
        "friction": [term.name for term in estimate.columns.friction],
        "fit": estimate.fit.to_dict(),
        "validation": checked.to_dict() if checked else None,
        "base_parameters": [
            {"expression": text, "value": value, "std": std}
            for text, value, std in zip(
                estimate.base.expressions,
                estimate.base_values,
                estimate.base_std,
                strict=True,
            )
        ],
        "unidentifiable": list(estimate.base.unidentifiable),
        "preparation": result.fitted.preparation,
        "warnings": list(result.warnings),
        "files": files,
    }


def _method(name: str) -> Any:
    import armwise.identification as identification

    if name not in _METHODS:
        raise typer.BadParameter(f"unknown method {name!r}; use {', '.join(_METHODS)}.")
    return getattr(identification, _METHODS[name])()


def _friction(name: str) -> str:
    if name not in ("auto", "linear"):
        raise typer.BadParameter(f"--friction is auto or linear, not {name!r}.")
    return name


def _terms(fixed: list[str]) -> list[str]:
    from armwise.identification import TERMS

    if unknown := set(fixed) - set(TERMS):
        raise typer.BadParameter(
            f"cannot fix {sorted(unknown)[0]!r}; choose from {', '.join(TERMS)}."
        )
    return [term for term in TERMS if term not in fixed]


def _write(result: Identification, source: str, folder: Path) -> dict[str, str]:
    """Write the model, the estimate and the report."""
    from armwise.arms import save_arm
    from armwise.identification import write_estimate
    from armwise.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    files = {"estimate": folder / "estimate.json", "urdf": folder / "identified.urdf"}
    write_estimate(result.estimate, files["estimate"])
    template = source if source.lower().endswith((".urdf", ".xml")) else None
    defects = result.estimate.arm.defects()
    if defects:
        del files["urdf"]
        for name, why in defects.items():
            warn(
                f"{name}: {why}; identified.urdf is not written. Use --method physical."
            )
    elif template and template.lower().endswith(".urdf"):
        save_arm(result.estimate.arm, files["urdf"], template=template)
    else:
        save_arm(result.estimate.arm, files["urdf"])
    files["report"] = write_report(result, folder / "report.html")
    return {key: str(path) for key, path in files.items()}


def _show(result: Identification, summary: dict[str, Any]) -> None:
    estimate = result.estimate
    out = console()
    shown = table(
        f"{summary['arm']}: {summary['base_parameter_count']} base parameters, "
        f"condition number {estimate.condition_number:.1f}",
        ["joint", "fit error", "validation error", "residual"],
    )
    checked = result.validation
    for j, name in enumerate(estimate.prior_arm.coordinate_names):
        error = (
            f"{100 * checked.relative_error[j]:.2f} %" if checked else "not evaluated"
        )
        shown.add_row(
            name,
            f"{100 * estimate.fit.relative_error[j]:.2f} %",
            error,
            f"{figure(float(estimate.fit.rmse[j]), 3)} N m",
        )
    out.print(shown)
    if estimate.columns.friction:
        names = ", ".join(term.name for term in estimate.columns.friction)
        out.print(f"Friction beyond viscous and Coulomb: {names}")
    for key, path in summary["files"].items():
        out.print(f"{key}: {path}")
    for warning in result.warnings:
        warn(warning)
