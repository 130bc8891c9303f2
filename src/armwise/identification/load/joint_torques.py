"""A load from joint torques: what they exceed those of the bare arm."""

from __future__ import annotations

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters
from armwise.arms.inertia import inertial_transform
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, RecordingError
from armwise.identification.load.estimate import Explanation, LoadEstimate
from armwise.identification.load.generalized import Solution, solve_generalized
from armwise.identification.load.problem import require_arm
from armwise.identification.load.repetition import repeated
from armwise.identification.load.rigidity import assess_rigidity
from armwise.identification.load.rows import Rows, even_rate_hz
from armwise.recordings import Samples

_SLOW = 0.05
"""Fraction of a joint's usual speed below which friction's direction is not sure."""


def load_from_torques(
    data: Samples, arm: Arm | None, frame: str, bare: Samples | None
) -> LoadEstimate:
    """Find a load by what it adds to the joints' torques.

    With `bare`, the same motion without load: the torques are subtracted instant by
    instant, so that friction, which depends on the motion, cancels; what the two
    motions differ in is made up for by the arm's own model, and by friction where one
    run has already turned and the other has not. Without it, the arm has to be an
    identified one, and a Coulomb, a viscous and a constant torque per joint are found
    along with the load.

    Raises:
        RecordingError: If torques are missing.
        ArgumentError: If the two motions are not the same.
    """
    known = require_arm(data, arm)
    _require_torque(data, "These samples")
    link, T_link_frame = known.place(frame)
    if link == BASE:
        raise ArgumentError(f"{frame!r} is fixed to the base and carries nothing.")
    if bare is not None:
        _require_torque(bare, "The bare samples")
        data, bare = repeated(data, bare)
    dynamics = Dynamics(known)
    columns = slice(10 * link, 10 * link + 10)
    own = dynamics.regressor(data.q, data.qd, data.qdd)[:, :, columns]
    load = own @ inertial_transform(T_link_frame)
    target = data.tau - dynamics.inverse_dynamics(data.q, data.qd, data.qdd)
    friction = [data.direction(), data.qd]
    if bare is not None:
        # Friction, and whatever else the model does not know, is the same in both.
        target -= bare.tau - dynamics.inverse_dynamics(bare.q, bare.qd, bare.qdd)
        friction = [data.direction() - bare.direction(), data.qd - bare.qd]
    rows = Rows(
        regressor=np.concatenate([load, _per_joint(friction, _moves(data))], axis=2),
        target=target,
        starts=data.starts,
        rate_hz=even_rate_hz(data.time, data.starts),
        channels=known.coordinate_names,
        highest_hz=data.preparation.cutoff_hz or np.inf,
    )
    return _estimate(rows, solve_generalized(rows), frame, data.time)


def _moves(data: Samples) -> np.ndarray:
    speed = np.sqrt(np.mean(data.qd**2, axis=0))
    moves: np.ndarray = speed > _SLOW * max(float(speed.max()), 1e-9)
    return moves


def _per_joint(parts: list[np.ndarray], moves: np.ndarray) -> np.ndarray:
    """Let each joint have its own coefficient of every part; drop empty columns."""
    samples, dof = parts[0].shape
    columns = []
    for part in parts:
        for j in np.flatnonzero(moves):
            if np.sqrt(np.mean(part[:, j] ** 2)) > 1e-9:
                column = np.zeros((samples, dof))
                column[:, j] = part[:, j]
                columns.append(column)
    if not columns:
        return np.zeros((samples, dof, 0))
    return np.stack(columns, axis=2)


def _require_torque(samples: Samples, what: str) -> None:
    if not samples.has_torque:
        raise RecordingError(
            f"{what} hold neither a wrench nor joint torques; a load cannot be found "
            "from motion alone."
        )


def _estimate(
    rows: Rows, solution: Solution, frame: str, time: np.ndarray
) -> LoadEstimate:
    known = np.isfinite(solution.values)
    predicted = rows.regressor[:, :, known] @ solution.values[known]
    for part, offset in zip(rows.segments, solution.bias, strict=True):
        predicted[part] += offset
    return LoadEstimate(
        frame=frame,
        parameters=InertialParameters(solution.values[:10]),
        covariance=solution.covariance[:10, :10],
        degrees_of_freedom=solution.degrees_of_freedom[:10],
        channels=rows.channels,
        bias=solution.bias,
        bias_std=solution.bias_std,
        noise=solution.noise,
        condition_number=solution.condition_number,
        rigidity=assess_rigidity(rows, solution.values, len(solution.values)),
        explanation=Explanation(time, rows.channels, rows.target, predicted),
    )
