"""Joints that give: tendons, harmonic drives, belts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class JointElasticity:
    """A spring between each motor and its link: τ = k (θ − q) + d (θ̇ − q̇).

    Motors then move by themselves, with the drive's rotor inertia and friction.

    Attributes:
        stiffness: k in [N m/rad] or [N/m]; one number, or one per joint.
        damping: d in [N m s/rad] or [N s/m].
    """

    stiffness: ArrayLike
    damping: ArrayLike = 0.0

    def __post_init__(self) -> None:
        if not np.min(self.stiffness) > 0 or not np.all(np.isfinite(self.stiffness)):
            raise ArgumentError("The stiffness of every joint must be positive.")
        if np.min(self.damping) < 0:
            raise ArgumentError("The damping of a joint cannot be negative.")
