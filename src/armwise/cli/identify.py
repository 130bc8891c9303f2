"""armwise identify: from a description and logs to a model one can trust."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    FixedTerms,
    Folder,
    Logs,
    MappingFile,
    MethodName,
    SensorsFile,
    SkipBadRows,
    Strict,
    Validate,
    free_terms,
    method_named,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn
from armwise.errors import NotPhysical

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.identification import Estimate, Validation


def identify(
    arm: ArmName,
    logs: Logs,
    validate: Validate = None,
    output: Folder = None,
    mapping: MappingFile = None,
    column: Columns = None,
    method: MethodName = "physical",
    stiffness: Annotated[
        str | None,
        typer.Option(
            help="With --method output-error: the controller's, one number or one per "
            "joint with commas [N m/rad]."
        ),
    ] = None,
    damping: Annotated[
        str | None, typer.Option(help="As --stiffness, in [N m s/rad].")
    ] = None,
    velocity_lag: Annotated[
        float, typer.Option(help="How late that controller knows velocities [s].")
    ] = 0.0,
    friction: Annotated[
        str, typer.Option(help="auto: select terms that predict better; or linear.")
    ] = "auto",
    fix: FixedTerms = None,
    cutoff_hz: CutoffHz = None,
    lag: Annotated[
        float | None,
        typer.Option(help="Delay of torques behind positions, if it is known [s]."),
    ] = None,
    hold_out: Annotated[
        float, typer.Option("--hold-out", help="Fraction of the end to validate on.")
    ] = 0.0,
    gain_std: Annotated[
        str,
        typer.Option(
            "--gain-std",
            help="How well torque gains are known: sensor, current, unknown, or 0.05; "
            "one number, or one per joint with commas.",
        ),
    ] = "unknown",
    skip_bad_rows: SkipBadRows = False,
    sensors: SensorsFile = None,
    strict: Strict = False,
    json: AsJson = False,
) -> None:
    """Identify an arm from logs of its motion.

    Example: armwise identify panda run1.csv --validate run2.csv -o out
    """
    from armwise import identification
    from armwise.cli.arguments import load_described, read_logs
    from armwise.cli.output import progress_bar
    from armwise.report import verdicts

    if friction not in ("auto", "linear"):
        raise typer.BadParameter(f"--friction is auto or linear, not {friction!r}.")
    solver, terms = method_named(method), free_terms(fix)
    gains = stiffness, damping, velocity_lag or None
    if method == "output-error":
        solver = identification.OutputError(
            _numbers("--stiffness", stiffness),
            _numbers("--damping", damping),
            velocity_lag=velocity_lag,
        )
    elif any(gain is not None for gain in gains):
        raise typer.BadParameter(
            "--stiffness, --damping and --velocity-lag are for --method output-error."
        )
    described, mapped = load_described(arm, mapping, [*logs, *(validate or [])])
    with progress_bar("Identify", quiet=json) as report:
        estimate = identification.identify(
            described,
            read_logs(logs, described, mapped, column, skip_bad_rows, sensors),
            solver,
            friction=friction,  # type: ignore[arg-type]
            terms=terms,
            validation=read_logs(
                validate or [], described, mapped, column, skip_bad_rows, sensors
            ),
            hold_out=hold_out,
            cutoff_hz=cutoff_hz,
            lag=lag,
            gain_std=_gain_std(gain_std),
            progress=report,
        )
    written = Written({}, {}, {})
    if output:
        written = _write(estimate, arm, [*logs, *(validate or [])], output)
    failed = [one for one in verdicts(estimate) if one.verdict == "fail"]
    summary = summarise(estimate, written)
    if json:
        print_json(summary)
    else:
        _show(estimate, summary)
        _show_files(estimate, written)
        for one in failed:
            console().print(f"fail: {one.question} {one.why}", markup=False)
    if written.defects:
        name, why = next(iter(written.defects.items()))
        raise NotPhysical(
            f"{name}: {why}. No model is written: only --method physical gives bodies "
            "that can exist."
        )
    if strict and failed:
        raise typer.Exit(1)


def _numbers(name: str, text: str | None) -> tuple[float, ...] | float | None:
    """One number, or several with commas, of an option."""
    if text is None:
        return None
    try:
        values = tuple(float(x) for x in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{name} is one number, or one per joint with commas, not {text!r}."
        ) from None
    return values[0] if len(values) == 1 else values


def _gain_std(text: str) -> Any:
    """A kind of signal as it is, or numbers."""
    try:
        values = [float(x) for x in text.split(",")]
    except ValueError:
        return text  # the verb knows which kinds there are
    return values[0] if len(values) == 1 else values


def summarise(estimate: Estimate, written: Written) -> dict[str, Any]:
    """Collect what `--json` prints."""
    from armwise.report import verdicts

    base = estimate.base
    combinations = zip(
        base.expressions, estimate.base_values, estimate.base_std, strict=True
    )
    validation, lag = estimate.validation, estimate.torque_lag
    gains = estimate.gain_std
    return {
        "arm": estimate.prior_arm.name,
        "method": estimate.method,
        "base_parameter_count": base.count - len(estimate.columns.friction),
        "condition_number": estimate.condition_number,
        "friction": [term.name for term in estimate.columns.friction],
        "fit": estimate.fit.to_dict(),
        "validation": validation.to_dict() if validation else None,
        "base_parameters": [
            {"expression": text, "value": value, "std": std}
            for text, value, std in combinations
        ],
        "torque_lag": None if lag is None else asdict(lag),
        "gain_std": None if gains is None else gains.tolist(),
        "unidentifiable": list(base.unidentifiable),
        "preparation": estimate.samples[0].preparation,
        "verdicts": [asdict(one) for one in verdicts(estimate)],
        "warnings": [warning.text for warning in estimate.warnings],
        "warning_codes": [warning.code for warning in estimate.warnings],
        "files": written.files,
        "file_errors": {k: e.to_dict() for k, e in written.errors.items()},
    }


def _write(estimate: Estimate, source: str, logs: list[Path], folder: Path) -> Written:
    """Write the model, the estimate and the report."""
    from armwise.arms import save_arm
    from armwise.identification import (
        arm_for_file,
        file_error,
        read_back,
        write_estimate,
    )
    from armwise.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    files = {"estimate": folder / "estimate.json"}
    model = arm_for_file(estimate)
    # Fitted once: the estimate's file holds it, too.
    estimate = replace(estimate, known_plain=model.parameters)
    write_estimate(estimate, files["estimate"])
    errors: dict[str, Validation] = {}
    defects = estimate.arm.defects()
    if not defects:
        kind = Path(source).suffix.lower()
        if kind == ".xml":
            path = files["mjcf"] = _write_mjcf(model, source, folder)
        else:
            path = files["urdf"] = folder / "identified.urdf"
            template = source if kind == ".urdf" else None
            for note in save_arm(model, path, template=template):
                warn(note)
        data = estimate.validation_samples or estimate.samples
        errors[path.name] = file_error(read_back(path, estimate), data)
    files["report"] = write_report(
        estimate, folder / "report.html", sources=[source, *logs]
    )
    return Written({key: str(path) for key, path in files.items()}, errors, defects)


class Written(NamedTuple):
    """What was written: files by kind, errors of models by name, and why none was."""

    files: dict[str, str]
    errors: dict[str, Validation]
    defects: dict[str, str]


def _write_mjcf(arm: Arm, source: str, folder: Path) -> Path:
    """Put the numbers into the user's MJCF; where that cannot be, write it anew."""
    from armwise.arms import load_arm, save_arm
    from armwise.errors import ArmError

    path = folder / "identified.xml"
    try:
        notes = save_arm(arm, path, template=source)
        load_arm(path)  # its meshes and included files may be out of reach from here
    except ArmError as problem:
        warn(f"identified.xml is written anew, without the text of {source}: {problem}")
        notes = save_arm(arm, path)
    for note in notes:
        warn(note)
    return path


