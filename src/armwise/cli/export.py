"""armwise export and gap: an estimate for a simulator, and a simulator beside a log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.arguments import (
    ArmName,
    Columns,
    CutoffHz,
    GainRegister,
    LoadedArm,
    Logs,
    MappingFile,
    Seed,
    ServoCalibration,
    SkipBadRows,
    load_described,
    load_model,
    load_servo,
    number,
    output_file,
    plain_logs,
    read_logs,
    read_servo_logs,
)
from armwise.cli.output import AsJson, console, figure, heads, print_json, table, warn
from armwise.errors import ArmwiseError

if TYPE_CHECKING:
    import numpy as np

    from armwise.arms import Arm
    from armwise.identification import Estimate
    from armwise.recordings import LogMapping
    from armwise.servos import Servo
    from armwise.simulators import Export, Gap


def export(
    arm: ArmName,
    to: Annotated[
        str, typer.Option(help="mjcf, urdf, sdf, isaaclab, mjlab, drake or json.")
    ],
    output: Annotated[Path, output_file("File to write.")],
    template: Annotated[
        Path | None,
        typer.Option(help="Your own MJCF or URDF, into which the numbers go."),
    ] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(help="A log whose motion costs are computed on; repeatable."),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(min=0, max=100_000, help="Models to draw for randomisation."),
    ] = 0,
    seed: Seed = 0,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    calibration: ServoCalibration = None,
    register: GainRegister = None,
    loaded: LoadedArm = None,
    json: AsJson = False,
) -> None:
    """Write an estimate or servos for a simulator, and what it cannot express.

    Example: armwise export out/estimate.json --to mjcf -o arm.xml

    Example: armwise export out/estimate.json --to isaaclab --draws 1000 -o arm.py
    """
    from armwise import simulators
    from armwise.arms import Arm
    from armwise.identification import Estimate
    from armwise.recordings import load_mapping, prepare

    servo = load_servo(arm, register, loaded)
    model = servo or load_model(arm)
    data, recordings = None, []
    if log:
        described = model if isinstance(model, Arm) else _description(model)
        mapped = None if mapping is None else load_mapping(mapping)
        options = (described, mapped, column, skip_bad_rows)
        if servo:
            recordings = read_servo_logs(log, *options, calibration)
        else:
            like = model.preparation if isinstance(model, Estimate) else None
            data = prepare(read_logs(log, *options), arm=described, like=like)
    result = simulators.export(
        model,
        output,
        to=to,
        template=template,
        data=data,
        recordings=recordings,
        draws=draws,
        seed=seed,
    )
    for note in result.notes:
        warn(note)
    if json:
        print_json(result.to_dict())
        return
    _show(result)


def _description(model: Estimate | Servo) -> Arm:
    return model.arm if hasattr(model, "signs") else model.prior_arm


def _show(result: Export) -> None:
    import numpy as np

    out = console()
    if result.losses:
        of = "in mrad of free run" if result.unit == "rad" else "of each joint's torque"
        title = f"What {result.to} cannot express, {of}"
        rows = table(title, ["effect", *heads(result.joints)])
        for loss in result.losses:
            rows.add_row(loss.effect, *_cells(loss.cost, result.unit))
        if len(result.losses) > 1:
            rows.add_row("together", *_cells(result.cost, result.unit))
        out.print(rows)
        if result.unit == "fraction" or np.isfinite(result.cost).all():
            out.print(f"On {result.motion}.")
    else:
        out.print(f"{result.to} expresses everything that was identified.")
    files = [str(path) for path in result.files]
    for path in files[:4]:
        out.print(path, soft_wrap=True, markup=False)
    if len(files) > 4:
        out.print(
            f"and {len(files) - 4} more, up to {files[-1]}",
            soft_wrap=True,
            markup=False,
        )


_LEAST = 0.01
"""What is printed as 0 below, in [%] or [mrad]: no sensor of an arm shows it."""


def _cells(values: np.ndarray, unit: str) -> list[str]:
    factor, word = (1e3, "mrad") if unit == "rad" else (100.0, "%")
    sizes = [factor * float(v) for v in values]
    # Not a number: no log was named.
    return [
        "–" if v != v else f"{figure(v if v >= _LEAST else 0.0, 3)} {word}"
        for v in sizes
    ]


# armwise gap: a simulator beside the robot, from a log.


def gap(
    arm: ArmName,
    logs: Logs,
    simulator: Annotated[
        str, typer.Option(help="armwise, or mujoco: the exported model.")
    ] = "armwise",
    horizon_s: Annotated[
        float, number("Length of a free run under torques [s].", 0.01, 10.0)
    ] = 0.5,
    cutoff_hz: CutoffHz = None,
    at_most_mrad: Annotated[
        float | None,
        number(
            "Fail if the mean error is larger [mrad]; of joints that slide, in mm.",
            0.0,
            1e6,
        ),
    ] = None,
    output: Annotated[
        Path | None, output_file("Page to write: .html, .json or .txt.")
    ] = None,
    mapping: MappingFile = None,
    column: Columns = None,
    skip_bad_rows: SkipBadRows = False,
    calibration: ServoCalibration = None,
    register: GainRegister = None,
    loaded: LoadedArm = None,
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

    model, (described, mapped) = _model(
        arm, mapping, plain_logs(logs), register, loaded
    )
    options = (described, mapped, column, skip_bad_rows)
    recordings = read_servo_logs(logs, *options, calibration)
    with progress_bar("Replay", quiet=json) as report:
        result = simulators.measure_gap(
            model,
            recordings,
            arm=described if isinstance(model, Path) else None,
            simulator=simulator,  # type: ignore[arg-type]
            horizon=horizon_s,
            cutoff_hz=cutoff_hz,
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
        _show_gap(result, line, output)
    if at_most_mrad is not None and not mean <= at_most_mrad:
        raise ArmwiseError(
            f"The simulated arm is {mean:.2f} {result.unit} from the robot, more than "
            f"the {at_most_mrad:g} that were allowed."
        )


def _model(
    arm: str,
    mapping: Path | None,
    logs: list[Path],
    register: float | None,
    loaded: str | None,
) -> tuple[Any, tuple[Arm, LogMapping | None]]:
    """What is replayed, and the arm and mapping that logs are read with."""
    servo = load_servo(arm, register, loaded)
    if servo is not None:
        from armwise.recordings import load_mapping

        return servo, (servo.arm, None if mapping is None else load_mapping(mapping))
    path = Path(arm)
    described = load_described(arm, mapping, logs)
    if path.suffix.lower() in (".xml", ".mjcf") and path.is_file():
        return path, described
    if path.is_file() and _OURS.search(path.read_bytes()):
        warn(
            f"{path.name} has <armwise> elements (rotor inertia, constant torque), "
            "which count here; other simulators pass over them, and what that costs "
            "armwise export says."
        )
    model = load_model(arm)
    from armwise.identification import Estimate

    return (model if isinstance(model, Estimate) else described[0]), described


_OURS = re.compile(rb"<armwise\s+(rotor_inertia|offset)=")
"""Drives' numbers in a URDF that only Armwise reads."""

