"""identify_load: what the hand holds, from a wrist sensor or from joint torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, InertialParameters, load_arm
from armwise.errors import ArgumentError
from armwise.identification.load import checks
from armwise.identification.load.consistency import nearest_physical
from armwise.identification.load.estimate import Explanation, LoadEstimate
from armwise.identification.load.generalized import Bias, Solution
from armwise.identification.load.joint_torques import load_from_torques
from armwise.identification.load.methods import Accelerations, LoadMethod
from armwise.identification.load.pose_offset import PoseOffset, solve_with_offset
from armwise.identification.load.problem import WrenchProblem, pose_wrench_problem
from armwise.identification.load.rigidity import assess_rigidity
from armwise.identification.load.static_poses import StaticPoses
from armwise.identification.load.wrist_samples import WristSamples
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float


def identify_load(
    data: Samples | WristSamples | Sequence[Samples],
    arm: Arm | str | Path | None = None,
    *,
    sensor_frame: str = "wrist",
    method: LoadMethod | None = None,
    bias: Bias = "segment",
    drift: bool = True,
    components: Sequence[str] | None = None,
    gripper: InertialParameters | LoadEstimate | None = None,
    pose_offset: PoseOffset = "none",
    bare: Samples | Sequence[Samples] | None = None,
    consistent: bool = False,
    checked: bool = True,
) -> LoadEstimate:
    """Find mass, centre of mass and inertia of what the arm holds.

    From the wrench at a wrist sensor if the data hold one, else from joint torques:
    what they exceed those of the same motion without load (`bare`), or those that an
    identified arm needs. The wrench is the one the arm exerts on the load, in the axes
    of the sensor frame: at rest the force is −m g.

    Args:
        data: Motion with a wrench or with torques; several become segments.
        arm: The arm that moved (or where to load it from); not for `WristSamples`.
        sensor_frame: Frame of the sensor, and of the result.
        method: How to set up the equations: `Accelerations()` when not given,
            `StaticPoses()`, `IntegralWindows()`, `MomentumRate()`, `OptimalFilter()`.
        bias: Whether the sensor's zero is unknown in each "segment", "common" to all,
            or "none" (it was tared, and stays so).
        drift: Whether the zero may wander within a segment.
        components: Components of the wrench that count; all that were measured.
        gripper: Body between sensor and load, in the sensor frame; taken off.
        pose_offset: Also find how the sensor is mounted: its "rotation" against the
            frame, or its whole "pose".
        bare: The same motion without load, to cancel arm and friction.
        consistent: Return the best load that can exist, rather than the best fit.
        checked: Whether to look for the usual mistakes in the data first.

    Raises:
        NotIdentifiable: If the motion does not show what is asked for.
        RecordingError: If the wrench is missing, saturated, slow or in other axes.
        ArgumentError: If the arm is missing, or something does not fit together.
    """
    arm = load_arm(arm) if isinstance(arm, str | Path) else arm
    joined = _joined(data)
    if joined.wrench is None or bare is not None:
        if isinstance(joined, WristSamples):
            raise ArgumentError("WristSamples hold no joint torques; leave out bare.")
        estimate = load_from_torques(
            joined, arm, sensor_frame, None if bare is None else _joined_samples(bare)
        )
    else:
        estimate = _from_wrench(
            joined, arm, sensor_frame, method or Accelerations(), bias, drift,
            None if components is None else tuple(components),
            gripper, pose_offset, checked,
        )  # fmt: skip
    return _physical(estimate) if consistent else estimate


def _from_wrench(
    data: Samples | WristSamples,
    arm: Arm | None,
    frame: str,
    method: LoadMethod,
    bias: Bias,
    drift: bool,
    components: tuple[str, ...] | None,
    gripper: InertialParameters | LoadEstimate | None,
    pose_offset: PoseOffset,
    checked: bool,
) -> LoadEstimate:
    problem, notes = pose_wrench_problem(data, arm, frame, components, bias, drift)
    if checked:
        _check(problem, method)
    known = _parameters_of(gripper)
    offset = None
    if pose_offset != "none":
        if not isinstance(method, Accelerations):
            raise ArgumentError("pose_offset goes with method=Accelerations() only.")
        offset = solve_with_offset(problem, pose_offset)
        solution, problem = offset.solution, offset.problem
        solution = replace(solution, values=solution.values - known)
    else:
        problem = problem.without(known)
        solution = method.solve(problem)
    estimate = _estimate(problem, solution, frame, notes)
    if isinstance(gripper, LoadEstimate):
        summed = estimate.covariance + gripper.covariance
        estimate = replace(estimate, covariance=summed)
    if offset is not None:
        estimate = replace(
            estimate, pose_offset=offset.offset, pose_offset_std=offset.offset_std
        )
    return estimate


def _check(problem: WrenchProblem, method: LoadMethod) -> None:
    if not isinstance(method, StaticPoses):
        checks.check_motion(problem)
        checks.check_rate(problem)
        checks.check_saturation(problem)
    checks.check_frame(problem)


def _estimate(
    problem: WrenchProblem,
    solution: Solution,
    frame: str,
    notes: tuple[str, ...],
) -> LoadEstimate:
    rows = problem.rows()
    rigidity = None
    if np.all(np.isfinite(solution.values)):
        rigidity = assess_rigidity(rows, solution.values, 10)
    return LoadEstimate(
        frame=frame,
        parameters=InertialParameters(solution.values),
        covariance=solution.covariance,
        degrees_of_freedom=solution.degrees_of_freedom,
        channels=problem.channels,
        bias=solution.bias,
        bias_std=solution.bias_std,
        noise=solution.noise,
        condition_number=solution.condition_number,
        rigidity=rigidity,
        explanation=_explanation(problem, solution),
        notes=(*notes, *_remarks(solution)),
    )


def _explanation(problem: WrenchProblem, solution: Solution) -> Explanation:
    rows = problem.rows()
    known = np.isfinite(solution.values)
    predicted = rows.regressor[:, :, known] @ solution.values[known]
    for part, offset in zip(rows.segments, solution.bias, strict=True):
        predicted[part] += offset
    return Explanation(problem.time, problem.channels, rows.target, predicted)


def _remarks(solution: Solution) -> tuple[str, ...]:
    mass, std = float(solution.values[0]), float(np.sqrt(solution.covariance[0, 0]))
    if np.isnan(mass):
        return ("The mass was not determined.",)
    if mass < -3.0 * std:
        return (
            f"The mass comes out negative ({mass:.3f} kg): the wrench may have the "
            "wrong sign, or a gripper was taken off that is not there.",
        )
    if mass < 3.0 * std:
        return (
            f"The mass is not told from zero ({mass:.4f} ± {std:.4f} kg): the hand may "
            "be empty, and its centre of mass means nothing.",
        )
    return ()


def _physical(estimate: LoadEstimate) -> LoadEstimate:
    if not estimate.is_complete:
        raise ArgumentError(
            "consistent=True needs all ten parameters; this method does not find the "
            "inertia."
        )
    if estimate.parameters.is_physical():
        return estimate
    defect = estimate.parameters.defect()
    information = np.linalg.inv(estimate.covariance)
    nearest = nearest_physical(estimate.parameters.vector, information)
    note = f"The best fit was moved to the nearest body that can exist: {defect}."
    return replace(estimate, parameters=nearest, notes=(*estimate.notes, note))


def _parameters_of(
    body: InertialParameters | LoadEstimate | None,
) -> Float[np.ndarray, " 10"]:
    if body is None:
        return np.zeros(10)
    found = body.parameters if isinstance(body, LoadEstimate) else body
    if not np.all(np.isfinite(found.vector)):
        raise ArgumentError(
            "The gripper's parameters are not all known; identify it in motion."
        )
    return found.vector


def _joined(
    data: Samples | WristSamples | Sequence[Samples],
) -> Samples | WristSamples:
    return data if isinstance(data, WristSamples) else _joined_samples(data)


def _joined_samples(data: Samples | Sequence[Samples]) -> Samples:
    return data if isinstance(data, Samples) else Samples.concatenate(list(data))
