"""A robust term: a bounded push towards the sliding surface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.gains import feedback_gain

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class RobustTerm:
    """−k sat(s/φ): covers bounded unmodelled torque without chattering.

    Attributes:
        strength: k, the torque it may use, in [N m] or [N], one or one per joint.
        boundary: φ, the width of the layer in which it is linear, in the units of s.
    """

    strength: float | Float[np.ndarray, " dof"]
    boundary: float = 0.05

    def __post_init__(self) -> None:
        feedback_gain(self.strength, "strength")
        feedback_gain(self.boundary, "boundary")

    def torque(self, s: Float[np.ndarray, "... dof"]) -> Float[np.ndarray, "... dof"]:
        """Return the torque against s."""
        return -self.strength * np.clip(s / self.boundary, -1.0, 1.0)
