"""armwise demo: identification of a simulated arm, from motion to C code."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from armwise.cli.arguments import Seed, output_folder
from armwise.cli.output import AsJson, console, print_json, table, warn
from armwise.progress import Progress

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.excitation import ExcitationPlan
    from armwise.identification import Estimate, Validation
    from armwise.recordings import Recording


def demo(
    subject: Annotated[
        str, typer.Argument(help="arm: a simulated Panda; servo: a real SO-101.")
    ] = "arm",
    output: Annotated[Path, output_folder()] = Path("armwise-demo"),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Identify a simulated Panda, or the servos of a real SO-101; write a report.

    Example: armwise demo -o armwise-demo

    Example: armwise demo servo
    """
    from armwise.cli.output import progress_bar

    if subject not in ("arm", "servo"):
        raise typer.BadParameter(f"a demo is of an arm or a servo, not of {subject!r}.")
    if subject == "servo":
        _servo_demo(output, seed, json)
        return
    begin = time.perf_counter()
    with progress_bar("Demo", quiet=json) as tell:
        done = demonstrate(output, seed, tell)
    summary = summarise(done, time.perf_counter() - begin)
    if json:
        print_json(summary)
        return
    _show(done, summary)


def _servo_demo(output: Path, seed: int, json: bool) -> None:
    """Identify an SO-101's servos from two recorded motions; predict a third."""
    from armwise.cli.identify_servo import identify_servo
    from armwise.servos import EXAMPLE

    fitted = [EXAMPLE / f"{name}.parquet" for name in ("chirp_sweep", "velocity_ramp")]
    identify_servo(
        str(EXAMPLE / "so101.urdf"),
        fitted,
        [EXAMPLE / "trapezoidal_profile.parquet"],
        # A quarter of the usual: in half a minute, and these motions have few valleys.
        starts=64,
        seed=seed,
        output=output,
        json=json,
    )


def summarise(done: Demonstration, seconds: float) -> dict[str, Any]:
    """Collect the figures of a demonstration."""
    estimate = done.estimate
    validation = estimate.validation
    assert validation is not None
    terms = len(estimate.columns.friction)
    return {
        "seconds": seconds,
        "excitation_condition_number": done.plan.condition_number,
        "base_parameter_count": estimate.base.count - terms,
        "friction": [term.name for term in estimate.columns.friction],
        "condition_number": estimate.condition_number,
        "description": done.described.to_dict(),
        "fit": estimate.fit.to_dict(),
        "validation": validation.to_dict(),
        "reduced_parameter_count": done.small.base.count,
        "determined_count": estimate.base.count,
        "reduced_validation": done.reduced.to_dict(),
        "code": done.code,
        "warnings": [warning.text for warning in estimate.warnings],
        "files": {name: str(path) for name, path in done.files.items()},
    }


def _show(done: Demonstration, summary: dict[str, Any]) -> None:
    estimate = done.estimate
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
    plan, matter = done.plan, done.small.base.count
    out.print(
        f"A motion of {plan.duration:g} s was designed (condition number "
        f"{plan.condition_number:.1f}) and run in MuJoCo with friction and noise.\n"
        f"It determined {summary['base_parameter_count']} base parameters and "
        f"{len(summary['friction'])} further friction term(s); {matter} of them matter."
    )
    out.print(_code_sentence(done.code))
    for warning in estimate.warnings:
        warn(warning.text)
    files = done.files
    out.print(
        f"\nOpen  {files['report']}\n"
        f"Use   {files['urdf']}, {done.code.source}\n"
        f"Redo  armwise identify panda {files['log']} --validate "
        f"{files['validation_log']} -o out\n"
        f"{summary['seconds']:.0f} s in all.",
        soft_wrap=True,
    )


def _code_sentence(code: CheckedCode) -> str:
    counts = (
        f"C of the {code.model} model: {code.counts['multiplications']} "
        f"multiplications and {code.counts['additions']} additions for inverse "
        "dynamics; "
    )
    if code.error is None:
        return counts + "not checked, for no C compiler was found."
    return counts + f"compiled, it equals the model to {code.error:.1e} N m."


# The demonstration, step by step.

DURATION = 8.0
"""Length of each motion in [s]."""

BUDGET = (8.0, 5.0)
"""Longest search for the motion to fit and the one to validate in [s]: the whole
demonstration stays below a minute."""

MISMATCH = 0.1
"""How far the real arm's inertias are off their description, as a fraction."""

VISCOUS = (0.5, 0.6, 0.4, 0.5, 0.2, 0.2, 0.15)
COULOMB = (0.6, 0.8, 0.5, 0.6, 0.3, 0.3, 0.2)
TORQUE_NOISE = (0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.1)
"""Friction [N m s], [N m] and noise of measured torque [N m] of the real arm."""


@dataclass(frozen=True)
class CheckedCode:
    """Generated C.

    Attributes:
        source: Its main file.
        model: Which model, "reduced" or "whole".
        counts: Operations of its inverse dynamics.
        error: Largest difference to the model in [N m], compiled and called in 200
            random states; None: not evaluated, no C compiler was found.
    """

    source: Path
    model: str
    counts: dict[str, int]
    error: float | None


