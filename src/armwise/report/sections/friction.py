"""Friction: the terms of every joint, and the curve they make."""

from __future__ import annotations

import numpy as np

from armwise.arms import DRIVE_NAMES
from armwise.identification.friction import FORMS
from armwise.identification.prediction import predict_torque
from armwise.recordings import Samples
from armwise.report.report import Block, Cell, Curve, Figure, Section, Table, Words
from armwise.report.subject import Subject

_POINTS = 201
"""Speeds at which a friction curve is drawn."""


def friction_section(subject: Subject) -> Section:
    """List rotor inertia and friction of each drive, then further terms."""
    drives = _drives(subject)
    blocks: list[Block] = [drives]
    terms = subject.estimate.columns.friction
    if terms:
        blocks.append(_further(subject))
    else:
        blocks.append(Words("No term beyond viscous, Coulomb and offset was used."))
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


def _drives(subject: Subject) -> Table:
    estimate = subject.estimate
    first = 10 * len(subject.arm.links)
    names = subject.arm.parameter_names[first:]
    rows: list[tuple[Cell, ...]] = []
    for k in range(0, len(names), len(DRIVE_NAMES)):
        cells: list[Cell] = [names[k].rsplit(".", 1)[0]]
        for i in range(len(DRIVE_NAMES)):
            std = float(estimate.std[first + k + i])
            cells += [
                float(estimate.parameters[first + k + i]),
                std if np.isfinite(std) else None,
            ]
        rows.append(tuple(cells))
    columns = ["drive"]
    for name in DRIVE_NAMES:
        columns += [name.replace("_", " "), f"std of {name.replace('_', ' ')}"]
    caption = "Rotor inertia [kg m²], viscous [N m s], Coulomb and offset [N m]."
    return Table(tuple(columns), tuple(rows), caption, 3)


def _further(subject: Subject) -> Table:
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
                FORMS[term.form],
            )
        )
    caption = "Terms that predict stretches left out better than none."
    return Table(("term", "coefficient", "std", "shape"), tuple(rows), caption)


def _curves(subject: Subject) -> list[Figure]:
    """Friction torque over speed, joint by joint, over the speeds that were seen."""
    if subject.fitted is None or not len(subject.fitted):
        return []
    estimate, dof = subject.estimate, subject.arm.dof
    fastest = np.abs(subject.fitted.qd).max(axis=0)
    share = np.linspace(-1.0, 1.0, _POINTS)
    still = np.zeros((_POINTS, dof))
    only_friction = np.array(estimate.all_parameters)
    only_friction[: 10 * len(subject.arm.links)] = 0.0
    qd = share[:, None] * fastest
    motion = Samples(np.arange(_POINTS, dtype=float), still, qd, still, still)
    torque = predict_torque(estimate.columns, only_friction, motion)
    return [
        Figure(
            f"{name}: friction over speed",
            "speed [rad/s]" if unit == "N m" else "speed [m/s]",
            unit,
            (Curve("friction", qd[:, j], torque[:, j], "predicted"),),
            is_folded=True,
        )
        for j, (name, unit) in enumerate(
            zip(subject.arm.coordinate_names, subject.torque_units, strict=True)
        )
        if fastest[j] > 0
    ]
