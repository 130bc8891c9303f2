"""A sensor that is not mounted quite as its frame says: find by how much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import rotation_about
from armwise.loads.generalized import Solution, solve_generalized
from armwise.loads.problem import WrenchProblem

if TYPE_CHECKING:
    from jaxtyping import Float


PoseOffset = Literal["none", "rotation", "pose"]

_STEPS = np.array([1e-5] * 3 + [1e-5] * 3)


@dataclass(frozen=True, eq=False)
class OffsetSolution:
    """A solution, and where the sensor really sits.

    Attributes:
        solution: For the load, in the axes of the sensor as it is mounted.
        offset: Rotation vector [rad] and, if asked for, translation [m] from the named
            frame to the sensor.
        offset_std: Its standard deviation.
        problem: The problem, its motion that of the sensor as mounted.
    """

    solution: Solution
    offset: Float[np.ndarray, " _"]
    offset_std: Float[np.ndarray, " _"]
    problem: WrenchProblem


def solve_with_offset(
    problem: WrenchProblem, kind: PoseOffset, iterations: int = 8
) -> OffsetSolution:
    """Find the load and the sensor's pose together, by Gauss–Newton.

    The wrench is that of the load at the pose the sensor really has: linear in the
    load, and made linear in the few numbers of the pose.
    """
    size = 3 if kind == "rotation" else 6
    offset = np.zeros(size)
    values = solve_generalized(problem.rows(), problem.bias, problem.has_drift).values
    for _ in range(iterations):
        moved = replace(problem, frame_motion=moved_frame(problem.frame_motion, offset))
        slopes = _slopes(problem, offset, np.nan_to_num(values))
        rows = moved.rows()
        chosen = [i for i, n in enumerate(_NAMES) if n in problem.channels]
        solution = solve_generalized(
            rows.with_columns(slopes[:, chosen]), problem.bias, problem.has_drift
        )
        step, values = solution.values[10:], solution.values[:10]
        offset = offset + step
        std = np.sqrt(np.diag(solution.covariance)[10:])
        if np.all(np.abs(step) < 0.01 * std + 1e-12):
            break
    moved = replace(problem, frame_motion=moved_frame(problem.frame_motion, offset))
    return OffsetSolution(_load_part(solution), offset, std, moved)


def moved_frame(
    motion: Float[np.ndarray, "samples 3 3"], offset: Float[np.ndarray, " _"]
) -> Float[np.ndarray, "samples 3 3"]:
    """Motion of a frame that is turned and shifted from the given one."""
    a, omega, alpha = np.moveaxis(motion, 1, 0)
    if offset.size > 3:
        d = offset[3:]
        a = a + np.cross(alpha, d) + np.cross(omega, np.cross(omega, d))
    angle = float(np.linalg.norm(offset[:3]))
    R = rotation_about(offset[:3] / angle, angle) if angle > 0 else np.eye(3)
    return np.stack([a @ R, omega @ R, alpha @ R], axis=1)


_NAMES = ("fx", "fy", "fz", "tx", "ty", "tz")


def _slopes(
    problem: WrenchProblem, offset: np.ndarray, values: np.ndarray
) -> Float[np.ndarray, "samples 6 _"]:
    """How the wrench changes with each number of the pose."""
    columns = []
    for k in range(offset.size):
        step = np.zeros(offset.size)
        step[k] = _STEPS[k]
        ahead, behind = (
            replace(
                problem, frame_motion=moved_frame(problem.frame_motion, offset + s)
            ).regressor
            @ values
            for s in (step, -step)
        )
        columns.append((ahead - behind) / (2.0 * _STEPS[k]))
    return np.stack(columns, axis=2)


def _load_part(solution: Solution) -> Solution:
    """Leave the pose out; what it costs the load's certainty stays in."""
    return replace(
        solution,
        values=solution.values[:10],
        covariance=solution.covariance[:10, :10],
        degrees_of_freedom=solution.degrees_of_freedom[:10],
        information=np.linalg.pinv(solution.covariance[:10, :10])
        if np.all(np.isfinite(solution.covariance))
        else solution.information[:10, :10],
    )