@dataclass(frozen=True, eq=False)
class Demonstration:
    """All that a demonstration computed.

    Attributes:
        plan: The motion that was designed.
        described: Errors of the description's torques on the validation data.
        estimate: What the log determined.
        small: The parameters that matter.
        reduced: Errors of those on the validation data.
        code: C of those.
        files: What was written.
    """

    plan: ExcitationPlan
    described: Validation
    estimate: Estimate
    small: Estimate
    reduced: Validation
    code: CheckedCode
    files: dict[str, Path]


def demonstrate(folder: Path, seed: int, progress: Progress) -> Demonstration:
    """Design, record, identify, validate, reduce, generate, report."""
    from threadpoolctl import threadpool_limits

    from armwise.arms import load_arm
    from armwise.identification import identify, reduce
    from armwise.plants import import_mujoco

    import_mujoco()  # fail now rather than at the end
    folder.mkdir(parents=True, exist_ok=True)
    arm = load_arm("panda")
    progress("design an exciting motion", 0.02)
    plan, other = _motions(arm, seed)
    progress("move the arm in MuJoCo", 0.4)
    logs = record(arm, real_arm(arm, seed), (plan, other), seed)
    progress("identify", 0.5)
    result = identify(arm, logs[0], validation=logs[1])
    progress("reduce to what matters", 0.8)
    with threadpool_limits(limits=1, user_api="blas"):  # small matrices: one is faster
        small = reduce(result, result.samples)
    progress("generate C and check it", 0.85)
    code = generated_code(small, result, folder / "code")
    progress("write the model and the report", 0.95)
    files = write_files(folder, logs, result)
    progress("done", 1.0)
    return Demonstration(
        plan,
        description_errors(result),
        result,
        small,
        small.validate(result.validation_samples),
        code,
        files,
    )


def real_arm(arm: Arm, seed: int) -> Arm:
    """The arm as it really is: other inertias, and friction the description lacks."""
    from armwise.arms import Drive
    from armwise.plants import perturbed

    real = perturbed(arm, MISMATCH, seed)
    joints = tuple(
        replace(joint, drive=Drive(viscous=viscous, coulomb=coulomb))
        for joint, viscous, coulomb in zip(real.joints, VISCOUS, COULOMB, strict=True)
    )
    return replace(real, joints=joints)


def record(
    assumed: Arm, real: Arm, plans: tuple[ExcitationPlan, ...], seed: int
) -> list[Recording]:
    """Follow motions in MuJoCo under computed torque by the description's model."""
    from armwise.control import ComputedTorque
    from armwise.plants import Encoder, MujocoArm, TorqueSensor, run

    sensors = (
        Encoder(resolution=2 * np.pi / 2**18),
        TorqueSensor(noise_std=TORQUE_NOISE),
    )
    plant = MujocoArm(real, sensors=sensors, seed=seed)
    controller = ComputedTorque(assumed, 400.0, 40.0)
    return [run(plant, controller, plan) for plan in plans]


def description_errors(estimate: Estimate) -> Validation:
    """How far off the description alone is on the validation data."""
    described = np.zeros(estimate.all_parameters.size)
    described[: estimate.parameters.size] = estimate.prior_arm.parameters
    unidentified = replace(estimate, all_parameters=described)
    return unidentified.validate(estimate.validation_samples)


def generated_code(small: Estimate, whole: Estimate, folder: Path) -> CheckedCode:
    """Customised C, compiled and compared with the model.

    Of the reduced model; of the whole one where the reduced mass matrix could not be
    inverted everywhere.
    """
    from armwise.codegen import generate, load_generated
    from armwise.dynamics import Dynamics
    from armwise.errors import NotPhysical
    from armwise.programs import find_compiler

    arm, model = small.arm, "reduced"
    try:
        generated = generate(small, folder)
    except NotPhysical:
        arm, model = whole.arm, "whole"
        generated = generate(whole, folder)
    error = None
    if find_compiler() is not None:
        q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 200, arm.dof))
        expected = Dynamics(arm).inverse_dynamics(q, qd, qdd)
        computed = load_generated(folder).inverse_dynamics(q, qd, qdd)
        error = float(np.abs(computed - expected).max())
    source = next(path for path in generated.files if path.suffix == ".c")
    return CheckedCode(source, model, generated.counts["inverse_dynamics"], error)


def write_files(
    folder: Path, logs: list[Recording], result: Estimate
) -> dict[str, Path]:
    """Write the logs, the estimate, the model and the report."""
    from armwise.arms import save_arm
    from armwise.identification import write_estimate
    from armwise.recordings import write_recording
    from armwise.report import write_report

    files = {
        "report": folder / "report.html",
        "urdf": folder / "identified.urdf",
        "estimate": folder / "estimate.json",
        "log": folder / "fit.csv",
        "validation_log": folder / "validation.csv",
    }
    write_recording(measured(logs[0]), files["log"])
    write_recording(measured(logs[1]), files["validation_log"])
    write_estimate(result, files["estimate"])
    save_arm(result.arm, files["urdf"])
    write_report(result, files["report"])
    return files


def measured(recording: Recording) -> Recording:
    """Keep what sensors measured: no commands, references or truth."""
    return recording.select(
        name for name in recording.channels if name.startswith(("q_", "qd_", "tau_"))
    )


def _motions(arm: Arm, seed: int) -> tuple[ExcitationPlan, ExcitationPlan]:
    from armwise.excitation import design_excitation

    first, second = (
        design_excitation(arm, DURATION, seed + k, budget_s=budget)
        for k, budget in enumerate(BUDGET)
    )
    return first, second
