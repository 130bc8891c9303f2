"""What a motion must respect, measured: shares of limits used, room left."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import DRIVE_NAMES, Arm
from armwise.dynamics import Dynamics
from armwise.dynamics.mechanism import DRIVES
from armwise.excitation.bounds import Bounds
from armwise.excitation.clearance import Clearance
from armwise.excitation.information import STATES
from armwise.programs import Backend, Kernel
from armwise.programs.derivatives import gradient

if TYPE_CHECKING:
    from jaxtyping import Float

QUANTITIES = ("position", "velocity", "acceleration", "effort")
"""What has limits, in the order of a usage's shares."""

COULOMB = DRIVE_NAMES.index("coulomb")

_POSTURES, _NEAR = 1000, 0.05


@dataclass(frozen=True, eq=False)
class Usage:
    """How much of what is allowed a motion uses at every sample.

    Attributes:
        shares: Signed shares of the limits, one (samples, dof) for each of QUANTITIES;
            position from the middle of its range.
        room: Distance left in [m], one row per encounter.
    """

    shares: tuple[Float[np.ndarray, "samples dof"], ...]
    room: Float[np.ndarray, "encounters samples"]

    def excess(self, share: float) -> Float[np.ndarray, " samples"]:
        """How far each sample is outside, at most; negative if it is inside."""
        over = np.max([np.abs(s).max(axis=1) for s in self.shares], axis=0) / share
        lacking = -self.room.min(axis=0, initial=np.inf)
        return np.maximum(over - 1.0, lacking)


class Requirements:
    """Limits and keep-out of an arm, over samples of its motion.

    Args:
        arm: The arm; its parameters give the torque.
        bounds: Its limits.
        clearance: Its keep-out, if any.
        backend: What runs the programs.
    """

    def __init__(
        self,
        arm: Arm,
        bounds: Bounds,
        clearance: Clearance | None,
        backend: Backend = "auto",
    ) -> None:
        self.bounds, self.clearance = bounds, clearance
        dynamics = Dynamics(arm, backend)
        self._torque = dynamics.kernel("inverse_dynamics")
        program = self._torque.program
        smooth = {**dynamics.uniforms, "drives": dynamics.uniforms["drives"].copy()}
        coulomb = smooth["drives"][COULOMB::DRIVES]
        self._friction = np.abs(dynamics.mechanism.drive_rows.T) @ np.abs(coulomb)
        coulomb[:] = 0.0
        uniform = [item.name for item in program.inputs if item.is_uniform]
        self._uniforms = [smooth[name] for name in uniform]
        self._torque_gradient = Kernel(gradient(program, STATES), backend)

    def nearby(self) -> Requirements:
        """Return the same without the encounters that random postures are far from."""
        other = copy(self)
        if self.clearance is not None:
            b, rng = self.bounds, np.random.default_rng(1997)
            q = rng.uniform(b.lower, b.upper, (_POSTURES, b.dof))
            near = self.clearance.room(q).min(axis=1) < _NEAR
            other.clearance = self.clearance.narrowed(near) if near.any() else None
        return other

    def usage(self, states: Sequence[np.ndarray]) -> Usage:
        """Measure a motion."""
        if self.clearance is None:
            room = np.zeros((0, len(states[0])))
        else:
            room = self.clearance.room(states[0])
        return Usage(self.shares(states), room)

    def shares(self, states: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Signed shares of position, velocity, acceleration and effort limits.

        Coulomb friction always counts in full, whichever way it acts: near standstill
        no one knows, and the smooth rest has a gradient.
        """
        q, qd, qdd = states
        b = self.bounds
        (torque,) = self._torque(list(states), self._uniforms)
        return (
            (q - b.middle) / b.half_range,
            qd / b.velocity,
            qdd / b.acceleration,
            (torque + np.copysign(self._friction, torque)) / b.effort,
        )

    def slopes(
        self, states: Sequence[np.ndarray], weights: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Gradient of Σ ⟨weights, shares⟩ by q, q̇, q̈."""
        b = self.bounds
        units = (b.half_range, b.velocity, b.acceleration)
        found = [w / unit for w, unit in zip(weights[:3], units, strict=True)]
        push = weights[3] / b.effort
        if push.any():
            given = [*states, np.ascontiguousarray(push)]
            more = self._torque_gradient(given, self._uniforms)
            found = [a + c for a, c in zip(found, more, strict=True)]
        return found
