"""identify_load: what the hand holds, from a wrist sensor or from joint torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, InertialParameters, load_arm
from armwise.errors import ArgumentError, NotConverged
from armwise.loads import checks
from armwise.loads.estimate import SCALE, Explanation, LoadEstimate
from armwise.loads.generalized import Bias, Solution
from armwise.loads.joint_torques import load_from_torques
from armwise.loads.methods import Accelerations, LoadMethod
from armwise.loads.pose_offset import PoseOffset, solve_with_offset
from armwise.loads.problem import WrenchProblem, WristSamples, pose_wrench_problem
from armwise.loads.rigidity import assess_rigidity
from armwise.loads.static_poses import StaticPoses
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float


# The nearest load that can exist.

LEAST = 1e-6
"""Smallest eigenvalue of the scaled pseudo-inertia, as a fraction of its trace."""


def nearest_physical(
    values: Float[np.ndarray, " 10"], information: Float[np.ndarray, "10 10"]
) -> InertialParameters:
    """Return the physical body that fits the data best.

    Minimises (φ − φ̂)ᵀ Λ (φ − φ̂) with the pseudo-inertia of φ positive definite: a
    small semidefinite program (Wensing, Kim and Slotine 2018), solved by Clarabel.

    Args:
        values: The unconstrained estimate φ̂.
        information: Λ, its inverse covariance.
    """
    weights = information * np.outer(SCALE, SCALE)
    weights = weights / float(np.max(np.diag(weights)))
    cone, shift = _cone(values / SCALE)
    found = _solve(weights, -weights @ (values / SCALE), cone, shift)
    return InertialParameters(found * SCALE)


def _cone(start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the scaled pseudo-inertia's upper triangle, and its least eigenvalue."""
    units = [InertialParameters(unit).pseudo_inertia for unit in np.eye(10) * SCALE]
    lengths = np.array([0.1, 0.1, 0.1, 1.0])
    pseudo = np.stack(units) / np.outer(lengths, lengths)
    rows, columns = np.triu_indices(4)
    order = np.lexsort((rows, columns))
    rows, columns = rows[order], columns[order]
    gain = np.where(rows == columns, 1.0, np.sqrt(2.0))
    trace = float(np.trace(np.tensordot(start, pseudo, axes=1)))
    shift = LEAST * max(trace, 1e-6) * np.eye(4)[rows, columns]
    return pseudo[:, rows, columns] * gain, shift


def _solve(
    weights: np.ndarray, slope: np.ndarray, cone: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    import clarabel
    from scipy.sparse import csc_matrix

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        csc_matrix(np.triu(weights)),
        slope,
        csc_matrix(-cone.T),
        -shift,
        [clarabel.PSDTriangleConeT(4)],
        settings,
    )
    answer = solver.solve()
    if "Solved" not in str(answer.status):
        raise NotConverged(
            f"No physical load was found near the estimate ({answer.status}). Look at "
            "the data, or identify without consistent=True."
        )
    return np.array(answer.x)


# identify_load: what the hand holds, from a wrist sensor or from joint torques.


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

    From the wrench at a wrist sensor, the one the arm exerts on the load in the axes of
    the sensor frame (at rest the force is −m g); without a wrench, from joint torques:
    what they exceed those of the same motion without load (`bare`), or an identified
    arm's.

    Args:
        data: Motion with a wrench or with torques; several become segments.
        arm: The arm that moved; not for `WristSamples`, nor if the data carry it.
        sensor_frame: Frame of the sensor, and of the result.
        method: `Accelerations()`, `StaticPoses()`, `IntegralWindows()`,
            `MomentumRate()`, `OptimalFilter()` or `LeastSquares()`.
        bias: Whether the sensor's zero is unknown in each "segment", "common" to all,
            or "none" (it was tared, and stays so).
        drift: Whether the zero may wander within a segment.
        components: Components of the wrench that count; all that were measured.
        gripper: Body between sensor and load, in the sensor frame; taken off.
        pose_offset: Also find the sensor's "rotation" against the frame, or its "pose".
        bare: The same motion without load, to cancel arm and friction.
        consistent: Return the best load that can exist, rather than the best fit.
        checked: Whether to look for the usual mistakes in the data first.

    Raises:
        NotIdentifiable: If the motion does not show what is asked for.
        RecordingError: If the wrench is missing, saturated, slow or in other axes.
    """
    arm = load_arm(arm) if isinstance(arm, str | Path) else arm
    chosen = None if components is None else tuple(components)
    wanted = _Wanted(
        sensor_frame, method or Accelerations(), bias, drift, chosen, gripper,
        pose_offset, checked,
    )  # fmt: skip
    estimate = _found(_joined(data), arm, bare, wanted)
    return _physical(estimate) if consistent else estimate


@dataclass(frozen=True, eq=False)
class _Wanted:
    """What was asked of `identify_load`."""

    frame: str
    method: LoadMethod
    bias: Bias
    drift: bool
    components: tuple[str, ...] | None
    gripper: InertialParameters | LoadEstimate | None
    pose_offset: PoseOffset
    checked: bool


def _found(
    data: Samples | WristSamples,
    arm: Arm | None,
    bare: Samples | Sequence[Samples] | None,
    wanted: _Wanted,
) -> LoadEstimate:
    if data.wrench is not None and bare is None:
        return _from_wrench(data, arm, wanted)
    if isinstance(data, WristSamples):
        raise ArgumentError("WristSamples hold no joint torques; leave out bare.")
    empty = None if bare is None else _joined_samples(bare)
    return load_from_torques(data, arm, wanted.frame, empty)


def _from_wrench(
    data: Samples | WristSamples, arm: Arm | None, wanted: _Wanted
) -> LoadEstimate:
    problem, notes = pose_wrench_problem(
        data, arm, wanted.frame, wanted.components, wanted.bias, wanted.drift
    )
    if wanted.checked:
        _check(problem, wanted.method)
    known = _parameters_of(wanted.gripper)
    offset = None
    if wanted.pose_offset != "none":
        if not isinstance(wanted.method, Accelerations):
            raise ArgumentError("pose_offset goes with method=Accelerations() only.")
        offset = solve_with_offset(problem, wanted.pose_offset)
        problem = offset.problem
        solution = replace(offset.solution, values=offset.solution.values - known)
    else:
        problem = problem.without(known)
        solution = wanted.method.solve(problem)
    estimate = _estimate(problem, solution, wanted.frame, notes)
    if isinstance(wanted.gripper, LoadEstimate):
        summed = estimate.covariance + wanted.gripper.covariance
        estimate = replace(estimate, covariance=summed)
    if offset is None:
        return estimate
    return replace(
        estimate, pose_offset=offset.offset, pose_offset_std=offset.offset_std
    )


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
