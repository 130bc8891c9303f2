"""A load from joint torques: what they exceed those of the bare arm."""

from __future__ import annotations

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters, inertial_transform
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, RecordingError
from armwise.loads.estimate import Explanation, LoadEstimate
from armwise.loads.generalized import Solution, solve_generalized
from armwise.loads.noise_spectrum import Rows, even_rate_hz
from armwise.loads.problem import require_arm
from armwise.loads.rigidity import assess_rigidity
from armwise.recordings import Samples

# The same motion done twice: found again in time, and put on one time base.

_SEARCH = 0.5
"""How far either way the clocks of two runs may be apart in [s]."""


def repeated(data: Samples, other: Samples) -> tuple[Samples, Samples]:
    """Return both runs at the same instants of the motion.

    Clocks need not agree: each segment is shifted to where the positions fit best.

    Raises:
        ArgumentError: If it is not the same motion.
    """
    if len(data.starts) != len(other.starts) or data.dof != other.dof:
        raise ArgumentError(
            f"The loaded motion has {len(data.starts)} segments of {data.dof} joints, "
            f"the bare one {len(other.starts)} of {other.dof}; they must be the same "
            "motion."
        )
    pairs = [
        _aligned(data[here], other[there])
        for here, there in zip(data.segments, other.segments, strict=True)
    ]
    mine = Samples.concatenate([pair[0] for pair in pairs])
    theirs = Samples.concatenate([pair[1] for pair in pairs])
    _require_same_motion(mine, theirs)
    return mine, theirs


def _aligned(data: Samples, other: Samples) -> tuple[Samples, Samples]:
    shift = _best_shift(data, other)
    inside = (data.time + shift >= other.time[0]) & (
        data.time + shift <= other.time[-1]
    )
    kept = np.flatnonzero(inside)
    if kept.size < 10:
        raise ArgumentError(
            "The bare motion and the loaded one do not overlap in time; they must be "
            "the same motion, begun alike."
        )
    mine = data[int(kept[0]) : int(kept[-1]) + 1]
    at = mine.time + shift

    def there(values: np.ndarray) -> np.ndarray:
        columns = [np.interp(at, other.time, column) for column in values.T]
        return np.stack(columns, axis=1)

    return mine, Samples(
        time=mine.time,
        q=there(other.q),
        qd=there(other.qd),
        qdd=there(other.qdd),
        tau=there(other.tau),
        preparation=other.preparation,
        arm=other.arm,
    )


def _best_shift(data: Samples, other: Samples) -> float:
    """Time [s] to add to this run's clock to read the other's."""
    coarse = np.linspace(-_SEARCH, _SEARCH, 101)
    best = min(
        (_apart(data, other, base + s), base + s)
        for base in (0.0, float(other.time[0] - data.time[0]))
        for s in coarse
    )[1]
    for width in (0.01, 0.001):
        fine = best + np.linspace(-width, width, 21)
        best = min((_apart(data, other, float(s)), float(s)) for s in fine)[1]
    return best


def _apart(data: Samples, other: Samples, shift: float) -> float:
    """Mean squared distance of the positions, where both were recorded."""
    rows = slice(None, None, max(1, len(data) // 300))
    at = data.time[rows] + shift
    inside = (at >= other.time[0]) & (at <= other.time[-1])
    if inside.mean() < 0.5:
        return float("inf")
    total = 0.0
    for mine, theirs in zip(data.q[rows][inside].T, other.q.T, strict=True):
        total += float(np.mean((mine - np.interp(at[inside], other.time, theirs)) ** 2))
    return total


def _require_same_motion(data: Samples, other: Samples) -> None:
    apart = np.sqrt(np.mean((data.q - other.q) ** 2, axis=0))
    reach = np.sqrt(np.mean((data.q - data.q.mean(axis=0)) ** 2, axis=0))
    worst = int(np.argmax(apart - 0.1 * reach))
    if apart[worst] > 0.1 * reach[worst] + 0.02:
        raise ArgumentError(
            f"The bare motion is not the loaded one: joint {worst + 1} differs by "
            f"{apart[worst]:.3f} rad (root mean square). Repeat the same motion, from "
            "the same start, or leave out bare and give an identified arm."
        )


# A load from joint torques: what they exceed those of the bare arm.

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
    own = dynamics.regressor(data.q, data.qd, data.qdd)[:, :, known.layout.link(link)]
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
