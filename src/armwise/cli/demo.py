"""armwise demo: from nothing to a trusted model, in less than a minute."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from armwise.cli.arguments import Seed, output_folder
from armwise.cli.output import AsJson, console, print_json, table, warn

if TYPE_CHECKING:
    from armwise.cli.demonstration import Code, Outcome


def demo(
    output: Annotated[Path, output_folder()] = Path("armwise-demo"),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Identify a simulated Panda that is not as described, and show what came of it.

    Example: armwise demo -o armwise-demo
    """
    from armwise.cli.demonstration import demonstrate
    from armwise.cli.progress import progress_bar

    begin = time.perf_counter()
    with progress_bar("Demo", quiet=json) as tell:
        outcome = demonstrate(output, seed, tell)
    summary = summarise(outcome, time.perf_counter() - begin)
    if json:
        print_json(summary)
        return
    _show(outcome, summary)


def summarise(outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Collect what a machine wants to know."""
    estimate = outcome.result.estimate
    checked = outcome.result.validation
    assert checked is not None
    terms = len(estimate.columns.friction)
    return {
        "seconds": seconds,
        "excitation_condition_number": outcome.plan.condition_number,
        "base_parameter_count": estimate.base.count - terms,
        "friction": [term.name for term in estimate.columns.friction],
        "condition_number": estimate.condition_number,
        "description": outcome.described.to_dict(),
        "fit": estimate.fit.to_dict(),
        "validation": checked.to_dict(),
        "reduced_parameter_count": outcome.small.base.count,
        "determined_count": estimate.base.count,
        "reduced_validation": outcome.reduced.to_dict(),
        "code": outcome.code,
        "warnings": list(outcome.result.warnings),
        "files": {name: str(path) for name, path in outcome.files.items()},
    }


def _show(outcome: Outcome, summary: dict[str, Any]) -> None:
    estimate = outcome.result.estimate
    out = console()
    shown = table(
        "Torque that is not predicted, on a motion not used to fit",
        ["joint", "description", "identified", "reduced"],
    )
    columns = [summary[k] for k in ("description", "validation", "reduced_validation")]
    for j, name in enumerate(estimate.prior_arm.coordinate_names):
        errors = [f"{100 * c['relative_error'][j]:.1f} %" for c in columns]
        shown.add_row(name, *errors)
    out.print(shown)
    plan, matter = outcome.plan, outcome.small.base.count
    out.print(
        f"A motion of {plan.duration:g} s was designed (condition number "
        f"{plan.condition_number:.1f}) and run in MuJoCo with friction and noise.\n"
        f"It determined {summary['base_parameter_count']} base parameters and "
        f"{len(summary['friction'])} further friction term(s); {matter} of them matter."
    )
    out.print(_said_of_code(outcome.code))
    for warning in outcome.result.warnings:
        warn(warning)
    files = outcome.files
    out.print(
        f"\nOpen  {files['report']}\n"
        f"Use   {files['urdf']}, {outcome.code.source}\n"
        f"Redo  armwise identify panda {files['log']} --validate "
        f"{files['validation_log']} -o out\n"
        f"{summary['seconds']:.0f} s in all.",
        soft_wrap=True,
    )


def _said_of_code(code: Code) -> str:
    told = (
        f"C of the {code.of} model: {code.counts['multiplications']} multiplications "
        f"and {code.counts['additions']} additions for inverse dynamics; "
    )
    if code.error is None:
        return told + "not checked, for no C compiler was found."
    return told + f"compiled, it equals the model to {code.error:.1e} N m."
