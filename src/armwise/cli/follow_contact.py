"""armwise follow-contact: what pushes the arm from outside, along a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    Logs,
    MappingFile,
    SkipBadRows,
    load_described,
    load_model,
    number,
    output_folder,
    read_logs,
)
from armwise.cli.output import AsJson, console, print_json
from armwise.errors import ArgumentError

PathList = list[Path]


def follow_contact(
    arm: ArmName,
    logs: Logs,
    free: Annotated[
        PathList,
        typer.Option("--free", help="A log without contact, to learn thresholds from."),
    ],
    false_alarms: Annotated[
        float, number("Alarms without contact to accept [1/h].", 1e-6, 3600.0)
    ] = 0.1,
    bandwidth_hz: Annotated[
        float | None,
        number(
            "Low-pass that torques are seen through [Hz]; else, joint by joint, the "
            "one that shows a push of 10 % of the limit soonest.",
            0.01,
            1e5,
        ),
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    cutoff_hz: CutoffHz = None,
    output: Annotated[
        Path | None, output_folder("Write the observer as C into this folder.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Notice contact by joint torques: exit status 1 if something pushed the arm.

    Best with an estimate (identify -o) as ARM, and --free a log it was not made from.

    Example: armwise follow-contact out/estimate.json run2.csv --free run1.csv
    """
    import numpy as np

    from armwise.identification import Estimate
    from armwise.monitoring import MomentumObserver
    from armwise.recordings import prepare

    if {path.resolve() for path in logs} & {path.resolve() for path in free}:
        raise ArgumentError(
            "A log that thresholds are learnt from cannot stand out of itself: give "
            "another one for --free."
        )
    described, mapped = load_described(arm, mapping, [*logs, *free])
    model = load_model(arm)
    is_whole = isinstance(model, Estimate) and model.arm.dof == described.dof
    # No low-pass unless asked for: one without delay would see a push before it comes.
    quiet = prepare(
        read_logs(free, described, mapped, column, skip_bad_rows),
        np.inf if cutoff_hz is None else cutoff_hz,
        arm=described,
        decimation=1,
        keep_rest=True,
    )
    data = prepare(
        read_logs(logs, described, mapped, column, skip_bad_rows),
        arm=described,
        like=quiet,
        keep_rest=True,
    )
    observer = MomentumObserver(
        model if is_whole else described,
        rate_hz=quiet.rate_hz,
        bandwidth_hz=bandwidth_hz,
    )
    thresholds = observer.learn(quiet, false_alarms)
    observed = observer.observe(data)
    push = _PUSH * described.limits("effort")
    middle = np.median(observed.threshold, axis=0)
    delay = observer.delay(push, data.q[len(data) // 2], np.ones(described.dof))
    files = [] if output is None else observer.generate(output)
    report: dict[str, Any] = {
        "contacts": [contact._asdict() for contact in observed.intervals],
        "false_alarms_per_hour": thresholds.false_alarms_per_hour,
        "threshold": middle,
        "delay": delay,
        "push": push,
        "bandwidth_hz": observer.bandwidth_hz,
        "files": [str(path) for path in files],
    }
    if json:
        print_json(report)
    else:
        _show(report, described.coordinate_names)
    if report["contacts"]:
        raise typer.Exit(1)


_PUSH = 0.1
"""Push whose delay is stated, as a fraction of a joint's torque limit."""


def _show(report: dict[str, Any], names: tuple[str, ...]) -> None:
    screen = console()
    for contact in report["contacts"]:
        screen.print(
            f"contact from {contact['began']:.3f} to {contact['ended']:.3f} s: up to "
            f"{contact['torque']:.3g} N m at {names[contact['joint']]}",
            markup=False,
        )
    if not report["contacts"]:
        screen.print("no contact")
    columns = ("threshold", "bandwidth_hz", "push", "delay")
    rows = zip(names, *(report[key] for key in columns), strict=True)
    for name, threshold, band, push, delay in rows:
        late = "not seen" if delay == float("inf") else f"seen in {1e3 * delay:.0f} ms"
        text = f"a push of {100 * _PUSH:.0f} % of its limit is {late}"
        if push == float("inf"):
            text = "no limit is described"
        screen.print(
            f"{name}: threshold {threshold:.3g} N m (median) through {band:.3g} Hz; "
            f"{text}",
            markup=False,
        )
    screen.print(
        f"false alarms in motions like those of --free: at most "
        f"{report['false_alarms_per_hour']:.2g} an hour (--bandwidth-hz: lower is "
        "slower, and finer)",
        markup=False,
    )
    for path in report["files"]:
        screen.print(f"C: {path}", markup=False)
