"""armwise watch: joint sensors that jump, drift or fail, in a log or a growing one."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    Logs,
    MappingFile,
    SkipBadRows,
    load_described,
    number,
    read_logs,
)
from armwise.cli.output import AsJson, console, print_json, table
from armwise.errors import RecordingError

if TYPE_CHECKING:
    import numpy as np

    from armwise.arms import Arm
    from armwise.monitoring import Alarm, Watchdog


def watch(
    arm: ArmName,
    logs: Logs,
    learning: Annotated[
        float | None, number("Undisturbed start to learn from [s].", 10.0, 1e5)
    ] = None,
    load: Annotated[
        float | None, number("Mass the hand may take up unannounced [kg].", 0.0, 1e4)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on as the (one, CSV) log grows.")
    ] = False,
    idle: Annotated[
        float, number("End when a followed log has not grown for [s].", 0.1, 1e6)
    ] = 10.0,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    json: AsJson = False,
) -> None:
    """Watch joint sensors: exit status 1 if one jumped, drifted, stuck or went missing.

    Positions are compared with each other and, through torques, with gravity. The
    beginning must be undisturbed: 150 s, or half of a shorter log.

    Example: armwise watch out/estimate.json run1.csv
    """
    described, mapped = load_described(arm, mapping)
    if follow and len(logs) != 1:
        raise typer.BadParameter("--follow takes one log.")
    alarms: list[Alarm] = []
    dog: Watchdog | None = None
    blocks = (
        _growing(logs[0], described, idle)
        if follow
        else _recorded(
            read_logs(logs, described, mapped, column, skip_bad_rows), described
        )
    )
    for t, q, tau in blocks:
        if dog is None:
            dog = _watchdog(described, t, tau, learning, load, whole=not follow)
        raised = dog.update(t, q, tau)
        alarms += raised
        if not json:
            for alarm in raised:
                console().print(alarm.message, markup=False)
    if dog is None:
        raise typer.BadParameter("there is nothing to watch in the log.")
    visible = dog.visible()
    if json:
        print_json({"alarms": alarms, "learning": dog.is_learning, "visible": visible})
    else:
        _show(visible, len(alarms), dog.is_learning)
    if alarms:
        raise typer.Exit(1)


def _watchdog(
    arm: Arm,
    t: np.ndarray,
    tau: np.ndarray,
    learning: float | None,
    load: float | None,
    *,
    whole: bool,
) -> Watchdog:
    import numpy as np

    from armwise.calibration import Calibration
    from armwise.monitoring import Watchdog

    if t.size < 2:
        raise RecordingError("One row is no motion: there is nothing to watch.")
    period = float(np.median(np.diff(t)))
    if learning is None:
        learning = max(10.0, min(150.0, 0.5 * float(t[-1] - t[0]))) if whole else 150.0
    # The scatter of a torque from sample to sample: what its sensor adds.
    noise = np.median(np.abs(np.diff(tau, axis=0)), axis=0) / 0.6745 / np.sqrt(2.0)
    # A noise-free simulated log would leave nothing to compare drift with.
    noise = np.maximum(noise, 1e-3 * np.abs(tau).max(axis=0) + 1e-9)
    assumed = Calibration.from_values(arm, torque_std=noise)
    return Watchdog(arm, assumed, period, learning=learning, load=load)


Block = tuple["np.ndarray", "np.ndarray", "np.ndarray"]


def _recorded(recordings: list[Any], arm: Arm) -> Iterator[Block]:
    import numpy as np

    for recording in recordings:
        t = recording["q_1"].time
        columns = [
            [np.interp(t, recording[name].time, recording[name].values) for name in row]
            for row in (
                [f"{kind}_{j + 1}" for j in range(arm.dof)] for kind in ("q", "tau")
            )
        ]
        yield t, np.stack(columns[0], axis=1), np.stack(columns[1], axis=1)


def _growing(path: Path, arm: Arm, idle: float) -> Iterator[Block]:
    """Rows of a CSV file as they come; only whole lines count."""
    columns: list[int] | None = None
    rows: list[list[float]] = []
    partial, last = "", clock.monotonic()
    with path.open(encoding="utf-8") as stream:
        while clock.monotonic() - last < idle:
            text = stream.read()
            if not text:
                clock.sleep(0.05)
                continue
            last = clock.monotonic()
            *lines, partial = (partial + text).split("\n")
            for line in filter(None, lines):
                if columns is None:
                    columns = _header(path, line.split(","), arm)
                    continue
                cells = line.split(",")
                try:
                    rows.append([float(cells[k]) for k in columns])
                except (ValueError, IndexError):
                    raise typer.BadParameter(
                        f"{path}: {line[:60]!r} is no row."
                    ) from None
            # A hundred at a time: the first block must show the period.
            if len(rows) >= 100:
                yield _block(rows, arm)
                rows = []
    if len(rows) > 1:
        yield _block(rows, arm)


def _block(rows: list[list[float]], arm: Arm) -> Block:
    import numpy as np

    values = np.array(rows)
    return values[:, 0], values[:, 1 : arm.dof + 1], values[:, arm.dof + 1 :]


def _header(path: Path, names: list[str], arm: Arm) -> list[int]:
    header = [name.strip() for name in names]
    by_number = [str(j + 1) for j in range(arm.dof)]
    for ends in (by_number, list(arm.coordinate_names)):
        headings = ["time", *(f"{kind}_{x}" for kind in ("q", "tau") for x in ends)]
        if set(headings) <= set(header):
            return [header.index(name) for name in headings]
    raise typer.BadParameter(
        f"{path} needs the columns time, q_1 …, tau_1 …. Found: {', '.join(header)}."
    )


def _show(visible: tuple[Any, ...], count: int, is_learning: bool) -> None:
    import numpy as np

    rows = table(
        "Smallest fault that would be noticed (rad, m)",
        ("joint", "jump", "shift within a minute, by gravity"),
    )
    for one in visible:
        drift = f"{one.drift:.3g}" if np.isfinite(one.drift) else "never"
        rows.add_row(one.joint, f"{one.jump:.3g}", drift)
    screen = console()
    screen.print(rows)
    if is_learning:
        screen.print("Still learning: the log is shorter than the undisturbed start.")
    screen.print(f"{count} alarms." if count else "No alarm.")
