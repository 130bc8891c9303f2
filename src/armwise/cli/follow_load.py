"""armwise follow-load: what the hand holds, sample by sample along a log."""

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
    number,
    read_logs,
)
from armwise.cli.output import AsJson, console, print_json, table


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
    json: AsJson = False,
) -> None:
    """Follow the load along logs with a wrist wrench; say when it is taken or put down.

    Example: armwise follow-load panda pick.csv --frame link_7
    """
    import numpy as np

    from armwise.errors import RecordingError
    from armwise.loads import OnlineLoad, read_load_estimate
    from armwise.recordings import prepare

    described, mapped = load_described(arm, mapping)
    recordings = read_logs(logs, described, mapped, column, skip_bad_rows)
    data = prepare(recordings, cutoff_hz, arm=described)
    if data.wrench is None:
        raise RecordingError(
            f"{logs[0]} holds no wrench (fx, fy, fz, tx, ty, tz). For joint torques "
            "use armwise identify-load --bare."
        )
    held = None if gripper is None else read_load_estimate(gripper).parameters
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
    rows: list[dict[str, Any]] = []
    step = max(1, round(every * rate))
    for first in range(0, len(data), step):
        part = slice(first, first + step)
        assert data.wrench is not None
        online.update(data.q[part], data.qd[part], data.qdd[part], data.wrench[part])
        rows.append(
            {
                "time": float(data.time[min(first + step, len(data)) - 1]),
                "mass": online.mass,
                "mass_std": online.mass_std,
                "center_of_mass": online.parameters.center_of_mass,
            }
        )
    begin = float(data.time[0])
    changes = [
        {"time": begin + x.time, "began": begin + x.began, "kind": x.kind,
         "mass_change": x.mass_change}
        for x in online.changes
    ]  # fmt: skip
    if json:
        print_json({"frame": frame, "rows": rows, "changes": changes})
        return
    _show(rows, changes)


def _show(rows: list[dict[str, Any]], changes: list[dict[str, Any]]) -> None:
    lines = table("Load (s, kg, mm)", ("time", "mass", "±", "centre of mass"))
    for row in rows:
        center = ", ".join(f"{1e3 * x:.0f}" for x in row["center_of_mass"])
        numbers = (row["time"], row["mass"], row["mass_std"])
        lines.add_row(*(f"{x:.3f}" for x in numbers), center)
    screen = console()
    screen.print(lines)
    for change in changes:
        screen.print(
            f"{change['kind']} at {change['began']:.3f} s (noticed at "
            f"{change['time']:.3f} s): about {change['mass_change']:+.3f} kg",
            markup=False,
        )
