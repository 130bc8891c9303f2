"""How well motion explains torque: to find the lag and the useful band between them.

With an arm its own regressor does the explaining. Without one a rough stand-in does,
good enough to align two signals and never used for anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.smoothing import Settings, Smooth, smooth
from armwise.recordings.stretches import moving_pieces, speed_resolution
from armwise.regression import averaged_sign, low_pass

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.recordings.stretches import Stretch


@dataclass(frozen=True, eq=False)
class Motion:
    """Smoothed motion on an even time base, for explaining a torque; time first.

    Attributes:
        rate_hz: Sampling rate in [Hz].
        q, qd, qdd: Position, velocity, acceleration.
        dead_band: Speed below which a direction means nothing, per joint.
    """

    rate_hz: float
    q: Float[np.ndarray, "samples dof"]
    qd: Float[np.ndarray, "samples dof"]
    qdd: Float[np.ndarray, "samples dof"]
    dead_band: Float[np.ndarray, " dof"]


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns that explain the torque of some joints, Coulomb friction set apart.

    Attributes:
        joints: The joints whose torques are stacked, joint by joint.
        sizes: Norm of each of those torques, by which rows are divided.
        smooth: Orthonormal columns for everything smooth, rows joint by joint.
        speeds: The speed whose direction friction follows, per friction column.
        dead_bands: Speed below which that direction means nothing.
        shares: How each of those columns enters each joint's torque.
    """

    joints: tuple[int, ...]
    sizes: Float[np.ndarray, " joints"]
    smooth: Float[np.ndarray, "rows columns"]
    speeds: Float[np.ndarray, "samples frictions"]
    dead_bands: Float[np.ndarray, " frictions"]
    shares: Float[np.ndarray, "joints frictions"]


def bases_for(arm: Arm | None, motion: Motion, torque: np.ndarray) -> list[Basis]:
    """Choose what explains a torque: the arm's regressor, or the rough stand-in."""
    sizes = np.maximum(np.linalg.norm(torque, axis=0), 1e-12)
    return _rough(motion, sizes) if arm is None else _exact(arm, motion, sizes)


def _exact(arm: Arm, motion: Motion, sizes: np.ndarray) -> list[Basis]:
    """Explain all torques together by the arm's own regressor."""
    from armwise.dynamics import Dynamics

    regressor = np.asarray(Dynamics(arm).regressor(motion.q, motion.qd, motion.qdd))
    names = arm.parameter_names
    coulomb = [i for i, name in enumerate(names) if name.endswith(".coulomb")]
    smooth = np.delete(regressor, coulomb, axis=2)
    weights = np.concatenate(
        [arm.coupling_matrix, *(c.weights[None] for c in arm.couplings)]
    )
    scaled = (smooth / sizes[:, None]).transpose(1, 0, 2)
    return [
        Basis(
            tuple(range(arm.dof)),
            sizes,
            _orthonormal(scaled.reshape(-1, smooth.shape[2])),
            motion.qd @ weights.T,
            np.abs(weights) @ motion.dead_band,
            weights.T,
        )
    ]


