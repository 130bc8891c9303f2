"""armwise recognise: which known object is held, and whether it is held properly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armwise.cli.arguments import number
from armwise.cli.output import AsJson, console, print_json, table

if TYPE_CHECKING:
    from armwise.loads import GraspCheck, Recognition


def recognise(
    load: Annotated[Path, typer.Argument(help="load.json of armwise identify-load.")],
    catalogue: Annotated[Path, typer.Argument(help="TOML of known objects.")],
    grasp: Annotated[
        str | None, typer.Option(help="Object that should be held as it describes.")
    ] = None,
    position_tolerance: Annotated[
        float, number("How far its centre may be off [m].", 1e-9, 1e3)
    ] = 0.005,
    angle_tolerance: Annotated[
        float, number("How far its axes may be turned [rad].", 1e-9, 4.0)
    ] = 0.15,
    mass_tolerance: Annotated[
        float, number("Fraction by which its mass may differ.", 1e-9, 1e3)
    ] = 0.05,
    json: AsJson = False,
) -> None:
    """Recognise a load among known objects; with --grasp, check how it is held.

    Exit status 1 if a grasp is not as expected, or the object is none of them.

    Example: armwise recognise load/load.json objects.toml --grasp bracket
    """
    from armwise.loads import read_catalogue, read_load_estimate, verify_grasp
    from armwise.loads import recognise as match

    estimate = read_load_estimate(load)
    objects = read_catalogue(catalogue)
    result = match(estimate, [one.known for one in objects.values()])
    check = None
    if grasp is not None:
        if grasp not in objects:
            raise typer.BadParameter(
                f"{catalogue} has no object {grasp!r}: {', '.join(objects)}."
            )
        check = verify_grasp(
            estimate,
            objects[grasp].body,
            objects[grasp].T_frame_object,
            position_tolerance=position_tolerance,
            angle_tolerance=angle_tolerance,
            mass_tolerance=mass_tolerance,
        )
    if json:
        print_json({"recognition": vars(result), "grasp": _plain(check)})
    else:
        _show(result, check)
    if not result.is_known or (check is not None and not check.is_as_expected):
        raise typer.Exit(1)


def _plain(check: GraspCheck | None) -> dict[str, object] | None:
    if check is None:
        return None
    checks = [{**vars(one), "verdict": one.verdict} for one in check.checks]
    return {**vars(check), "is_as_expected": check.is_as_expected, "checks": checks}


def _show(result: Recognition, check: GraspCheck | None) -> None:
    rows = table("Known objects", ("object", "distance (std)", "probability"))
    for one in result.matches:
        rows.add_row(one.name, f"{one.distance:.2f}", f"{100 * one.probability:.1f} %")
    screen = console()
    screen.print(rows)
    screen.print(result.statement, markup=False)
    if check is not None:
        screen.print(check.statement, markup=False)
