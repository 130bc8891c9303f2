"""Report and files of identified servos: values, elements, errors, overlaid traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from armwise.arms import save_arm
from armwise.dynamics import Dynamics
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
from armwise.report.subject import Judgement, graded, worst_of
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
    judged = servo_verdicts(servo, validation)
    write_servo(servo, files["servo"], {"verdicts": [asdict(one) for one in judged]})
    set_up = servo.with_gain(servo.gains[0]) if servo.gains else servo
    save_arm(set_up.identified_arm, files["urdf"])
    write_servo_mjcf(set_up, files["mjcf"])
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


# Judgement: a model that halves a delay line's error describes the servos; one that is
# hardly better than it describes nothing.
_LATE = (0.5, 0.8)
"""Error over that of the command, some time late: bounds of pass and look."""

# Judgement: below, a joint moves by some counts of its encoder, and the ratio is noise.
_LEAST_LINE = 5e-3
"""Error in [rad] of a delay line from which on a joint counts."""

# Judgement: as for estimates; other motions may be twice as quick.
_WORSE = (3.0, 10.0)
"""Error on other motions over that on fitted ones: bounds of pass and look."""

# Judgement: what is left out teaches nothing; half of it is another experiment.
_HELD = (0.25, 0.5)
"""Part of a joint's samples that is held back: bounds of pass and look."""

# Judgement: gears that lose as much as the whole arm weighs move nothing.
_FRICTION = (1.0, 3.0)
"""Dry friction over the arm's largest gravity torque: bounds of pass and look."""


def servo_verdicts(
    servo: Servo, validation: FreeRunErrors | None = None
) -> tuple[Judgement, ...]:
    """Say how far servos are to be trusted: questions, verdicts and reasons."""
    return (
        _belonging(servo),
        _followed("Does the model explain the motions it was fitted to?", servo,
                  servo.fit),
        _predicted(servo, validation),
        _free(servo),
        _possible(servo),
    )  # fmt: skip


# Judgement: one horn that is put on some teeth of its spline off is common, several
# are another arm's, or another order of its joints.
_SEVERAL_ZEROS = 2, 0.17
"""How many joints stand how far in [rad] from their zeros to be looked at."""


def _belonging(servo: Servo) -> Judgement:
    question, wrong = "Do the logs look like this arm's?", servo.mismatches
    if wrong:
        return Judgement(question, "fail", wrong[0])
    count, least = _SEVERAL_ZEROS
    zeros = servo.values["zero"]
    off = np.flatnonzero(np.abs(zeros) > least)
    if len(off) >= count:
        joints = ", ".join(
            f"{servo.arm.joints[j].name} {np.degrees(zeros[j]):.0f}°" for j in off
        )
        return Judgement(
            question,
            "look",
            f"several joints stand far from their zeros ({joints}): another arm, or "
            "its joints in another order?",
        )
    return Judgement(question, "pass", "positions lie within its limits, in its order")


def _followed(question: str, servo: Servo, errors: FreeRunErrors | None) -> Judgement:
    """Judge free runs beside a delay line, joint by joint."""
    if errors is None:
        return Judgement(question, "not evaluated", "there are no free runs")
    line = errors.delay_line_joints
    moves = line > _LEAST_LINE
    if not moves.any():
        return Judgement(question, "not evaluated", "no joint moves far")
    ratio = np.where(moves, errors.joints / np.maximum(line, 1e-12), -np.inf)
    j = int(np.argmax(ratio))
    return Judgement(
        question,
        graded(float(ratio[j]), _LATE),
        f"{servo.arm.joints[j].name} is {1e3 * errors.joints[j]:.1f} mrad off, its "
        f"command, some time late, {1e3 * line[j]:.1f}",
    )


def _predicted(servo: Servo, validation: FreeRunErrors | None) -> Judgement:
    question = "Does it predict motions it was not fitted to?"
    if validation is None or servo.fit is None:
        return Judgement(question, "not evaluated", "none; give --validate LOG")
    late = _followed(question, servo, validation)
    ratio = validation.joints / np.maximum(servo.fit.joints, 1e-12)
    # Errors of a count or so are as good as none.
    ratio = np.where(validation.joints < _LEAST_LINE, 0.0, ratio)
    j = int(np.argmax(ratio))
    worse = Judgement(
        question,
        graded(float(ratio[j]), _WORSE),
        f"{servo.arm.joints[j].name} is {1e3 * validation.joints[j]:.1f} mrad off, "
        f"{1e3 * servo.fit.joints[j]:.1f} on fitted motions",
    )
    return worst_of([late, worse])


def _free(servo: Servo) -> Judgement:
    question = "Was the arm free to move?"
    if servo.fit is None:
        return Judgement(question, "not evaluated", "there are no free runs")
    counts = servo.fit.samples
    held = sum(counts[name] * part for name, part in servo.contact.items())
    part = np.zeros(servo.arm.dof) + held / sum(counts.values())
    j = int(np.argmax(part))
    verdict = graded(float(part[j]), _HELD)
    return Judgement(
        question,
        # What a floor explains is known, and only leaves less to learn from.
        "look" if verdict == "fail" and servo.floor is not None else verdict,
        f"{100.0 * part[j]:.0f} % of the samples of {servo.arm.joints[j].name} are "
        "held back by something",
    )


def _possible(servo: Servo) -> Judgement:
    question = "Are the values those of a servo?"
    if servo.load_error is not None:
        # The arm itself may weigh next to nothing.
        why = "its torques are known by loads, and the arm's own weight says nothing"
        return Judgement(question, "not evaluated", why)
    random = np.random.default_rng(0)
    poses = random.uniform(-np.pi, np.pi, (200, servo.arm.dof))
    weight = float(np.abs(Dynamics(servo.arm).gravity_torque(poses)).max())
    if weight < 1e-6:
        return Judgement(question, "not evaluated", "nothing weighs on the joints")
    dry = servo.values["coulomb"] + servo.values["static"]
    # Torques without a scale are in units of anything.
    ratio = np.where(np.isfinite(servo.std["coulomb"]), dry, 0.0) / weight
    j = int(np.argmax(ratio))
    return Judgement(
        question,
        graded(float(ratio[j]), _FRICTION),
        f"{servo.arm.joints[j].name} loses {dry[j]:.3g} N m to dry friction; gravity "
        f"asks for {weight:.3g} at most",
    )


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
    judged = servo_verdicts(servo, validation)
    blocks: list[Block] = [
        KeyNumbers(tuple(numbers)),
        ReportTable(
            ("question", "verdict", "because"),
            tuple((one.question, one.verdict, one.why) for one in judged),
            "Verdicts",
        ),
        BulletList(
            (
                *servo.statements(),
                *(validation.statements() if validation else ()),
                *(f"Next: {x}" for x in servo.record_next()),
            )
        ),
    ]
    data = {"verdicts": [asdict(one) for one in judged]}
    return Section("summary", "Summary", tuple(blocks), data)


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
    caption = (
        "Mean over all joints of the error on motions left out of each half's fit. One "
        "joint's motions may need an element (by half a percent or more) that the mean "
        "does not show; values are shared unless that predicts worse"
    )
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