def _rough(motion: Motion, sizes: np.ndarray) -> list[Basis]:
    """Explain each joint's torque by itself, knowing nothing of the arm."""
    q, qd, qdd = motion.q, motion.qd, motion.qdd
    n = q.shape[1]
    sums = np.cumsum(q, axis=1)
    angles = np.concatenate([q, sums[:, 1:], sums[:, 1:] - q[:, :1]], axis=1)
    columns = [np.ones((len(q), 1)), qd, qdd, np.sin(angles), np.cos(angles)]
    columns += [qdd * np.cos(q[:, [j]]) for j in range(n)]
    smooth = np.concatenate(columns, axis=1)
    smooth = _orthonormal(smooth[:, : max(4, len(q) // 10)])
    return [
        Basis(
            (j,),
            sizes[[j]],
            smooth,
            qd[:, [j]],
            motion.dead_band[[j]],
            np.ones((1, 1)),
        )
        for j in range(n)
    ]


@dataclass(frozen=True, eq=False)
class Explanation:
    """A basis with friction as one low-pass shows it: all the motion can explain.

    Attributes:
        joints: The joints whose torques are stacked, joint by joint.
        sizes: Norm of each of those torques, by which rows are divided.
        space: Orthonormal columns.
    """

    joints: tuple[int, ...]
    sizes: Float[np.ndarray, " joints"]
    space: Float[np.ndarray, "rows columns"]


def with_friction(
    bases: list[Basis], rate_hz: float, bandwidth_hz: float
) -> list[Explanation]:
    """Add Coulomb friction, seen through a low-pass of this bandwidth [Hz]."""
    explanations = []
    for basis in bases:
        steps = _friction_columns(basis, rate_hz, bandwidth_hz)
        steps = steps - basis.smooth @ (basis.smooth.T @ steps)
        space = np.concatenate([basis.smooth, _orthonormal(steps)], axis=1)
        explanations.append(Explanation(basis.joints, basis.sizes, space))
    return explanations


def residuals(
    explanations: list[Explanation], torque: Float[np.ndarray, "samples joints"]
) -> Float[np.ndarray, "samples joints"]:
    """Return what the motion leaves of the torque, as shares of each joint's size."""
    left = np.empty_like(torque)
    for part in explanations:
        target = (torque[:, list(part.joints)] / part.sizes).T.reshape(-1)
        rest = target - part.space @ (part.space.T @ target)
        left[:, list(part.joints)] = rest.reshape(len(part.joints), -1).T
    return left


def _friction_columns(basis: Basis, rate_hz: float, bandwidth_hz: float) -> np.ndarray:
    """Return the low-passed directions, stacked joint by joint."""
    blocks = []
    for k in range(basis.speeds.shape[1]):
        sign = averaged_sign(basis.speeds[:, k], float(basis.dead_bands[k]))
        seen = low_pass(sign, bandwidth_hz, rate_hz, "constant")
        blocks.append(np.outer(basis.shares[:, k] / basis.sizes, seen).reshape(-1))
    return np.stack(blocks, axis=1)


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns' span."""
    scale = np.linalg.norm(columns, axis=0)
    kept = columns[:, scale > 1e-12 * max(scale.max(), 1e-300)]
    if not kept.shape[1]:
        return kept
    kept = kept / np.linalg.norm(kept, axis=0)
    values, vectors = np.linalg.eigh(kept.T @ kept)
    strong = values > 1e-10 * values[-1]
    basis: np.ndarray = kept @ (vectors[:, strong] / np.sqrt(values[strong]))
    return basis


# The torque of a recording, and what may explain it.

ROWS = 3000
"""Rows that are enough to find a lag and a band."""


def problem_of(
    stretch: Stretch, settings: Settings, arm: Arm | None
) -> tuple[Smooth, list[Basis], float] | None:
    """Set up the explanation of the torque; None if there is too little to go by."""
    if not stretch.tau:
        return None
    thin = decimation_for(settings, stretch.rate_hz)
    data = smooth(stretch, replace(settings, decimation=thin))
    rate = stretch.rate_hz / thin
    piece = None if data is None else _longest_moving(data, rate)
    if piece is None:
        return None
    motion = Motion(rate, piece.q, piece.qd, piece.qdd, speed_resolution(piece.qd))
    bases = bases_for(arm, motion, piece.tau)
    if sum(basis.smooth.shape[1] for basis in bases) * 5 > piece.tau.size:
        return None
    return piece, bases, rate


def decimation_for(settings: Settings, rate_hz: float) -> int:
    """Keep ten samples a period of the cut-off: more say nothing new."""
    if not np.isfinite(settings.cutoff_hz):
        return 1
    half = int(rate_hz / (20.0 * settings.cutoff_hz))
    return 2 * half if half else max(1, int(rate_hz / (10.0 * settings.cutoff_hz)))


def _longest_moving(data: Smooth, rate_hz: float) -> Smooth | None:
    pieces = moving_pieces(data.qd, rate_hz)
    if not pieces:
        return None
    a, b = max(pieces, key=lambda piece: piece[1] - piece[0])
    spare = max(b - a - ROWS, 0) // 2
    rows = slice(a + spare, b - spare)
    if rows.stop - rows.start < 64:
        return None
    return Smooth(
        *(
            getattr(data, name)[rows]
            for name in ("time", "q", "qd", "qdd", "tau", "wrench")
        )
    )
