"""Report and files of identified servos: values, elements, errors, overlaid traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from armwise.arms import save_arm
from armwise.report.formats import save_report
from armwise.report.report import (
    Block,
    BulletList,
    Cell,
    Figure,
    KeyNumber,
    KeyNumbers,
    Report,
    ReportTable,
    Section,
    Series,
    envelope_rows,
    points_per_curve,
)
from armwise.servos import (
    FreeRunErrors,
    Servo,
    ServoMotion,
    write_servo,
    write_servo_mjcf,
)


def write_servo_files(
    servo: Servo,
    folder: Path,
    motions: Sequence[ServoMotion] = (),
    validation: FreeRunErrors | None = None,
) -> dict[str, str]:
    """Write servo.json, identified.urdf, identified.xml and report.html.

    Args:
        servo: What was identified.
        folder: Where to.
        motions: Those whose traces the report shows.
        validation: Errors on motions that were not fitted.

    Returns:
        The files by kind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "servo": folder / "servo.json",
        "urdf": folder / "identified.urdf",
        "mjcf": folder / "identified.xml",
        "report": folder / "report.html",
    }
    write_servo(servo, files["servo"])
    save_arm(servo.identified_arm, files["urdf"])
    write_servo_mjcf(servo, files["mjcf"])
    save_report(files["report"], lambda: make_servo_report(servo, motions, validation))
    return {kind: str(path) for kind, path in files.items()}


def make_servo_report(
    servo: Servo,
    motions: Sequence[ServoMotion] = (),
    validation: FreeRunErrors | None = None,
) -> Report:
    """Return the report on servos."""
    sections = [_summary(servo, validation), _values(servo), _elements(servo)]
    sections += [_errors(servo, validation), _traces(servo, motions)]
    return Report(f"The servos of {servo.arm.name}", tuple(sections))


def _summary(servo: Servo, validation: FreeRunErrors | None) -> Section:
    numbers = []
    for label, errors in (("fitted motions", servo.fit), ("other motions", validation)):
        if errors is not None:
            line = 1e3 * float(errors.delay_line_joints.mean())
            numbers.append(
                KeyNumber(
                    f"free-run error, {label}",
                    f"{1e3 * float(errors.joints.mean()):.2f} mrad",
                    f"a delay line: {line:.1f} mrad",
                )
            )
    blocks: list[Block] = [
        KeyNumbers(tuple(numbers)),
        BulletList(
            (
                *servo.statements(),
                *(validation.statements() if validation else ()),
                *(f"Next: {x}" for x in servo.record_next()),
            )
        ),
    ]
    return Section("summary", "Summary", tuple(blocks), {})


def _values(servo: Servo) -> Section:
    names = [joint.name for joint in servo.arm.joints]
    rows = [(f"{name} [{unit}]", *cells) for name, unit, cells in servo.rows()]
    caption = "value ± two standard deviations; ? where the data do not say"
    table = ReportTable(("parameter", *names), tuple(rows), caption)
    data = {name: servo.values[name].tolist() for name in servo.fitted}
    return Section("values", "Values", (table,), data)


def _elements(servo: Servo) -> Section:
    rows = tuple(
        (e.name, 1e3 * e.before, 1e3 * e.after, "yes" if e.is_needed else "no")
        for e in servo.elements
    )
    columns = ("element", "error without [mrad]", "with [mrad]", "needed")
    caption = "Mean error on motions left out of each half's fit, joint by joint"
    table = ReportTable(columns, rows, caption, digits=3)
    return Section("elements", "What the model needs", (table,), {})


def _errors(servo: Servo, validation: FreeRunErrors | None) -> Section:
    names = tuple(joint.name for joint in servo.arm.joints)
    tables: list[Block] = []
    for label, errors in (("Fitted", servo.fit), ("Other", validation)):
        if errors is None:
            continue
        rows = [_row(name, row) for name, row in errors.motions.items()]
        line = _row("a delay line, all", errors.delay_line_joints)
        total = _row("all", errors.joints)
        tables.append(
            ReportTable(
                ("motion", *names),
                (total, line, *rows),
                f"{label} motions: mean |q simulated − q| [mrad], all samples",
                digits=3,
            )
        )
    if servo.contact:
        rows = [_row(name, 0.1 * row) for name, row in servo.contact.items()]
        tables.append(
            ReportTable(
                ("motion", *names), tuple(rows),
                "Left out of the fit: contact, walls, spikes [% of the samples]",
                digits=2,
            )
        )  # fmt: skip
    return Section("errors", "Errors in free run", tuple(tables), {})


def _row(name: str, values: np.ndarray) -> tuple[Cell, ...]:
    """Return a name and one number per joint, in thousandths."""
    return (name, *(1e3 * float(x) for x in values))


def _traces(servo: Servo, motions: Sequence[ServoMotion]) -> Section:
    figures = []
    most = points_per_curve(3 * servo.arm.dof * max(len(motions), 1))
    for motion, run in zip(motions, servo.rollouts(motions), strict=True):
        for j, joint in enumerate(servo.arm.joints):
            if np.ptp(motion.q[:, j]) < 5e-3:
                continue
            rows = envelope_rows(run[:, j] - motion.q[:, j], most)
            t = motion.time[rows]
            curves = (
                Series("command", t, motion.goals[rows, j], "described"),
                Series("measured", t, motion.q[rows, j], "measured"),
                Series("simulated", t, run[rows, j], "predicted"),
            )
            title = f"{Path(motion.name).stem}: {joint.name}"
            figures.append(Figure(title, "time [s]", "rad", curves))
    return Section("traces", "Traces", tuple(figures), {})
