"""armwise gap: a simulator beside the robot, from a log."""

from __future__ import annotations

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
    load_model,
    load_servo,
    number,
    output_file,
    read_logs,
)
from armwise.cli.output import AsJson, console, figure, print_json, table, warn
from armwise.errors import ArmwiseError

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings import LogMapping
    from armwise.simulators import Gap


def gap(
    arm: ArmName,
    logs: Logs,
    simulator: Annotated[
        str, typer.Option(help="armwise, or mujoco: the exported model.")
    ] = "armwise",
    horizon_s: Annotated[
        float, number("Length of a free run under torques [s].", 0.01, 10.0)
    ] = 0.5,
    at_most_mrad: Annotated[
        float | None,
        number("Fail if the mean error is larger [mrad].", 0.0, 1e6),
    ] = None,
    output: Annotated[
        Path | None, output_file("Page to write: .html, .json or .txt.")
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    json: AsJson = False,
) -> None:
    """Replay logs in a simulator and measure how far it is from the robot.

    ARM is an estimate, compared with its description as well, servo.json of
    identify-servo, compared with a delay line, an arm, or an MJCF file, which MuJoCo
    simulates as it is.

    Example: armwise gap out/estimate.json run2.csv -o gap.html

    Example: armwise gap panda run2.csv --simulator mujoco --horizon-s 0.2
    """
    from armwise import simulators
    from armwise.cli.output import progress_bar
    from armwise.report import write_gap_report

    model, (described, mapped) = _model(arm, mapping, logs)
    recordings = read_logs(logs, described, mapped, column, skip_bad_rows)
    with progress_bar("Replay", quiet=json) as report:
        result = simulators.measure_gap(
            model,
            recordings,
            simulator=simulator,  # type: ignore[arg-type]
            horizon=horizon_s,
            progress=report,
        )
    line = simulators.certificate(result, arm, logs)
    if output is not None:
        write_gap_report(result, output, line)
    mean = 1e3 * float(result.position_error.mean())
    for note in result.notes:
        warn(note)
    if json:
        print_json({"gap": result.to_dict(), "certificate": line})
    else:
        _show(result, line, output)
    if at_most_mrad is not None and not mean <= at_most_mrad:
        raise ArmwiseError(
            f"The simulated arm is {mean:.2f} mrad from the robot, more than the "
            f"{at_most_mrad:g} that were allowed."
        )


def _model(
    arm: str, mapping: Path | None, logs: list[Path]
) -> tuple[Any, tuple[Arm, LogMapping | None]]:
    """What is replayed, and the arm and mapping that logs are read with."""
    servo = load_servo(arm)
    if servo is not None:
        from armwise.recordings import load_mapping

        return servo, (servo.arm, None if mapping is None else load_mapping(mapping))
    path = Path(arm)
    described = load_described(arm, mapping, logs)
    if path.suffix.lower() in (".xml", ".mjcf") and path.is_file():
        return path, described
    model = load_model(arm)
    from armwise.identification import Estimate

    return (model if isinstance(model, Estimate) else described[0]), described


_ANOTHER = 3.0
"""Torque error, as a fraction, that no model of the right arm has."""


def _show(gap: Gap, line: str, output: Path | None) -> None:
    import numpy as np

    out = console()
    before = "described" if gap.driven_by == "torques" else "delay line"
    rows = table(
        "Mean distance of the simulated joint from the robot's",
        ["joint", "identified", before, "torque error", "early by", "gain"],
    )
    torque, delay, gain = (gap.mean(x) for x in ("torque_error", "delay", "gain"))
    other = gap.described
    for j, name in enumerate(gap.joints):
        rows.add_row(
            name,
            _mrad(gap, j),
            "–" if other is None else _mrad(other, j),
            _cell(100 * torque[j], ".1f", "%"),
            _cell(1e3 * delay[j], ".1f", "ms"),
            _cell(gain[j], ".3f", ""),
        )
    out.print(rows)
    # NaN, where no torque was logged, is not above.
    if (torque > _ANOTHER).any():
        worst = gap.joints[int(np.nanargmax(torque))]
        warn(f"The model misses the torque of {worst} by far: is it this arm's log?")
    out.print(line, soft_wrap=True)
    if output is not None:
        out.print(f"Open {output}", soft_wrap=True)


def _mrad(gap: Gap, j: int) -> str:
    return f"{figure(1e3 * float(gap.position_error[j]), 3)} mrad"


def _cell(value: float, digits: str, unit: str) -> str:
    # Not a number: nothing was there to measure it on.
    return f"{value:{digits}} {unit}".rstrip() if value == value else "–"
