"""armwise follow-load and follow-contact: load and pushes, sample by sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    FASTEST,
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
from armwise.cli.output import AsJson, console, print_json, table
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from armwise.loads import OnlineLoad


def follow_load(
    arm: ArmName,
    logs: Logs,
    frame: Annotated[
        str, typer.Option("--frame", help="Frame of the wrist sensor, and of the load.")
    ] = "wrist",
    every: Annotated[float, number("Time between two reports [s].", 0.001)] = 1.0,
    memory: Annotated[
        float, number("Time after which a sample counts for 1/e [s].", 0.01, 1e6)
    ] = 5.0,
    noise_force: Annotated[float, number("Noise of the force [N].", 1e-9, 1e6)] = 0.2,
    noise_torque: Annotated[
        float, number("Noise of the torque [N m].", 1e-9, 1e6)
    ] = 0.01,
    smallest_change: Annotated[
        float, number("Mass whose coming or going counts [kg].", 1e-6, 1e6)
    ] = 0.05,
    gripper: Annotated[
        Path | None, typer.Option("--gripper", help="load.json of the empty gripper.")
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    cutoff_hz: CutoffHz = None,
    rate_hz: Annotated[
        float, number("Lines per second of a pipe [Hz].", 1.0, FASTEST)
    ] = 1000.0,
    output: Annotated[
        Path | None, output_folder("Write the same filter as C into this folder.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Follow the load along logs with a wrist wrench; say when it is taken or put down.

    LOG may be - for lines of CSV that come through a pipe: time, q_1 …, fx … tz.

    Example: armwise follow-load panda pick.csv --frame link_7
    """
    import sys

    import numpy as np

    from armwise.errors import RecordingError
    from armwise.loads import OnlineLoad, follow_lines, read_load_estimate
    from armwise.recordings import prepare

    is_pipe = [str(path) for path in logs] == ["-"]
    described, mapped = load_described(arm, mapping)
    held = None if gripper is None else read_load_estimate(gripper).parameters
    data = None
    rate = rate_hz
    if not is_pipe:
        recordings = read_logs(logs, described, mapped, column, skip_bad_rows)
        data = prepare(recordings, cutoff_hz, arm=described)
        if data.wrench is None:
            raise RecordingError(
                f"{logs[0]} holds no wrench (fx, fy, fz, tx, ty, tz). For joint "
                "torques use armwise identify-load --bare."
            )
        rate = 1.0 / float(np.median(np.diff(data.time)))
    online = OnlineLoad(
        described,
        frame,
        rate_hz=rate,
        noise_std=(noise_force, noise_torque),
        memory=memory,
        gripper=held,
        smallest_change=smallest_change,
    )
    files = [] if output is None else online.generate(output)
    rows: list[dict[str, Any]] = []
    step = max(1, round(every * rate))
    begin = 0.0
    if data is None:
        for k, at in enumerate(follow_lines(online, sys.stdin)):
            begin = at if k == 0 else begin
            if (k + 1) % step == 0:
                rows.append(_row(at, online))
                if not json:
                    _print_row(rows[-1])
    else:
        begin = float(data.time[0])
        for first in range(0, len(data), step):
            part = slice(first, first + step)
            assert data.wrench is not None
            motion = data.q[part], data.qd[part], data.qdd[part]
            online.update(*motion, data.wrench[part])
            rows.append(
                _row(float(data.time[min(first + step, len(data)) - 1]), online)
            )
    changes = [
        {"time": begin + x.time, "began": begin + x.began, "kind": x.kind,
         "mass_change": x.mass_change}
        for x in online.changes
    ]  # fmt: skip
    _settle(changes, rows)
    written = [str(path) for path in files]
    expected = {f"{mass:g}": online.detection(mass)._asdict() for mass in _EXAMPLES}
    if json:
        print_json(
            {"frame": frame, "rows": rows, "changes": changes, "files": written,
             "detection": expected}
        )  # fmt: skip
        return
    _show([] if is_pipe else rows, changes)
    for mass in _EXAMPLES:
        delay, alarms = online.detection(mass)
        shows = (
            "is not seen" if delay == float("inf") else f"shows in {1e3 * delay:.0f} ms"
        )
        console().print(
            f"a change of {mass:g} kg {shows}; alarms without one by white noise: "
            f"{alarms:.1g} an hour",
            markup=False,
        )
    for path in written:
        console().print(f"C: {path}", markup=False)


_EXAMPLES = (0.1, 0.3, 1.0)
"""Changes of mass in [kg] for which delay and false alarms are stated."""


def _row(time: float, online: OnlineLoad) -> dict[str, Any]:
    return {
        "time": time,
        "mass": online.mass,
        "mass_std": online.mass_std,
        "center_of_mass": online.parameters.center_of_mass,
        "is_sure": online.is_sure,
    }


def _settle(changes: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Say of every change what it came to: the mass before the next one, and before."""
    for k, change in enumerate(changes):
        end = changes[k + 1]["began"] if k + 1 < len(changes) else float("inf")
        before = [x["mass"] for x in rows if x["time"] < change["began"]]
        after = [x["mass"] for x in rows if change["time"] < x["time"] < end]
        is_bracketed = bool(before and after)
        change["settled_change"] = after[-1] - before[-1] if is_bracketed else None


def _center(row: dict[str, Any]) -> str:
    """Centre of mass in [mm]; that of nothing is nowhere."""
    # Two standard deviations: less is no load that is known to be there.
    if not row["mass"] > 2.0 * row["mass_std"]:
        return "no load"
    return ", ".join(f"{1e3 * x:.0f}" for x in row["center_of_mass"])


def _print_row(row: dict[str, Any]) -> None:
    """One line as soon as it is known."""
    center = _center(row)
    unit = "" if center == "no load" else " mm"
    sure = "  sure enough for a driver" if row["is_sure"] else ""
    typer.echo(
        f"{row['time']:.3f} s  {row['mass']:.3f} ± {row['mass_std']:.3f} kg  "
        f"{center}{unit}{sure}"
    )


def _show(rows: list[dict[str, Any]], changes: list[dict[str, Any]]) -> None:
    columns = ("time", "mass", "±", "centre of mass", "sure")
    lines = table("Load (s, kg, mm)", columns)
    for row in rows:
        center = _center(row)
        numbers = (row["time"], row["mass"], row["mass_std"])
        sure = "yes" if row["is_sure"] else ""
        lines.add_row(*(f"{x:.3f}" for x in numbers), center, sure)
    screen = console()
    if rows:
        screen.print(lines)
    for change in changes:
        settled = change["settled_change"]
        by = f"{settled:+.3f} kg" if settled is not None else "not settled yet"
        screen.print(
            f"{change['kind']} at {change['began']:.3f} s (noticed at "
            f"{change['time']:.3f} s): {by}",
            markup=False,
        )


# armwise follow-contact: what pushes the arm from outside, along a log.

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
        _show_contact(report, described.coordinate_names)
    if report["contacts"]:
        raise typer.Exit(1)


_PUSH = 0.1
"""Push whose delay is stated, as a fraction of a joint's torque limit."""


def _show_contact(report: dict[str, Any], names: tuple[str, ...]) -> None:
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
