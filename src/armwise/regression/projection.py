"""Residual of torque beside all that the motion explains, at any friction bandwidth.

All joints are fitted together by the columns of the arm. Without an arm, each joint is
fitted by a rough stand-in: good enough to align two signals in time, and never used for
anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.regression.columns import Columns
from armwise.regression.signals import (
    Signals,
    directions,
    directions_shown,
    stuck_or_creeping,
)

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: some thousand roundings of float64, as sums over a log gather them.
_VANISHING = 1e-12
"""A column this small beside the largest is zero but for rounding."""

_DEPENDENT = 1e-10
"""Relative eigenvalue of the Gram matrix, columns scaled to one, below which a
combination of columns vanishes: half the digits are lost in forming the matrix."""


@dataclass(frozen=True, eq=False)
class TorqueProjection:
    """What motion explains of the torques of an arm, and what it does not.

    Attributes:
        signals: Motion and torque.
        systems: Columns of the joints, in systems that share no coefficient.
        weights: Of each joint's rows, 1 or 0; None: all count.
    """

    signals: Signals
    systems: tuple[_System, ...]
    weights: Float[np.ndarray, "samples joints"] | None = None

    @classmethod
    def of(cls, signals: Signals, columns: Columns | None) -> TorqueProjection:
        """Project on the columns of an arm, or, without one, on the rough stand-in."""
        # Joints count alike whatever their torque, or those with the largest torque
        # alone would fix the lag. A joint without torque keeps a finite scale.
        sizes = np.maximum(np.linalg.norm(signals.tau, axis=0), 1e-12)
        if columns is None:
            return cls(signals, _rough_systems(signals, sizes))
        return cls(signals, (_arm_system(signals, columns, sizes),))

    def without_sticking(self) -> TorqueProjection:
        """Without the rows in which a joint is seen to stick.

        Friction has any value there. As the torque of a joint that stands goes from one
        limit to the other it looks like Coulomb friction through a low-pass that the
        torque never went through, and early.
        """
        is_stuck = stuck_or_creeping(self.signals)
        if not is_stuck.any():
            return self
        weights = np.where(is_stuck, 0.0, 1.0)
        systems = []
        for system in self.systems:
            pairs = zip(system.joints, system.matrices, strict=True)
            matrices = [matrix * weights[:, [j]] for j, matrix in pairs]
            systems.append(replace(system, matrices=matrices))
        return TorqueProjection(self.signals, tuple(systems), weights)

    @property
    def rank(self) -> int:
        """Number of independent columns, Coulomb friction not counted."""
        return sum(system.rank for system in self.systems)

    @property
    def fractions(self) -> Float[np.ndarray, " joints"]:
        """Fraction of each joint's rows that count; 1 where none does."""
        if self.weights is None:
            return np.ones(self.signals.tau.shape[1])
        fractions = self.weights.mean(axis=0)
        return np.where(fractions > 0.0, fractions, 1.0)

    def residuals(
        self, torque: Float[np.ndarray, "samples joints ..."], bandwidth_hz: float
    ) -> Float[np.ndarray, "samples joints ..."]:
        """Return what the motion leaves of torques, as fractions of each joint's size.

        Args:
            torque: The torques, or several versions of them along the last axis.
            bandwidth_hz: Low-pass through which Coulomb friction is seen in [Hz].
        """
        return self.residuals_at(torque, [bandwidth_hz])[0]

    def residuals_at(
        self,
        torque: Float[np.ndarray, "samples joints ..."],
        bandwidths_hz: Sequence[float],
    ) -> list[Float[np.ndarray, "samples joints ..."]]:
        """Return `residuals` for several bandwidths, at little more than one's cost."""
        stacked = torque.reshape(*torque.shape[:2], -1)
        residuals = [np.empty(stacked.shape) for _ in bandwidths_hz]
        for system in self.systems:
            joints = list(system.joints)
            scaled = [stacked[:, j] / system.sizes[k] for k, j in enumerate(joints)]
            unexplained = system.without_fit(self._weighted(system, np.stack(scaled)))
            flat = unexplained.reshape(-1, unexplained.shape[2])
            signs = directions(self.signals, system.drive_rows)
            for residual, bandwidth_hz in zip(residuals, bandwidths_hz, strict=True):
                friction = self._friction(system, signs, bandwidth_hz)
                # Friction last (Frisch, Waugh, Lovell: partial regression): the smooth
                # columns are projected out once, and a new bandwidth needs only these
                # few columns.
                inverse, _ = _pseudo_inverse(friction.T @ friction)
                unseen = flat - friction @ (inverse @ (friction.T @ flat))
                residual[:, joints] = unseen.reshape(unexplained.shape).transpose(
                    1, 0, 2
                )
        return [residual.reshape(torque.shape) for residual in residuals]

    def _friction(
        self, system: _System, signs: np.ndarray, bandwidth_hz: float
    ) -> Float[np.ndarray, "joints*samples drives"]:
        """Coulomb friction's columns, without what the other columns explain of it."""
        direction = directions_shown(self.signals, signs, bandwidth_hz)
        effects = system.drive_rows.T[list(system.joints)] / system.sizes[:, None]
        shown = self._weighted(system, direction * effects[:, None, :])
        columns = system.without_fit(shown)
        return columns.reshape(-1, columns.shape[2])

    def _weighted(
        self, system: _System, targets: Float[np.ndarray, "joints samples versions"]
    ) -> Float[np.ndarray, "joints samples versions"]:
        """Rows of a system's joints times their weights."""
        if self.weights is None:
            return targets
        return targets * self.weights.T[list(system.joints), :, None]


