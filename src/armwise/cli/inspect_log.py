"""armwise inspect-log: contents of a log, and of its samples once prepared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    DESCRIPTIONS,
    Columns,
    CutoffHz,
    MappingFile,
    SkipBadRows,
    bundled_names,
    load_described,
    named_columns,
)
from armwise.cli.output import (
    AsJson,
    console,
    figure,
    print_json,
    progress_bar,
    table,
    warn,
)

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.progress import Progress
    from armwise.recordings import Recording


def inspect_log(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="CSV, JSON lines, Parquet, NPZ, MAT or ROS 2 bag."
        ),
    ],
    arm: Annotated[str, typer.Option(help=DESCRIPTIONS, autocompletion=bundled_names)],
    mapping: MappingFile = None,
    column: Columns = None,
    cutoff_hz: CutoffHz = None,
    skip_bad_rows: SkipBadRows = False,
    json: AsJson = False,
) -> None:
    """Show the signals of a log, how it would be prepared, and what looks wrong.

    Example: armwise inspect-log run1.csv --arm panda
    """
    from armwise.recordings import prepare, read_recording, summarise_log

    described, mapped = load_described(arm, mapping, [log])
    with progress_bar(log.name, quiet=json) as progress:
        recording = read_recording(
            log,
            described,
            mapped,
            columns=named_columns(column),
            skip_bad_rows=skip_bad_rows,
            progress=progress,
        )
        samples = prepare(
            recording,
            cutoff_hz,
            arm=described,
            skip_bad_rows=skip_bad_rows,
            progress=progress,
        )
        warnings = _doubts(described, recording, cutoff_hz, progress)
    report = summarise_log(recording, samples) | {"warnings": warnings}
    if json:
        print_json(report)
        return
    _show(report)
    for note in dict.fromkeys([*samples.preparation.notes, *warnings]):
        warn(note)


def _doubts(
    arm: Arm, recording: Recording, cutoff_hz: float | None, progress: Progress
) -> list[str]:
    """What a fit of the arm's equations shows of order, signs, units and clocks."""
    from armwise.errors import NotConverged, NotIdentifiable, RecordingError
    from armwise.identification import DOUBTFUL_DATA, WRONG_DATA, identify
    from armwise.recordings import require_torques

    try:
        require_torques(recording)
        estimate = identify(
            arm,
            recording,
            friction="linear",
            cutoff_hz=cutoff_hz,
            progress=progress,
        )
    except (NotIdentifiable, NotConverged, RecordingError) as reason:
        return [f"It cannot be identified from: {reason}"]
    codes = WRONG_DATA | DOUBTFUL_DATA | {"joint-did-not-move"}
    return [warning.text for warning in estimate.warnings if warning.code in codes]


def _show(report: dict[str, Any]) -> None:
    screen = console()
    channels = table(
        f"{report['source']}: {report['duration_s']:.4g} s",
        ("channel", "rows", "step min/median/max, ms", "from", "to"),
    )
    for row in report["channels"]:
        steps = " / ".join(figure(step, 3) for step in row["step_ms"])
        name = f"{row['name']} ({row['unit']})" if row["unit"] else row["name"]
        channels.add_row(
            name, str(row["rows"]), steps, figure(row["min"]), figure(row["max"])
        )
    screen.print(channels)
    for line in _prepared(report):
        screen.print(line)


def _prepared(report: dict[str, Any]) -> list[str]:
    """Say in words how the log was prepared."""
    done = report["preparation"]
    source = "automatic" if done.cutoff_is_automatic else "as set"
    cutoff = f"{done.cutoff_hz:.3g} Hz ({source})" if done.cutoff_hz else "none"
    lines = [
        f"Prepared: {report['samples']} samples at {report['rate_hz']:.4g} Hz in "
        f"{report['segments']} segment{'s' * (report['segments'] != 1)}.",
        f"Low-pass: {cutoff}; velocity and acceleration by {done.differentiation}.",
        f"Torque lag removed: {1e3 * done.lag:.2f} ms.",
    ]
    if done.torque_bandwidth_hz and done.torque_bandwidth_hz < (done.cutoff_hz or 1e9):
        lines.append(
            f"The torque was low-passed before it was recorded, at about "
            f"{done.torque_bandwidth_hz:.2g} Hz."
        )
    if done.velocity_lag:
        lines.append(f"Velocity lag removed: {1e3 * done.velocity_lag:.2f} ms.")
    lines += [f"Rows not used, {why}: {count}." for why, count in done.rows_dropped]
    return lines
