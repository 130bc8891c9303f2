"""armwise generate and realtime: C for an arm's controller, and its timing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    DESCRIPTIONS,
    AllowUnphysical,
    ArmName,
    Folder,
    bundled_names,
    load_model,
)
from armwise.cli.output import AsJson, console, print_json, table

if TYPE_CHECKING:
    from armwise.codegen import Comparison, GeneratedCode, RealtimeReport, Times


def generate(
    arm: Annotated[
        str | None,
        typer.Argument(metavar="ARM", help=DESCRIPTIONS, autocompletion=bundled_names),
    ] = None,
    output: Folder = None,
    functions: Annotated[
        str | None,
        typer.Option("--functions", help="Comma-separated; `all` for every one."),
    ] = None,
    precision: Annotated[str, typer.Option(help="double or float.")] = "double",
    load: Annotated[
        bool, typer.Option("--load", help="Take a load's ten parameters at run time.")
    ] = False,
    parameters: Annotated[
        str, typer.Option(help="constants, or struct: may change at run time.")
    ] = "constants",
    frame: Annotated[
        str | None, typer.Option(help="Link or frame of kinematics and load.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Prefix of C names.")] = None,
    runtime: Annotated[
        bool, typer.Option("--runtime", help="Add the two-rate real-time runtime.")
    ] = False,
    tolerance: Annotated[
        float, typer.Option(help="Torque error allowed, as a fraction of its peak.")
    ] = 0.0,
    allow_unphysical: AllowUnphysical = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Operation counts beside SymPyBotics'.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write customised C: fewest operations, no allocation, with a self-test.

    Example: armwise generate panda -o code

    Example: armwise generate out/estimate.json -o code --runtime
    """
    if compare:
        _compare(json)
        return
    if arm is None or output is None:
        raise typer.BadParameter(
            "name an arm and a folder: armwise generate ARM -o DIR."
        )
    from armwise.codegen import DEFAULT_FUNCTIONS, FUNCTIONS
    from armwise.codegen import generate as write

    if functions is None:
        names = list(DEFAULT_FUNCTIONS)
    else:
        names = [x.strip() for x in functions.split(",") if x.strip()]
        names = list(FUNCTIONS) if names == ["all"] else names
    code = write(
        load_model(arm),
        output,
        names,
        precision,  # type: ignore[arg-type]
        "arbitrary" if load else None,
        parameters=parameters,  # type: ignore[arg-type]
        frame=frame,
        name=name,
        runtime=runtime,
        tolerance=tolerance,
        allow_unphysical=allow_unphysical,
    )
    if json:
        print_json(_to_dict(code))
    else:
        _show(code)


def _to_dict(code: GeneratedCode) -> dict[str, Any]:
    report: dict[str, Any] = {
        "name": code.name,
        "folder": str(code.folder),
        "files": [str(path) for path in code.files],
        "counts": code.counts,
        "rounding": {key: vars(e) for key, e in code.precision.items()},
        "notes": list(code.notes),
    }
    if code.pruning is not None:
        report["pruning"] = {
            "left_out": list(code.pruning.names),
            "bound": code.pruning.bound,
            "peak": code.pruning.peak,
        }
    return report


def _show(code: GeneratedCode) -> None:
    screen = console()
    counts_table = table(
        f"{code.name}: operations of one call",
        ("function", "multiplications", "additions", "sin, cos", "rounding"),
    )
    for key, counts in code.counts.items():
        numbers = (counts[k] for k in ("multiplications", "additions", "trigonometric"))
        counts_table.add_row(
            key, *map(str, numbers), f"{code.precision[key].bound:.1e}"
        )
    screen.print(counts_table)
    for note in code.notes:
        screen.print(note, markup=False)
    screen.print(f"{len(code.files)} files in {code.folder}", markup=False)


def _compare(json: bool) -> None:
    from armwise.codegen import compare

    comparisons = compare()
    if json:
        print_json(
            [{**vars(item), "is_better": item.is_better} for item in comparisons]
        )
        return
    shown = table(
        "Inverse dynamics, multiplications + additions",
        (
            "arm",
            "SymPyBotics, all",
            "ours, all",
            "theirs, base",
            "ours, base",
            "numbers",
        ),
    )
    for item in comparisons:
        shown.add_row(item.arm, *_columns(item))
    screen = console()
    screen.print(shown)
    screen.print(
        "all: every link's ten parameters; base: base parameters, both open until run "
        "time; numbers: the bundled arm's own, in the code. panda's bar is this "
        "project's."
    )


def _columns(item: Comparison) -> list[str]:
    pairs = (item.theirs_all, item.ours_all, item.theirs_base, item.ours_base,
             item.ours_customised)  # fmt: skip
    return [f"{p[0]} + {p[1]}" if p else "–" for p in pairs]


# armwise realtime: the two-rate runtime, timed on this machine.


def realtime(
    arm: ArmName,
    rate_hz: Annotated[float, typer.Option(help="Synchronous rate [Hz].")] = 1000.0,
    duration: Annotated[float, typer.Option(help="For how long [s].")] = 5.0,
    background_hz: Annotated[
        float, typer.Option(help="Background rate [Hz]; 0: as fast as it can.")
    ] = 0.0,
    lead: Annotated[
        float, typer.Option(help="How far ahead the background task computes [s].")
    ] = 0.0,
    json: AsJson = False,
) -> None:
    """Generate, compile and run both tasks; report jitter and deadline misses.

    Example: armwise realtime puma260 --rate-hz 1000 --duration 1
    """
    from armwise.codegen import run_realtime

    report = run_realtime(load_model(arm), rate_hz, duration, background_hz, lead)
    if json:
        print_json(report)
    else:
        _show_times(report)


def _show_times(report: RealtimeReport) -> None:
    times = table("Times [µs]", ("", "median", "99 %", "99.9 %", "worst"))
    times.add_row("synchronous task", *_micro(report.synchronous))
    times.add_row("wake-up too late", *_micro(report.late))
    if report.background is not None:
        times.add_row("background round", *_micro(report.background))
    screen = console()
    screen.print(times)
    fraction = max(report.torque_error) / max(report.torque_peak)
    priority = "granted" if report.real_time_priority else "not granted"
    screen.print(
        f"{report.samples} samples at {report.rate_hz:.1f} Hz, "
        f"{report.deadline_misses} deadlines missed, real-time priority {priority}; "
        f"background {report.background_hz:.0f} Hz; largest torque error "
        f"{100 * fraction:.2f} % of the largest torque"
    )


def _micro(times: Times) -> list[str]:
    return [f"{1e6 * x:.2f}" for x in vars(times).values()]