@dataclass(frozen=True, eq=False)
class _System:
    """Columns of some joints that share coefficients, Coulomb friction set apart.

    Attributes:
        joints: The joints.
        sizes: Norm of each joint's torque, by which its rows are divided.
        matrices: The columns of each joint.
        indices: Which coefficients they belong to.
        drive_rows: How fast each drive turns with each coordinate.
    """

    joints: tuple[int, ...]
    sizes: Float[np.ndarray, " joints"]
    matrices: Sequence[Float[np.ndarray, "samples columns"]]
    indices: Sequence[np.ndarray]
    drive_rows: Float[np.ndarray, "drives dof"]

    @cached_property
    def _solution(self) -> tuple[np.ndarray, int]:
        count = 1 + max(int(index.max(initial=-1)) for index in self.indices)
        gram = np.zeros((count, count))
        for matrix, index in zip(self.matrices, self.indices, strict=True):
            gram[np.ix_(index, index)] += matrix.T @ matrix
        # Normal equations suffice: only residuals are compared, never coefficients, and
        # residuals hardly suffer from columns that are nearly dependent.
        return _pseudo_inverse(gram)

    @property
    def rank(self) -> int:
        """Number of independent columns."""
        return self._solution[1]

    def without_fit(
        self, targets: Float[np.ndarray, "joints samples versions"]
    ) -> Float[np.ndarray, "joints samples versions"]:
        """Take the least-squares fit of the columns out of scaled torques."""
        inverse, _ = self._solution
        right = np.zeros((len(inverse), targets.shape[2]))
        parts = list(zip(self.matrices, self.indices, targets, strict=True))
        for matrix, index, target in parts:
            right[index] += matrix.T @ target
        coefficients = inverse @ right
        return np.stack([t - matrix @ coefficients[i] for matrix, i, t in parts])


def _arm_system(signals: Signals, columns: Columns, sizes: np.ndarray) -> _System:
    """The arm's own columns, for all joints together."""
    coulomb = columns.coulomb
    smooth = [np.isin(support, coulomb, invert=True) for support in columns.support]
    matrices = [np.empty((len(signals), int(used.sum()))) for used in smooth]
    for block in columns.blocks([signals]):
        for i, joint in enumerate(block.joints):
            matrices[i][block.rows] = joint[:-1][smooth[i]].T / sizes[i]
    indices = [s[used] for s, used in zip(columns.support, smooth, strict=True)]
    drive_rows = columns.dynamics.mechanism.drive_rows
    return _System(tuple(range(columns.arm.dof)), sizes, matrices, indices, drive_rows)


def _rough_systems(signals: Signals, sizes: np.ndarray) -> tuple[_System, ...]:
    """Functions of the motion that some arm might need, for each joint by itself."""
    q, qd, qdd = signals.q, signals.qd, signals.qdd
    n = q.shape[1]
    # Gravity of links in a row turns with sums of angles; a first joint that stands
    # upright does not change it, so sums without it are there as well.
    sums = np.cumsum(q, axis=1)
    angles = np.concatenate([q, sums[:, 1:], sums[:, 1:] - q[:, :1]], axis=1)
    # Most useful first: short logs cut the list off at its end.
    columns = [np.ones((len(q), 1)), qd, qdd, np.sin(angles), np.cos(angles)]
    columns += [qdd * np.cos(q[:, [j]]) for j in range(n)]
    # Ten samples a column at least, or the fit would follow noise.
    matrix = np.concatenate(columns, axis=1)[:, : max(4, len(q) // 10)]
    index = np.arange(matrix.shape[1])
    return tuple(
        _System((j,), sizes[[j]], [matrix], [index], np.eye(n)[[j]]) for j in range(n)
    )


def _pseudo_inverse(gram: np.ndarray) -> tuple[np.ndarray, int]:
    """Inverse of a Gram matrix where it has one, zero elsewhere; also its rank."""
    scale = np.sqrt(np.diag(gram))
    # 1e-300: a Gram matrix of zeros has no used column, and no division by zero.
    used = np.flatnonzero(scale > _VANISHING * max(scale.max(initial=0.0), 1e-300))
    inverse = np.zeros(gram.shape)
    if not used.size:
        return inverse, 0
    size = np.outer(scale[used], scale[used])
    values, vectors = np.linalg.eigh(gram[np.ix_(used, used)] / size)
    strong = values > _DEPENDENT * values[-1]
    vectors, values = vectors[:, strong], values[strong]
    inverse[np.ix_(used, used)] = (vectors / values) @ vectors.T / size
    return inverse, int(strong.sum())