_ANOTHER = 3.0
"""Torque error, as a fraction, that no model of the right arm has."""


def _show_gap(gap: Gap, line: str, output: Path | None) -> None:
    import numpy as np

    out = console()
    before = "described" if gap.driven_by == "torques" else "delay line"
    other = gap.described
    models = [gap.label] if other is None else [gap.label, before]
    rows = table(
        "Mean distance of the simulated joint from the robot's",
        ["joint", *models, "torque error", "early by", "gain"],
    )
    torque, delay, gain = (gap.mean(x) for x in ("torque_error", "delay", "gain"))
    for j, name in enumerate(gap.joints):
        rows.add_row(
            name,
            *(_distance(one, j) for one in (gap, other) if one is not None),
            _cell(100 * torque[j], ".1f", "%"),
            _cell(1e3 * delay[j], ".1f", "ms"),
            _cell(gain[j], ".3f", ""),
        )
    out.print(rows)
    # NaN, where no torque was logged, is not above.
    if (torque > _ANOTHER).any():
        worst = gap.joints[int(np.nanargmax(torque))]
        warn(f"The model misses the torque of {worst} by far: is it this arm's log?")
    out.print(line, soft_wrap=True, markup=False)
    if output is not None:
        out.print(f"Open {output}", soft_wrap=True, markup=False)


def _distance(gap: Gap, j: int) -> str:
    error = 1e3 * float(gap.position_error[j])
    # An arm that ran away: no powers of ten beside milliradians.
    size = f"{error:.0f}" if error >= 1e3 else figure(error, 3)
    return f"{size} {gap.units[j]}"


def _cell(value: float, digits: str, unit: str) -> str:
    # Not a number: nothing was there to measure it on.
    return f"{value:{digits}} {unit}".rstrip() if value == value else "–"