def _apart(errors: Validation, joint: int) -> list[str]:
    """Errors of a joint while it moves and while it rests; a dash for no such row."""
    parts = [x for x in (errors.moving, errors.resting) if x is not None]
    values = [float(part.relative_error[joint]) for part in parts]
    # An error that is not a number is that of no row.
    return [f"{100 * v:.2f} %" if v == v else "–" for v in values]


def _show(estimate: Estimate, summary: dict[str, Any]) -> None:
    out = console()
    rows = table(
        f"{summary['arm']}: {summary['base_parameter_count']} base parameters, "
        + _condition(estimate),
        ["joint", "fit error", "validation error", "moving", "resting", "residual"],
    )
    validation = estimate.validation
    arm = estimate.prior_arm
    units = ["N m" if arm.joints[i].is_revolute else "N" for i in arm.coordinates]
    for j, name in enumerate(arm.coordinate_names):
        rows.add_row(
            name,
            f"{100 * estimate.fit.relative_error[j]:.2f} %",
            f"{100 * validation.relative_error[j]:.2f} %"
            if validation
            else "not evaluated",
            *_apart(validation or estimate.fit, j),
            f"{figure(float(estimate.fit.rmse[j]), 3)} {units[j]}",
        )
    out.print(rows)
    if summary["friction"]:
        terms = ", ".join(summary["friction"])
        out.print(f"Friction beyond viscous and Coulomb: {terms}", markup=False)
    for sentence in _assumptions(estimate):
        out.print(sentence, markup=False)
    # What the other methods note is in the report; this one is for what it notes.
    if estimate.method == "OutputError":
        for note in estimate.notes:
            out.print(note, markup=False)
    for warning in estimate.warnings:
        warn(warning.text)


