"""armwise inspect and inspect-log: what is in a description, and what in a log."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.arms import INERTIAL_NAMES
from armwise.cli.arguments import (
    DESCRIPTIONS,
    ArmName,
    Columns,
    CutoffHz,
    MappingFile,
    SkipBadRows,
    bundled_names,
    load_described,
    load_named,
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
    from collections.abc import Sequence

    from armwise.arms import Arm
    from armwise.dynamics import Mechanism
    from armwise.programs import Program, Scalar
    from armwise.progress import Progress
    from armwise.recordings import Recording

# Operation counts of an arm's traced programs, beside published ones.

FUNCTIONS = (
    "inverse_dynamics",
    "mass_matrix",
    "gravity_torque",
    "velocity_torque",
    "forward_dynamics",
    "regressor",
)

RIGID = "inverse_dynamics_without_drives"

PUBLISHED = {
    "puma560": (431, 325),
    "iiwa": (361, 280),
    "panda": (314, 309),
    "tx40": (309, 238),
    "ur5": (444, 338),
}
"""SymPyBotics, inverse dynamics with base parameters: multiplications, additions."""


def operation_counts(arm: Arm) -> dict[str, Any]:
    """Count the operations of each function, and name what others publish."""
    from armwise.dynamics import Dynamics

    dynamics = Dynamics(arm, backend="numpy")
    counts: dict[str, Any] = {
        RIGID: dict(_without_drives(dynamics.mechanism).counts),
        **{name: dict(dynamics.program(name).counts) for name in FUNCTIONS},
    }
    if arm.name in PUBLISHED:
        multiplications, additions = PUBLISHED[arm.name]
        counts[RIGID]["sympybotics"] = {
            "multiplications": multiplications,
            "additions": additions,
        }
    return counts


def _without_drives(mechanism: Mechanism) -> Program:
    """Trace inverse dynamics without rotors and friction: what others count."""
    from armwise.dynamics import equations, trace_equation

    whole = equations(mechanism)["inverse_dynamics"]

    def bare(
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        qdd: Sequence[Scalar],
        bodies: Sequence[Scalar],
    ) -> dict[str, object]:
        none = [0.0] * mechanism.layout.drive_size
        return whole.function(q=q, qd=qd, qdd=qdd, bodies=bodies, drives=none)

    return trace_equation(
        mechanism, RIGID, replace(whole, uniforms=("bodies",), function=bare)
    )


MOST_JOINTS = 40
"""Longer arms are shown in part, without base parameters and operation counts."""


def inspect(
    arm: ArmName,
    all_: Annotated[
        bool, typer.Option("--all", help="Drives, inertias and base parameters too.")
    ] = False,
    counts: Annotated[
        bool, typer.Option("--counts", help="Operations of the generated programs.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show joints, limits, masses and what can be known; name unphysical links.

    Example: armwise inspect panda --all --counts
    """

    loaded = load_named(arm)
    report = describe(loaded, counts=counts)
    if json:
        print_json(report)
        return
    _show(report, all_)
    for warning in report["warnings"][:MOST_JOINTS]:
        warn(warning)


def describe(arm: Arm, *, counts: bool = False) -> dict[str, Any]:
    """Collect what there is to say of an arm."""
    report: dict[str, Any] = {
        "name": arm.name,
        "dof": arm.dof,
        "gravity": arm.gravity,
        "total_mass": sum(link.inertia.mass for link in arm.links),
        "joints": [_joint(arm, i) for i in range(len(arm.joints))],
        "links": [_link(arm, i) for i in range(len(arm.links))],
        "locked": dict(arm.locked),
        "notes": list(arm.notes),
        "frames": [
            {"name": frame.name, "link": _carrier(arm, frame.link)}
            for frame in arm.frames
        ],
        "couplings": [
            {"name": x.name, "weights": x.weights, "drive": x.drive}
            for x in arm.couplings
        ],
        "parameter_count": int(arm.parameters.size),
        "warnings": [
            *(f"no body can be {name}: {why}" for name, why in arm.defects().items()),
            *_without_mass(arm),
        ],
    }
    if len(arm.joints) <= MOST_JOINTS:
        report["base_parameters"] = _base_parameters(arm)
    else:
        report["warnings"].append(
            f"base parameters are not worked out for more than {MOST_JOINTS} joints"
        )
    if counts and len(arm.joints) <= MOST_JOINTS:
        report["counts"] = operation_counts(arm)
    return report


def _without_mass(arm: Arm) -> list[str]:
    """Say which joints move nothing, by the description."""
    has_mass = [bool(link.inertia.vector.any()) for link in arm.links]
    # Children follow their parents: from the tips, what a link carries is its own.
    for i, joint in reversed(list(enumerate(arm.joints))):
        if joint.parent >= 0 and (has_mass[i] or joint.drive.vector[0]):
            has_mass[joint.parent] = True
    names = [
        joint.name
        for joint, moves in zip(arm.joints, has_mass, strict=True)
        if not (moves or joint.drive.vector[0])
    ]
    if not names:
        return []
    whose = f"beyond {', '.join(names)}" if len(names) < len(arm.joints) else "at all"
    return [
        f"no mass or inertia is described {whose}: torques by this description mean "
        "nothing there; identify it from a log, or complete the description"
    ]


def _joint(arm: Arm, i: int) -> dict[str, Any]:
    joint = arm.joints[i]
    mimic = joint.mimic and {
        "leader": arm.joints[joint.mimic.leader].name,
        "multiplier": joint.mimic.multiplier,
        "offset": joint.mimic.offset,
    }
    return {
        "name": joint.name,
        "kind": joint.kind,
        "parent": _carrier(arm, joint.parent),
        "axis": joint.axis,
        "limits": joint.limits,
        "drive": joint.drive,
        "mimic": mimic,
    }


