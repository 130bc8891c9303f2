"""Inverse models: what a motion takes, by someone's account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.control.gains import feedback_gain

if TYPE_CHECKING:
    from jaxtyping import Float


class InverseModel(Protocol):
    """Anything that says which torque a motion takes; `Dynamics` does."""

    def inverse_dynamics(
        self,
        q: Float[np.ndarray, "*batch dof"],
        qd: Float[np.ndarray, "*batch dof"],
        qdd: Float[np.ndarray, "*batch dof"],
    ) -> Float[np.ndarray, "*batch dof"]:
        """Return the torques [N m] or forces [N]."""
        ...


@dataclass(frozen=True, eq=False)
class DecoupledModel:
    """Every joint a constant inertia of its own: τ = I q̈ (`atkeson1986` Eq. 6.13).

    It looks reasonable and fails to learn; it is here to show that, and for geared
    arms whose motors outweigh their links.

    Attributes:
        inertia: I of each joint in [kg m²] or [kg].
    """

    inertia: Float[np.ndarray, " dof"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "inertia", feedback_gain(self.inertia, "inertia"))

    def inverse_dynamics(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
    ) -> Float[np.ndarray, "*batch dof"]:
        """Return the torques [N m] or forces [N]."""
        tau: np.ndarray = self.inertia * qdd
        return tau