def _condition(estimate: Estimate) -> str:
    if not isfinite(estimate.condition_number):
        return "not all determined by this motion"
    return f"condition number {estimate.condition_number:.1f}"


def _assumptions(estimate: Estimate) -> list[str]:
    """What intervals know of beside noise."""
    from armwise.identification import faster_motion
    from armwise.recordings import UNKNOWN_LAG

    sentences = []
    lag = estimate.torque_lag
    if lag is not None and lag.std >= UNKNOWN_LAG:
        sentences.append(
            f"Nothing shows how far torque is behind the position: taken for "
            f"{1e3 * lag.seconds:.2f} ms. Give it, if it is known (--lag)."
        )
    elif lag is not None:
        sentences.append(
            f"Torque is {1e3 * lag.seconds:.2f} ± {1e3 * lag.std:.2f} ms behind the "
            "position (standard deviation, as below)."
        )
    if estimate.gain_std is not None:
        percent = 100.0 * float(estimate.gain_std.max())
        sentences.append(
            f"Intervals count with torque gains known to ± {percent:.2g} % a joint "
            "(--gain-std)."
        )
    faster = faster_motion(estimate)
    # Where errors are worse for it, a warning says so.
    if faster and all(w.code != "faster-than-fitted" for w in estimate.warnings):
        sentences.append(faster)
    return sentences


def _show_files(estimate: Estimate, written: Written) -> None:
    """Print what was written, and the error of the model in it."""
    out = console()
    for key, path in written.files.items():
        out.print(f"{key}: {path}", markup=False)
    log = "validation's log" if estimate.validation_samples else "the fitted log"
    for name, error in written.errors.items():
        whole = " ".join(f"{100 * e:.1f}" for e in error.relative_error)
        out.print(
            f"error of {name} on {log} by its own inverse dynamics, joint by joint: "
            f"{whole} %"
        )
        filtered_errors = (estimate.validation or estimate.fit).relative_error
        # Judgement: half as much again, and half a per cent, is what people ask about.
        pairs = zip(error.relative_error, filtered_errors, strict=True)
        if any(own > 1.5 * filtered + 0.005 for own, filtered in pairs):
            out.print(
                "Its Coulomb friction turns over at once, as a simulator's does; the "
                "log's torque was low-passed, and the estimate's friction with it."
            )
        if estimate.columns.friction:
            out.print(
                f"{name} holds viscous and Coulomb friction, fitted without the terms "
                "above; estimate.json holds them all."
            )