def _link(arm: Arm, i: int) -> dict[str, Any]:
    inertia = arm.links[i].inertia
    return {
        "name": arm.links[i].name,
        "mass": inertia.mass,
        "center_of_mass": inertia.center_of_mass,
        "principal_moments": inertia.principal[0],
        "defect": inertia.defect(),
    }


def _carrier(arm: Arm, index: int) -> str:
    return arm.links[index].name if index >= 0 else arm.base


def _base_parameters(arm: Arm) -> dict[str, Any]:
    from armwise.dynamics import base_parameters

    base = base_parameters(arm)
    return {
        "count": base.count,
        "expressions": list(base.expressions),
        "unidentifiable": list(base.unidentifiable),
        "kinds": base.kinds,
    }


def _show(report: dict[str, Any], everything: bool) -> None:
    screen = console()
    gravity = ", ".join(figure(x) for x in report["gravity"])
    screen.print(
        f"[bold]{report['name']}[/bold]: {report['dof']} degrees of freedom, "
        f"{figure(report['total_mass'])} kg in motion, gravity ({gravity}) m/s²"
    )
    screen.print(_joint_table(report))
    if (more := len(report["links"]) - MOST_JOINTS) > 0:
        screen.print(f"… and {more} more; --json shows all")
    if report["locked"]:
        held = (f"{name} at {figure(x)}" for name, x in report["locked"].items())
        screen.print(f"Locked: {', '.join(held)}", markup=False)
    driven = (*report["joints"], *report["couplings"])
    if everything:
        if any(x["drive"].vector.any() for x in driven):
            screen.print(_drive_table(report))
        screen.print(_link_table(report))
    _show_base(report, everything)
    if "counts" in report:
        screen.print(_count_table(report))


def _joint_table(report: dict[str, Any]) -> Any:
    rows = table(
        "Joints (rad, m, s, N m, N), what each carries (kg), and what motion can tell",
        ("joint", "range", "speed", "effort", "link", "mass", "known"),
    )
    joints, links = report["joints"][:MOST_JOINTS], report["links"]
    # Not strict: joints beyond the most are left out.
    for joint, link in zip(joints, links, strict=False):
        limits, name = joint["limits"], joint["name"]
        if joint["mimic"]:
            name += f" ∝ {joint['mimic']['leader']}"
        span = f"{figure(limits.lower, 3)} … {figure(limits.upper, 3)}"
        endless = limits.lower == -inf and limits.upper == inf
        rows.add_row(
            name + (" (slides)" if joint["kind"] == "prismatic" else ""),
            "endless" if endless else span,
            figure(limits.velocity, 3),
            figure(limits.effort, 3),
            link["name"],
            figure(link["mass"], 4),
            _known(report, link["name"]),
        )
    return rows


def _known(report: dict[str, Any], link: str) -> str:
    """Say how many of a link's ten parameters motion determines."""
    if "base_parameters" not in report:
        return ""
    kinds = report["base_parameters"]["kinds"]
    own = [kinds[f"{link}.{name}"] for name in INERTIAL_NAMES]
    alone, summed = own.count("identifiable"), own.count("in combination")
    return f"{alone} alone, {summed} in sums" if alone + summed else "nothing"


def _drive_table(report: dict[str, Any]) -> Any:
    rows = table(
        "Drives (kg m², N m s, N m; or kg, N s/m, N)",
        ("joint", "rotor inertia", "viscous", "Coulomb", "offset"),
    )
    for driven in (*report["joints"][:MOST_JOINTS], *report["couplings"]):
        rows.add_row(driven["name"], *map(figure, driven["drive"].vector))
    return rows


def _link_table(report: dict[str, Any]) -> Any:
    rows = table(
        "Links (kg, m, kg m²)",
        ("link", "mass", "centre of mass", "principal moments", ""),
    )
    for link in report["links"][:MOST_JOINTS]:
        center = ", ".join(figure(x) for x in link["center_of_mass"])
        moments = ", ".join(figure(x) for x in link["principal_moments"])
        mark = "no body" if link["defect"] else ""
        rows.add_row(link["name"], figure(link["mass"]), center, moments, mark)
    return rows


def _show_base(report: dict[str, Any], everything: bool) -> None:
    base = report.get("base_parameters")
    if base is None:
        return
    screen = console()
    where = "" if everything else "; --all lists them"
    screen.print(
        f"[bold]{base['count']} base parameters[/bold] of "
        f"{report['parameter_count']}: all that motion can determine{where}"
    )
    if not everything:
        return
    for expression in base["expressions"]:
        screen.print(f"  {expression}", markup=False)
    if base["unidentifiable"]:
        screen.print(f"No torque depends on: {', '.join(base['unidentifiable'])}")


def _count_table(report: dict[str, Any]) -> Any:
    rows = table(
        "Operations for one sample",
        ("function", "multiplications", "additions", "sin, cos", "SymPyBotics"),
    )
    for name, counts in report["counts"].items():
        others = counts.get("sympybotics")
        other = f"{others['multiplications']} + {others['additions']}" if others else ""
        numbers = (
            counts["multiplications"],
            counts["additions"],
            counts["trigonometric"],
        )
        rows.add_row(name, *map(str, numbers), other)
    return rows


# armwise inspect-log: contents of a log, and of its samples once prepared.


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
    _show_log(report)
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


def _show_log(report: dict[str, Any]) -> None:
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
        screen.print(line, markup=False)


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
