"""Sections on parameters: every number with its interval and origin, and friction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import DRIVE_NAMES
from armwise.identification import at_usual_temperature, predict_torque
from armwise.recordings import Samples
from armwise.regression import FORMS, interval_factor
from armwise.report.report import (
    Block,
    Cell,
    Figure,
    Paragraph,
    ReportTable,
    Section,
    Series,
    finite,
)
from armwise.report.subject import Subject

if TYPE_CHECKING:
    from jaxtyping import Float


def parameters_section(subject: Subject) -> Section:
    """List the combinations, then the parameters of the exported arm."""
    estimate = subject.estimate
    intro = (
        "Torques depend on the combinations in the first table only; their intervals "
        "hold for correlated residuals too. The second lists the exported arm: "
        "“identified” acts alone, “in combination” only as part of a sum (the split "
        "is the description's), “prior” is the description's own value."
    )
    return Section(
        "parameters",
        "Parameters",
        (Paragraph(intro), _combinations(subject), _standard(subject)),
        {
            "combinations": [
                {"expression": e, "value": v, "std": s}
                for e, v, s in zip(
                    estimate.base.expressions,
                    finite(estimate.base_values),
                    finite(estimate.base_std),
                    strict=True,
                )
            ],
            "parameters": [
                {"name": n, "value": v, "std": s, "origin": o, "description": d}
                for n, v, s, o, d in _rows(subject)
            ],
        },
    )


def _combinations(subject: Subject) -> ReportTable:
    estimate = subject.estimate
    rows = []
    for text, value, std in zip(
        estimate.base.expressions, estimate.base_values, estimate.base_std, strict=True
    ):
        rows.append(
            (text, float(value), *_interval(value, std), _relative_std(value, std))
        )
    columns = ("combination", "value", "std", "from", "to", "std / value [%]")
    caption = "Base parameters and friction terms, 95 % intervals, SI units."
    return ReportTable(columns, tuple(rows), caption)


def _interval(value: float, std: float) -> tuple[Cell, Cell, Cell]:
    if not np.isfinite(std):
        return "not determined", None, None
    reach = interval_factor() * std
    return float(std), float(value - reach), float(value + reach)


def _relative_std(value: float, std: float) -> Cell:
    if not np.isfinite(std) or value == 0:
        return None
    return float(100 * std / abs(value))


def _rows(
    subject: Subject,
) -> list[tuple[str, float, float | None, str, float]]:
    """Name, value, standard deviation, origin and described value of each parameter."""
    estimate = subject.estimate
    size = estimate.parameters.size
    extra = len(estimate.columns.friction)
    leaders = dict(zip(estimate.base.indices, estimate.base_std, strict=True))
    std = [*estimate.std, *[leaders.get(size + k, np.inf) for k in range(extra)]]
    described = [*subject.arm.parameters, *[0.0] * extra]
    return [
        (name, float(value), spread, estimate.origin[name], float(prior))
        for name, value, spread, prior in zip(
            estimate.base.names,
            estimate.all_parameters,
            finite(std),
            described,
            strict=True,
        )
    ]


def _standard(subject: Subject) -> ReportTable:
    columns = ("parameter", "value", "std", "origin", "description")
    caption = "Parameters of the exported arm, friction terms last."
    rows = tuple(_rows(subject))
    # Judgement: twenty rows are about a screen.
    return ReportTable(columns, rows, caption, is_folded=len(rows) > 20)


# Friction.

_POINTS = 201
"""Speeds at which a friction curve is drawn: odd, so that standstill is one."""


def friction_section(subject: Subject) -> Section:
    """List rotor inertia and friction of each drive, then further terms."""
    drives = _drives(subject)
    blocks: list[Block] = [drives]
    terms = subject.estimate.columns.friction
    if terms:
        blocks.append(_further(subject))
    else:
        blocks.append(Paragraph("No term beyond viscous, Coulomb and offset was used."))
    blocks += _curves(subject)
    return Section(
        "friction",
        "Friction and drives",
        tuple(blocks),
        {
            "drives": [
                dict(zip(drives.columns, row, strict=True)) for row in drives.rows
            ],
            "further": [term.name for term in terms],
        },
    )


def _drives(subject: Subject) -> ReportTable:
    estimate = subject.estimate
    layout = subject.arm.layout
    values, stds = (layout.by_drive(x) for x in (estimate.parameters, estimate.std))
    rows: list[tuple[Cell, ...]] = []
    for drive, four, spread in zip(subject.arm.driven, values, stds, strict=True):
        cells: list[Cell] = [drive.name]
        for value, std in zip(four.tolist(), spread.tolist(), strict=True):
            cells += [value, std if np.isfinite(std) else None]
        rows.append(tuple(cells))
    columns = ["drive"]
    for name in DRIVE_NAMES:
        columns += [name.replace("_", " "), f"std of {name.replace('_', ' ')}"]
    caption = "Rotor inertia [kg m²], viscous [N m s], Coulomb and offset [N m]."
    return ReportTable(tuple(columns), tuple(rows), caption, 3)


def _further(subject: Subject) -> ReportTable:
    estimate = subject.estimate
    size = estimate.parameters.size
    leaders = dict(zip(estimate.base.indices, estimate.base_std, strict=True))
    rows = []
    for k, term in enumerate(estimate.columns.friction):
        std = float(leaders.get(size + k, np.inf))
        rows.append(
            (
                term.name,
                float(estimate.all_parameters[size + k]),
                std if np.isfinite(std) else None,
                term.kind.meaning,
            )
        )
    rows += _dry_friction(subject)
    caption = "Terms that predict stretches left out better than none."
    return ReportTable(("term", "coefficient", "std", "shape"), tuple(rows), caption)


def _dry_friction(subject: Subject) -> list[tuple[str, float, float | None, str]]:
    """Coulomb friction and hysteresis together, of drives that have both.

    What one log gives to the one another gives to the other: their sum is what a drive
    shows once it has moved on.
    """
    estimate, names = subject.estimate, list(subject.estimate.base.names)
    leaders = {index: k for k, index in enumerate(estimate.base.indices)}
    size, rows = estimate.parameters.size, []
    for j, drive in enumerate(subject.arm.driven):
        terms = enumerate(estimate.columns.friction, size)
        own = [k for k, t in terms if t.joint == j and t.form == "hysteresis"]
        if not own:
            continue
        own.append(names.index(f"{drive.name}.coulomb"))
        part = [leaders[k] for k in own if k in leaders]
        variance = float(estimate.base_covariance[np.ix_(part, part)].sum())
        if estimate.friction_effects is not None:
            # Other terms in place of these have a part in the sum as well.
            variance -= float(np.sum(estimate.friction_effects[part].sum(axis=0) ** 2))
        is_known = len(part) == len(own) and np.isfinite(variance)
        std = float(np.sqrt(max(variance, 0.0))) if is_known else None
        value = float(estimate.all_parameters[own].sum())
        meaning = "Coulomb and hysteresis together, once it has moved on"
        rows.append((f"{drive.name}: dry friction", value, std, meaning))
    return rows


# A few hundred dots show a cloud; more only make the page heavy.
_DOTS = 300
"""Measurements in a figure of friction."""

_LONGEST = 4000
"""Samples at the start of the fit whose friction is drawn."""


def _curves(subject: Subject) -> list[Figure]:
    """Friction over speed, joint by joint; over load and position where terms ask."""
    if subject.fitted is None or not len(subject.fitted):
        return []
    estimate, dof = subject.estimate, subject.arm.dof
    data = subject.fitted[:_LONGEST]
    fastest = np.abs(data.qd).max(axis=0)
    still = np.zeros((_POINTS, dof))
    # At rest in posture and acceleration, without links, only friction and offset
    # remain.
    only_friction = np.array(estimate.all_parameters)
    only_friction[subject.arm.layout.links] = 0.0
    for k, name in enumerate(estimate.columns.names):
        if name.endswith(".rotor_inertia"):
            only_friction[k] = 0.0
    qd = np.linspace(-1.0, 1.0, _POINTS)[:, None] * fastest
    # No preparation: friction as it is, not as a filter shows it.
    # In no time: nothing warms up.
    motion = Samples(1e-9 * np.arange(_POINTS), still, qd, still, still)
    motion = at_usual_temperature(estimate.columns, motion)
    torque = predict_torque(estimate.columns, only_friction, motion)
    whole = predict_torque(estimate.columns, estimate.all_parameters, data)
    modelled = predict_torque(estimate.columns, only_friction, data)
    # What is measured beside the links' torque.
    measured, load = data.tau - whole + modelled, whole - modelled
    both = (measured, modelled)
    figures = []
    forms = {(term.joint, term.form) for term in estimate.columns.friction}
    dots = slice(None, None, max(1, len(data) // _DOTS))
    for j, (name, unit) in enumerate(
        zip(subject.arm.coordinate_names, subject.torque_units, strict=True)
    ):
        if fastest[j] <= 0:
            continue
        drive = subject.arm.coordinates[j]
        length = "rad" if unit == "N m" else "m"
        points = Series("measured", data.qd[dots, j], measured[dots, j], "points")
        curve = Series("friction", qd[:, j], torque[:, j], "predicted")
        figures.append(
            Figure(
                f"{name}: friction over speed",
                f"speed [{length}/s]",
                unit,
                (points, curve),
                is_folded=True,
            )
        )
        if any((drive, form) in forms for form in FORMS if FORMS[form].uses_load):
            rows = np.stack([load[:, j], data.qd[:, j], measured[:, j]])
            slope = sum(
                coefficient
                for term, coefficient in estimate.friction
                if term.joint == drive and term.kind.uses_load
            )
            figures.append(_over_load(name, unit, rows[:, dots], float(slope)))
        if any((drive, form) in forms for form in FORMS if FORMS[form].remembers):
            figures.append(_loop(name, unit, length, data, measured, modelled, j))
        own = [t.kind for t in estimate.columns.friction if t.joint == drive]
        if any(kind.uses_temperature or kind.uses_heat for kind in own):
            warm = ("time [s]", data.time[dots])
            if data.temperature is not None:
                warm = ("temperature [°C]", data.temperature[dots, j])
            figures.append(_over_warmth(name, unit, warm, data, *both, dots, j))
    return figures


def _over_warmth(
    name: str,
    unit: str,
    warmth: tuple[str, np.ndarray],
    data: Samples,
    measured: np.ndarray,
    modelled: np.ndarray,
    dots: slice,
    joint: int,
) -> Figure:
    """Friction against the direction of motion, over temperature or time."""
    label, values = warmth
    speed = data.qd[dots, joint]
    # A tenth of the top speed: slower, a direction is mixed by the low-pass.
    is_moving = np.abs(speed) > 0.1 * np.abs(speed).max(initial=0.0)
    curves = [
        (np.sign(speed) * friction[dots, joint])[is_moving]
        for friction in (measured, modelled)
    ]
    return Figure(
        f"{name}: friction as it warms up",
        label,
        unit,
        (
            Series("measured", values[is_moving], curves[0], "points"),
            Series("friction", values[is_moving], curves[1], "points"),
        ),
        is_folded=True,
    )


def _over_load(
    name: str, unit: str, rows: Float[np.ndarray, "3 rows"], slope: float
) -> Figure:
    """Friction against the direction of motion, over the load of the gear.

    Args:
        name: The joint.
        unit: Of its torque.
        rows: Load, speed and friction.
        slope: Friction by load.
    """
    load, speed, friction = rows
    # A tenth of the top speed: slower, a direction is mixed by the low-pass.
    is_moving = np.abs(speed) > 0.1 * np.abs(speed).max()
    size, braking = np.abs(load[is_moving]), (np.sign(speed) * friction)[is_moving]
    line = np.array([0.0, size.max(initial=0.0)])
    # Friction of speed as the measurements have it on the average.
    level = float(np.median(braking - slope * size)) if size.size else 0.0
    return Figure(
        f"{name}: friction over load",
        f"load of the gear [{unit}]",
        unit,
        (
            Series("measured", size, braking, "points"),
            Series("friction", line, level + slope * line, "predicted"),
        ),
        is_folded=True,
    )


def _loop(
    name: str,
    unit: str,
    length: str,
    data: Samples,
    measured: np.ndarray,
    modelled: np.ndarray,
    joint: int,
) -> Figure:
    """Friction over position around the reversals of the first seconds."""
    rows = data.segments[0]
    signs = np.sign(data.qd[rows, joint])
    turns = np.flatnonzero(signs[1:] * signs[:-1] < 0.0)
    # Two reversals close a loop, a third shows whether it repeats.
    stop = int(turns[2]) if turns.size > 2 else len(signs)
    part = slice(rows.start, rows.start + stop)
    dots = slice(part.start, part.stop, max(1, stop // _DOTS))
    q = data.q[:, joint]
    return Figure(
        f"{name}: friction over position, reversing",
        f"position [{length}]",
        unit,
        (
            Series("measured", q[dots], measured[dots, joint], "points"),
            Series("friction", q[part], modelled[part, joint], "predicted"),
        ),
        is_folded=True,
    )
