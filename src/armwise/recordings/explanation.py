"""How well motion explains torque: to find the lag and the useful band between them.

With an arm its own regressor does the explaining. Without one a rough stand-in does,
good enough to align two signals and never used for anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.filters import averaged_sign, low_pass
from armwise.recordings.spectra import band_powers

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm

BLOCKS = 10
"""Stretches of time left out in turn to tell how sure a lag is."""

EXPLAINED = 0.4
"""Largest residual, as a share of the torque's amplitude, in a band worth keeping."""


CLEARLY = 0.7
"""Share to which an earlier low-pass must bring the residual's power to be believed."""


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


@dataclass(frozen=True)
class Lag:
    """A delay of the torque behind the motion.

    Attributes:
        seconds: The delay in [s].
        std: Its standard error in [s], by leaving out stretches of time.
    """

    seconds: float
    std: float


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


def find_lag(
    bases: list[Basis],
    torque_at: Callable[[float], np.ndarray],
    rate_hz: float,
    bandwidth_hz: float,
    longest: float = 0.1,
) -> Lag:
    """Find the delay of the torque that lets the motion explain it best.

    Args:
        bases: What explains the torque.
        torque_at: Gives the torque read so many seconds later.
        rate_hz: Sampling rate of both in [Hz].
        bandwidth_hz: Low-pass through which Coulomb friction is seen in [Hz].
        longest: Largest delay looked for, either way, in [s].
    """
    explanations = with_friction(bases, rate_hz, bandwidth_hz)

    def powers(lag: float) -> np.ndarray:
        left = residuals(explanations, torque_at(lag))
        blocks = np.array_split(left**2, BLOCKS)
        return np.array([block.sum(axis=0) for block in blocks])

    coarse = np.linspace(-longest, longest, 41)
    scores = [_score(powers(lag).sum(axis=0)) for lag in coarse]
    centre = coarse[np.argmin(scores)]
    step = coarse[1] - coarse[0]
    fine = centre + step * np.linspace(-1.0, 1.0, 9)
    table = np.stack([powers(lag) for lag in fine])
    total = table.sum(axis=1)
    best = _valley(fine, _score(total))
    others = [_valley(fine, _score(total - table[:, block])) for block in range(BLOCKS)]
    spread = np.sqrt((BLOCKS - 1) * np.var(others))
    return Lag(float(best), float(spread))


def find_bandwidth(
    bases: list[Basis], torque: np.ndarray, rate_hz: float, highest_hz: float
) -> float:
    """Find how far the torque was low-passed before it was recorded, in [Hz].

    Coulomb friction turns over in a step; its rounding tells the filter. The highest
    value is returned unless a lower one explains the torque clearly better.
    """
    tried = highest_hz / 2.0 ** np.arange(0.0, 6.0, 0.5)
    tried = tried[tried > 4.0 * rate_hz / len(torque)]
    if not tried.size:
        return highest_hz
    seen = [residuals(with_friction(bases, rate_hz, b), torque) for b in tried]
    powers = np.stack([(left**2).sum(axis=0) for left in seen])
    scores = _score(powers)
    best = int(np.argmin(scores))
    better = np.median(powers[best] / np.maximum(powers[0], 1e-300))
    if better > CLEARLY:
        return highest_hz
    return float(2.0 ** _valley(np.log2(tried), scores))


def explained_band(
    left: Float[np.ndarray, "samples joints"],
    torque: Float[np.ndarray, "samples joints"],
    rate_hz: float,
    highest_hz: float,
) -> float:
    """Tell up to which frequency the motion explains the torque, in [Hz].

    The residual's amplitude stays below half the torque's up to there, in the median
    over the joints.
    """
    scaled = torque / np.maximum(np.linalg.norm(torque, axis=0), 1e-12)
    ratios = []
    for rest, whole in zip(left.T, scaled.T, strict=True):
        centres, power = band_powers(whole, rate_hz, 2.0)
        ratios.append(band_powers(rest, rate_hz, 2.0)[1] / np.maximum(power, 1e-300))
    ratio = np.median(ratios, axis=0)
    strongest = int(np.argmin(np.where(centres < 0.25 * highest_hz, ratio, np.inf)))
    lost = np.flatnonzero(ratio[strongest:] > EXPLAINED**2)
    if not lost.size:
        return highest_hz
    return float(min(centres[strongest + lost[0]], highest_hz))


def _score(powers: np.ndarray) -> np.ndarray:
    """Weigh the joints' residual powers alike, however badly one is explained."""
    return np.asarray(np.log(np.maximum(powers, 1e-300)).sum(axis=-1))


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


def _valley(x: np.ndarray, y: np.ndarray) -> float:
    """Return where a parabola through the three lowest neighbours is lowest."""
    i = int(np.clip(np.argmin(y), 1, len(y) - 2))
    left, middle, right = y[i - 1], y[i], y[i + 1]
    bend = left - 2.0 * middle + right
    shift = 0.5 * (left - right) / bend if bend > 0 else 0.0
    return float(x[i] + np.clip(shift, -1.0, 1.0) * (x[1] - x[0]))
