"""What a stretch of motion says about sensors, whatever the hand holds meanwhile.

Torques are explained by the sensors' gains and offsets, by the arm's parameters, and by
what ordinary work changes: the load in the hand and the friction of the joints. The
last may be anything likely in every stretch, and is eliminated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.calibration import Structure
    from armwise.dynamics import Dynamics
    from armwise.monitoring.stream import Filtered


_STEP = 1e-5
"""Step of central differences in [rad], and relative for gains."""

_SLOW = 0.1
"""Speed in [rad/s] below which the direction of dry friction is in doubt."""

_FRICTION = 0.3
"""Share by which friction may change with temperature."""

_REACH = 0.15
"""Distance of a load from the last joint as a share of the arm's length."""


class Weighed(NamedTuple):
    """A stretch of motion, compressed.

    Attributes:
        gram: AᵀA of A = [∂τ/∂x, Y, r], rows divided by the torques' errors, changes of
            load and friction eliminated.
        left: Sum of squares per joint that no load and no friction explain.
        heard: Torques per joint that were weighed.
        load: Mass in the hand in [kg] beyond the arm's own.
    """

    gram: Float[np.ndarray, "width width"]
    left: Float[np.ndarray, " dof"]
    heard: Float[np.ndarray, " dof"]
    load: float


class Scales:
    """Weighs stretches of motion.

    Args:
        structure: What is known of the arm.
        load: Mass in [kg] that the hand may take up, or put down.
    """

    def __init__(self, structure: Structure, load: float) -> None:
        self._structure = structure
        arm = structure.arm
        self._indices = list(structure.base.indices)
        coulomb = arm.parameters[arm.layout.drive("coulomb")]
        self._dry = np.abs(structure.drive_weights.T) @ np.abs(coulomb)
        self._likely = _likely_changes(arm, load)
        self._is_load = arm.layout.is_inertial
        self._changing = np.flatnonzero(self._likely)

    def unexpected(
        self, motion: Float[np.ndarray, "3 dof"]
    ) -> Float[np.ndarray, " dof"]:
        """Torque in [N m] or [N] that load and friction may add to (q, q̇, q̈)."""
        Y = self._structure.dynamics.regressor(*motion)
        likely = np.where(self._is_load, self._likely, 0.0)
        return np.asarray(2.0 * np.abs(Y) @ likely + 2.0 * self._dry)

    def weigh(
        self,
        model: Dynamics,
        std: Float[np.ndarray, " dof"],
        data: Filtered,
        beta: Float[np.ndarray, " dof"],
    ) -> Weighed:
        """Compress samples, positions in [rad] or [m], taken with offsets β."""
        r = data.tau - model.inverse_dynamics(data.q, data.qd, data.qdd)
        Y = model.regressor(data.q, data.qd, data.qdd)
        J = self._slopes(model, data, beta)
        # At rest dry friction may be anything: such torques say nothing.
        weight = ~((np.abs(data.qd) < _SLOW) & (self._dry > 0.0)) / std
        changes = Y[:, :, self._changing] * self._likely[self._changing]
        A = np.concatenate([J, Y[:, :, self._indices], r[:, :, None], changes], axis=2)
        A *= weight[:, :, None]
        return self._eliminated(A, weight > 0.0)

    def _eliminated(self, A: np.ndarray, heard: np.ndarray) -> Weighed:
        """Take out what the load and friction explain, each weighed by its odds."""
        width = A.shape[2] - self._changing.size
        rows = A.reshape(-1, A.shape[2])
        gram = rows.T @ rows
        corner = gram[width:, width:] + np.eye(self._changing.size)
        solved = np.linalg.solve(corner, gram[width:, :width])
        rest = A[:, :, width - 1] - A[:, :, width:] @ solved[:, -1]
        # The mass is the first of the load's parameters, as they are of all.
        has_load = self._is_load[self._changing].any()
        mass = (
            float(self._likely[self._changing[0]] * solved[0, -1]) if has_load else 0.0
        )
        return Weighed(
            gram=gram[:width, :width] - gram[:width, width:] @ solved,
            left=np.sum(rest**2, axis=0),
            heard=heard.sum(axis=0).astype(float),
            load=mass,
        )

    def _slopes(
        self, model: Dynamics, data: Filtered, beta: np.ndarray
    ) -> Float[np.ndarray, "samples dof unknowns"]:
        """∂τ/∂x by gains, unless known, and offsets."""
        n, unknowns = beta.size, len(self._structure.unknowns)
        steps = _STEP * np.concatenate([np.eye(unknowns), -np.eye(unknowns)])
        gains = steps[:, :-n] if unknowns > n else np.zeros((2 * unknowns, n))
        stretch = 1.0 + gains[:, None, :]
        q = data.q + gains[:, None, :] * (data.q - beta) + steps[:, None, -n:]
        tau = model.inverse_dynamics(q, data.qd * stretch, data.qdd * stretch)
        slopes = (tau[:unknowns] - tau[unknowns:]) / (2.0 * _STEP)
        return np.moveaxis(slopes, 0, 2)


def _likely_changes(arm: Arm, load: float) -> Float[np.ndarray, " parameters"]:
    """Standard deviations of parameters that change in ordinary work."""
    likely = np.zeros(arm.parameters.size)
    reach = _REACH * _length(arm)
    last = [load, *3 * [load * reach], *6 * [0.2 * load * reach**2]]
    likely[arm.layout.link(-1)] = last
    friction = arm.layout.drive("viscous", "coulomb")
    likely[friction] = _FRICTION * np.abs(arm.parameters[friction])
    return likely


def _length(arm: Arm) -> float:
    """From joint to joint to the last one's farthest frame in [m]."""
    ways = [joint.origin[:3, 3] for joint in arm.joints]
    ends = [frame.pose[:3, 3] for frame in arm.frames] or [np.zeros(3)]
    return float(sum(map(np.linalg.norm, ways)) + max(map(np.linalg.norm, ends)))
