"""What `armwise demo` does, step by step, on an arm that is not as described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.excitation import ExcitationPlan
    from armwise.identification import Estimate, Identification, Validation
    from armwise.recordings import Recording

Progress = Callable[[str, float], None]

DURATION = 8.0
"""Length of each motion in [s]."""

BUDGET = (8.0, 5.0)
"""Longest search for the motion to fit and the one to validate in [s]."""

MISMATCH = 0.1
"""How far the real arm's inertias are off their description, as a fraction."""

VISCOUS = (0.5, 0.6, 0.4, 0.5, 0.2, 0.2, 0.15)
COULOMB = (0.6, 0.8, 0.5, 0.6, 0.3, 0.3, 0.2)
TORQUE_NOISE = (0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.1)
"""Friction [N m s], [N m] and noise of measured torque [N m] of the real arm."""


@dataclass(frozen=True)
class Code:
    """Generated C.

    Attributes:
        source: Its main file.
        of: Which model, "reduced" or "whole".
        counts: Operations of its inverse dynamics.
        error: Largest difference to the model in [N m], compiled and called in 200
            random states; None: not evaluated, no C compiler was found.
    """

    source: Path
    of: str
    counts: dict[str, int]
    error: float | None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the demonstration found.

    Attributes:
        plan: The motion that was designed.
        described: Errors of the description's torques on data left out.
        result: What the log told.
        small: The parameters that matter.
        reduced: Errors of those on data left out.
        code: C of those.
        files: What was written.
    """

    plan: ExcitationPlan
    described: Validation
    result: Identification
    small: Estimate
    reduced: Validation
    code: Code
    files: dict[str, Path]


def demonstrate(folder: Path, seed: int, progress: Progress) -> Outcome:
    """Design, record, identify, validate, reduce, generate, report."""
    from threadpoolctl import threadpool_limits

    from armwise.arms import load_arm
    from armwise.identification import identify_recordings
    from armwise.plants.mujoco_model import import_mujoco
    from armwise.reduction import reduce

    import_mujoco()  # fail now rather than at the end
    folder.mkdir(parents=True, exist_ok=True)
    arm = load_arm("panda")
    progress("design a motion that tells most", 0.02)
    plan, other = _motions(arm, seed)
    progress("move the arm in MuJoCo", 0.4)
    logs = record(arm, real_arm(arm, seed), (plan, other), seed)
    progress("identify", 0.5)
    result = identify_recordings(arm, [logs[0]], [logs[1]])
    progress("reduce to what matters", 0.8)
    held_out = result.validated
    if held_out is None or result.validation is None:
        raise RuntimeError("nothing was validated")
    with threadpool_limits(limits=1, user_api="blas"):  # small matrices: one is faster
        small = reduce(result.estimate, result.fitted)
    progress("generate C and check it", 0.85)
    code = generated_code(small, result.estimate, folder / "code")
    progress("write the model and the report", 0.95)
    files = write_files(folder, logs, result)
    progress("done", 1.0)
    return Outcome(
        plan,
        description_errors(result),
        result,
        small,
        small.validate(held_out),
        code,
        files,
    )


def real_arm(arm: Arm, seed: int) -> Arm:
    """The arm as it really is: other inertias, and friction nobody wrote down."""
    from armwise.arms import Drive
    from armwise.plants import perturbed

    real = perturbed(arm, MISMATCH, seed)
    joints = tuple(
        replace(joint, drive=Drive(viscous=viscous, coulomb=coulomb))
        for joint, viscous, coulomb in zip(real.joints, VISCOUS, COULOMB, strict=True)
    )
    return replace(real, joints=joints)


def record(
    believed: Arm, real: Arm, plans: tuple[ExcitationPlan, ...], seed: int
) -> list[Recording]:
    """Follow motions in MuJoCo under computed torque by the description's model."""
    from armwise.control import ComputedTorque
    from armwise.plants import Encoder, MujocoArm, TorqueSensor, run

    sensors = (
        Encoder(resolution=2 * np.pi / 2**18),
        TorqueSensor(noise_std=TORQUE_NOISE),
    )
    plant = MujocoArm(real, sensors=sensors, seed=seed)
    controller = ComputedTorque(believed, 400.0, 40.0)
    return [run(plant, controller, plan) for plan in plans]


def description_errors(result: Identification) -> Validation:
    """How far off the description alone is on the data left out."""
    estimate, data = result.estimate, result.validated
    assert data is not None
    said = np.zeros(estimate.all_parameters.size)
    said[: estimate.parameters.size] = estimate.prior_arm.parameters
    return replace(estimate, all_parameters=said).validate(data)


def generated_code(small: Estimate, whole: Estimate, folder: Path) -> Code:
    """Customised C, compiled and compared with the model.

    Of the reduced model; of the whole one where the reduced mass matrix could not be
    inverted everywhere.
    """
    from armwise.codegen import generate, load_generated
    from armwise.dynamics import Dynamics
    from armwise.errors import NotPhysical
    from armwise.programs.compiler import find_compiler

    arm, of = small.arm, "reduced"
    try:
        made = generate(small, folder)
    except NotPhysical:
        arm, of = whole.arm, "whole"
        made = generate(whole, folder)
    error = None
    if find_compiler() is not None:
        q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 200, arm.dof))
        ours = Dynamics(arm).inverse_dynamics(q, qd, qdd)
        theirs = load_generated(folder).inverse_dynamics(q, qd, qdd)
        error = float(np.abs(ours - theirs).max())
    source = next(path for path in made.files if path.suffix == ".c")
    return Code(source, of, made.counts["inverse_dynamics"], error)


def write_files(
    folder: Path, logs: list[Recording], result: Identification
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
    write_estimate(result.estimate, files["estimate"])
    save_arm(result.estimate.arm, files["urdf"])
    write_report(result, files["report"])
    return files


def measured(recording: Recording) -> Recording:
    """Keep what sensors measured: no commands, references or truth."""
    kept = {
        name: channel
        for name, channel in recording.channels.items()
        if name.startswith(("q_", "qd_", "tau_"))
    }
    return replace(recording, channels=kept)


def _motions(arm: Arm, seed: int) -> tuple[ExcitationPlan, ExcitationPlan]:
    from armwise.excitation import design_excitation

    first, second = (
        design_excitation(arm, DURATION, seed + k, budget_s=budget)
        for k, budget in enumerate(BUDGET)
    )
    return first, second
