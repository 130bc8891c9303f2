"""Load from joint torques: their excess over the bare arm's, measured or modelled."""

from __future__ import annotations

import numpy as np

from armwise.arms import BASE, Arm, inertial_transform
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, RecordingError
from armwise.loads.estimate import LoadEstimate, estimate_of
from armwise.loads.generalized_least_squares import solve_generalized
from armwise.loads.noise_spectrum import RegressionRows, even_rate_hz
from armwise.loads.problem import require_arm
from armwise.loads.rigidity import assess_rigidity
from armwise.recordings import Samples

_LEAST_SPEED = 0.05
"""Root-mean-square speed of a joint beside the fastest joint's, below which it has no
friction column: it hardly moves, and its direction is that of noise."""


def load_from_torques(
    data: Samples, arm: Arm | None, frame: str, bare: Samples | None
) -> LoadEstimate:
    """Find a load by the torques that it adds to the joints'.

    With `bare`, the same motion without load: the torques are subtracted instant by
    instant, so that friction, which depends on the motion, cancels. Where the two
    motions differ, the arm's own model corrects for it, and a friction column where
    one run has already reversed and the other has not. Without `bare`, the arm has to
    be an identified one, and a Coulomb, a viscous and a constant torque per joint are
    estimated along with the load.

    Raises:
        RecordingError: If torques are missing.
        ArgumentError: If the two motions are not the same.
    """
    arm = require_arm(data, arm)
    _require_torque(data, "These samples")
    link, T_link_frame = arm.find_frame(frame)
    if link == BASE:
        raise ArgumentError(f"{frame!r} is fixed to the base and carries nothing.")
    if bare is not None:
        _require_torque(bare, "The bare samples")
        data, bare = align_runs(data, bare)
    dynamics = Dynamics(arm)
    own = dynamics.regressor(data.q, data.qd, data.qdd)[:, :, arm.layout.link(link)]
    load = own @ inertial_transform(T_link_frame)
    target = data.tau - dynamics.inverse_dynamics(data.q, data.qd, data.qdd)
    friction = [data.direction(), data.qd]
    if bare is not None:
        # Friction, and anything else that the model lacks, is the same in both.
        target -= bare.tau - dynamics.inverse_dynamics(bare.q, bare.qd, bare.qdd)
        friction = [data.direction() - bare.direction(), data.qd - bare.qd]
    rows = RegressionRows(
        regressor=np.concatenate([load, _per_joint(friction, _moves(data))], axis=2),
        target=target,
        starts=data.starts,
        rate_hz=even_rate_hz(data.time, data.starts),
        channels=arm.coordinate_names,
        highest_hz=data.preparation.cutoff_hz or np.inf,
    )
    solution = solve_generalized(rows)
    rigidity = assess_rigidity(rows, solution.values)
    return estimate_of(rows, data.time, solution, frame, rigidity)


def _moves(data: Samples) -> np.ndarray:
    speed = np.sqrt(np.mean(data.qd**2, axis=0))
    moves: np.ndarray = speed > _LEAST_SPEED * max(float(speed.max()), 1e-9)
    return moves


def _per_joint(parts: list[np.ndarray], moves: np.ndarray) -> np.ndarray:
    """One column per joint and part, without those that are zero throughout."""
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


# The same motion recorded twice, on one time base.

_LARGEST_SHIFT = 0.5
"""Difference of the two clocks in [s] to search, either way: about what starting both
recordings by hand leaves."""


def align_runs(data: Samples, bare: Samples) -> tuple[Samples, Samples]:
    """Return both runs at the same instants of the motion.

    Clocks need not agree: each segment is shifted to where the positions fit best.

    Raises:
        ArgumentError: If it is not the same motion.
    """
    if len(data.starts) != len(bare.starts) or data.dof != bare.dof:
        raise ArgumentError(
            f"The loaded motion has {len(data.starts)} segments of {data.dof} joints, "
            f"the bare one {len(bare.starts)} of {bare.dof}; they must be the same "
            "motion."
        )
    pairs = [
        _align_segment(data[loaded], bare[empty])
        for loaded, empty in zip(data.segments, bare.segments, strict=True)
    ]
    data = Samples.concatenate([pair[0] for pair in pairs])
    bare = Samples.concatenate([pair[1] for pair in pairs])
    _require_same_motion(data, bare)
    return data, bare


def _align_segment(data: Samples, bare: Samples) -> tuple[Samples, Samples]:
    shift = _best_shift(data, bare)
    at = data.time + shift
    inside = np.flatnonzero((at >= bare.time[0]) & (at <= bare.time[-1]))
    if inside.size < 10:
        raise ArgumentError(
            "The bare motion and the loaded one do not overlap in time; they must be "
            "the same motion, begun alike."
        )
    data = data[int(inside[0]) : int(inside[-1]) + 1]
    at = data.time + shift

    def resampled(values: np.ndarray) -> np.ndarray:
        columns = [np.interp(at, bare.time, column) for column in values.T]
        return np.stack(columns, axis=1)

    return data, Samples(
        time=data.time,
        q=resampled(bare.q),
        qd=resampled(bare.qd),
        qdd=resampled(bare.qdd),
        tau=resampled(bare.tau),
        preparation=bare.preparation,
        arm=bare.arm,
    )


def _best_shift(data: Samples, bare: Samples) -> float:
    """Time [s] to add to the loaded run's clock for that of the bare one."""
    # Clocks either agree, or both start with the recording: search around both.
    coarse = np.linspace(-_LARGEST_SHIFT, _LARGEST_SHIFT, 101)
    best = min(
        (_distance(data, bare, base + s), base + s)
        for base in (0.0, float(bare.time[0] - data.time[0]))
        for s in coarse
    )[1]
    for width in (0.01, 0.001):  # one step of the grid before, in tenths
        fine = best + np.linspace(-width, width, 21)
        best = min((_distance(data, bare, float(s)), float(s)) for s in fine)[1]
    return best


def _distance(data: Samples, bare: Samples, shift: float) -> float:
    """Mean squared distance of the positions, where both were recorded."""
    rows = slice(None, None, max(1, len(data) // 300))  # 300 points show a shift
    at = data.time[rows] + shift
    inside = (at >= bare.time[0]) & (at <= bare.time[-1])
    if inside.mean() < 0.5:  # a short overlap always fits somewhere
        return float("inf")
    columns = [np.interp(at[inside], bare.time, column) for column in bare.q.T]
    difference = data.q[rows][inside] - np.stack(columns, axis=1)
    return float(np.sum(np.mean(difference**2, axis=0)))


def _require_same_motion(data: Samples, bare: Samples) -> None:
    difference = np.sqrt(np.mean((data.q - bare.q) ** 2, axis=0))
    # A tenth of the joint's own motion, and 0.02 rad for joints that hardly move: the
    # model corrects for what a servo's tracking error makes the two differ by.
    allowed = 0.1 * data.q.std(axis=0) + 0.02
    worst = int(np.argmax(difference - allowed))
    if difference[worst] > allowed[worst]:
        raise ArgumentError(
            f"The bare motion is not the loaded one: joint {worst + 1} differs by "
            f"{difference[worst]:.3f} rad (root mean square). Repeat the same motion, "
            "from the same start, or leave out bare and give an identified arm."
        )
