"""armwise feedforward: torques along a planned motion, with their interval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armwise.cli.arguments import FASTEST, ArmName, load_model, number, output_file
from armwise.cli.output import AsJson, console, figure, print_json, table, warn


def feedforward(
    arm: ArmName,
    motion: Annotated[
        Path, typer.Argument(metavar="PLAN", help="Planned motion: .csv or .json.")
    ],
    output: Annotated[
        Path | None,
        output_file("Plan with effort: .json or .yaml (JointTrajectory), or .csv."),
    ] = None,
    rate_hz: Annotated[
        float | None,
        number("Points a second [Hz]; as planned if absent.", 1.0, FASTEST),
    ] = None,
    json: AsJson = False,
) -> None:
    """Work out the torques of a planned motion from the identified model.

    Of an estimate with one standard deviation for each torque: what is not known of
    the parameters and the residual of the fit together; .csv holds it as tau_std.

    Example: armwise feedforward out/estimate.json plan.csv -o effort.json
    """
    import numpy as np

    from armwise.identification import Estimate, torque_along
    from armwise.motions import check_limits, read_motion, write_motion

    model = load_model(arm)
    described = model.prior_arm if isinstance(model, Estimate) else model
    plan = read_motion(motion, described)
    check_limits(plan, described)
    rate = rate_hz or 1.0 / float(np.median(np.diff(plan.times)))
    torque = torque_along(model, plan, plan.times)
    columns: dict[str, Any] = {"tau": lambda t: torque_along(model, plan, t).tau}
    if torque.std is not None:
        columns["tau_std"] = lambda t: torque_along(model, plan, t).std
    if output is not None:
        write_motion(plan, output, rate, described.coordinate_names, columns)
    peak = np.abs(torque.tau).max(axis=0)
    limit = described.limits("effort")
    report = {
        "joints": list(described.coordinate_names),
        "duration": plan.duration,
        "peak": peak,
        "std": None if torque.std is None else torque.std.max(axis=0),
        "limit": limit,
        "output": None if output is None else str(output),
    }
    if json:
        print_json(report)
    else:
        _show(report)
    for name, most, bound in zip(report["joints"], peak, limit, strict=True):
        if most > bound:
            warn(f"{name} needs {most:.4g} N m; its limit is {bound:.4g}.")


def _show(report: dict[str, Any]) -> None:
    rows = table(
        f"Torques along {report['duration']:g} s (N m, N)",
        ("joint", "largest", "standard deviation, at most", "limit"),
    )
    for i, name in enumerate(report["joints"]):
        std = "unknown" if report["std"] is None else figure(report["std"][i])
        limit = report["limit"][i]
        rows.add_row(name, figure(report["peak"][i]), std, figure(limit))
    screen = console()
    screen.print(rows)
    if report["std"] is None:
        screen.print("A description has no interval; give an estimate.json for one.")
    if report["output"]:
        screen.print(f"plan: {report['output']}", markup=False)
