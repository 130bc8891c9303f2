"""Torque residuals of an epoch as information on sensors, load and friction eliminated.

Torques are explained by the sensors' gains and offsets, by the arm's parameters, and by
what ordinary work changes: the load in the hand and the friction of the joints. The
last have a Gaussian prior of their own in every epoch, and are eliminated: the Schur
complement of their block of the normal equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.monitoring.settings import DEFAULT_SETTINGS, WatchdogSettings

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.calibration import Structure
    from armwise.dynamics import Dynamics
    from armwise.monitoring.stream import FilteredSamples


_STEP = 1e-5
"""Step of central differences in [rad], and relative for gains: near the cube root of
the rounding error, where truncation and cancellation are equally small."""


class EpochSums(NamedTuple):
    """Normal equations of one epoch.

    Attributes:
        gram: AᵀA of A = [∂τ/∂x, Y, r], rows divided by the torques' errors, changes of
            load and friction eliminated.
        residual_squares: Sum of squares per joint that no load and no friction explain.
        rows: Torques per joint that were used.
        load: Mass in the hand in [kg] beyond the arm's own.
    """

    gram: Float[np.ndarray, "width width"]
    residual_squares: Float[np.ndarray, " dof"]
    rows: Float[np.ndarray, " dof"]
    load: float


class GravityResiduals:
    """Compares the torques of epochs with the arm's model.

    Args:
        structure: What is known of the arm.
        load: Mass in [kg] that the hand may take up, or put down.
        settings: Changes that ordinary work brings.
    """

    def __init__(
        self,
        structure: Structure,
        load: float,
        settings: WatchdogSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._structure, self._settings = structure, settings
        arm = structure.arm
        self._indices = list(structure.base.indices)
        coulomb = arm.parameters[arm.layout.drive("coulomb")]
        self._dry = np.abs(structure.drive_weights.T) @ np.abs(coulomb)
        self._change_std = _change_std(arm, load, settings)
        self._is_load = arm.layout.is_inertial
        self._changing = np.flatnonzero(self._change_std)

    def largest_change(
        self, motion: Float[np.ndarray, "3 dof"]
    ) -> Float[np.ndarray, " dof"]:
        """Torque in [N m] or [N] that load and friction may add to (q, q̇, q̈)."""
        Y = self._structure.dynamics.regressor(*motion)
        load_std = np.where(self._is_load, self._change_std, 0.0)
        # Dry friction may point the other way: twice its size. Absolute values are
        # summed, since the parts of a load need not be independent.
        margin = self._settings.resting_margin
        return np.asarray(margin * np.abs(Y) @ load_std + 2.0 * self._dry)

    def epoch_sums(
        self,
        model: Dynamics,
        std: Float[np.ndarray, " dof"],
        data: FilteredSamples,
        beta: Float[np.ndarray, " dof"],
    ) -> EpochSums:
        """Normal equations of samples, positions in [rad] or [m].

        Args:
            model: The arm as it was calibrated.
            std: Standard deviation of each joint's torque residual in [N m] or [N].
            data: The samples.
            beta: Offsets they were taken with, about which gains stretch positions.
        """
        r = data.tau - model.inverse_dynamics(data.q, data.qd, data.qdd)
        Y = model.regressor(data.q, data.qd, data.qdd)
        J = self._slopes(model, data, beta)
        # At rest dry friction may be anything within its size: such torques are masked.
        is_slow = np.abs(data.qd) < self._settings.slow_speed
        weight = ~(is_slow & (self._dry > 0.0)) / std
        # Columns scaled by their prior standard deviation: the prior becomes a unit
        # matrix in the elimination.
        changes = Y[:, :, self._changing] * self._change_std[self._changing]
        A = np.concatenate([J, Y[:, :, self._indices], r[:, :, None], changes], axis=2)
        A *= weight[:, :, None]
        return self._eliminated(A, weight > 0.0)

    def _eliminated(self, A: np.ndarray, is_used: np.ndarray) -> EpochSums:
        """Marginalise changes of load and friction (Schur complement)."""
        width = A.shape[2] - self._changing.size
        rows = A.reshape(-1, A.shape[2])
        gram = rows.T @ rows
        corner = gram[width:, width:] + np.eye(self._changing.size)
        solved = np.linalg.solve(corner, gram[width:, :width])
        residual = A[:, :, width - 1] - A[:, :, width:] @ solved[:, -1]
        # The mass is the first of the load's parameters, as they are of all.
        has_load = self._is_load[self._changing].any()
        mass_std = self._change_std[self._changing[0]] if has_load else 0.0
        return EpochSums(
            gram=gram[:width, :width] - gram[:width, width:] @ solved,
            residual_squares=np.sum(residual**2, axis=0),
            rows=is_used.sum(axis=0).astype(float),
            load=float(mass_std * solved[0, -1]) if has_load else 0.0,
        )

    def _slopes(
        self, model: Dynamics, data: FilteredSamples, beta: np.ndarray
    ) -> Float[np.ndarray, "samples dof unknowns"]:
        """∂τ/∂x by gains, unless known, and offsets: all steps in one batched call."""
        n, unknowns = beta.size, len(self._structure.unknowns)
        steps = _STEP * np.concatenate([np.eye(unknowns), -np.eye(unknowns)])
        gains = steps[:, :-n] if unknowns > n else np.zeros((2 * unknowns, n))
        stretch = 1.0 + gains[:, None, :]
        q = data.q + gains[:, None, :] * (data.q - beta) + steps[:, None, -n:]
        tau = model.inverse_dynamics(q, data.qd * stretch, data.qdd * stretch)
        slopes = (tau[:unknowns] - tau[unknowns:]) / (2.0 * _STEP)
        return np.moveaxis(slopes, 0, 2)


def _change_std(
    arm: Arm, load: float, settings: WatchdogSettings
) -> Float[np.ndarray, " parameters"]:
    """Standard deviations of parameters that change in ordinary work."""
    std = np.zeros(arm.parameters.size)
    reach = settings.load_reach * _length(arm)
    inertia = settings.load_inertia * load * reach**2
    std[arm.layout.link(-1)] = [load, *3 * [load * reach], *6 * [inertia]]
    friction = arm.layout.drive("viscous", "coulomb")
    std[friction] = settings.friction_change * np.abs(arm.parameters[friction])
    return std


def _length(arm: Arm) -> float:
    """From joint to joint to the last one's farthest frame in [m]."""
    ways = [joint.origin[:3, 3] for joint in arm.joints]
    ends = [frame.pose[:3, 3] for frame in arm.frames] or [np.zeros(3)]
    return float(sum(map(np.linalg.norm, ways)) + max(map(np.linalg.norm, ends)))
