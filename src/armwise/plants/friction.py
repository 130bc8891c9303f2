"""Friction beyond a joint's drive: sticking, and how sticking gives way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Coupling, Joint
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Friction:
    """What is added to the Coulomb and viscous friction of the arm's drives.

    Sliding at speed v a drive loses fv v + [fc + (fs − fc) / (1 + (v/vs)²)] sign(v);
    at rest it withstands up to fs: with fs above fc the joint sticks and slips.

    Attributes:
        static: fs as a multiple of each drive's Coulomb friction, at least 1.
        stribeck_speed: vs in [rad/s] or [m/s].
        smoothing: Speed in [rad/s] or [m/s] over which Runge–Kutta integrators, which
            cannot stick, blend sign(v) into v / √(v² + smoothing²).
    """

    static: ArrayLike = 1.0
    stribeck_speed: ArrayLike = 0.05
    smoothing: float = 1e-3

    def __post_init__(self) -> None:
        if np.min(self.static) < 1.0:
            raise ArgumentError("Static friction cannot be less than Coulomb friction.")
        if np.min(self.stribeck_speed) <= 0 or self.smoothing <= 0:
            raise ArgumentError("stribeck_speed and smoothing must be positive.")


DRIVE_ROWS = ("inertia", "viscous", "coulomb", "static", "stribeck_speed", "offset")
"""What an engine is told of each drive, in order."""


def drive_table(arm: Arm, friction: Friction) -> Float[np.ndarray, "6 drives"]:
    """Return the numbers of every drive of an arm, rows in the order of DRIVE_ROWS."""
    driven: list[Joint | Coupling] = [*arm.joints, *arm.couplings]
    drives = [x.drive for x in driven]
    inertia, viscous, coulomb, offset = np.array([d.vector for d in drives]).T
    if coulomb.min() < 0:
        worst = int(coulomb.argmin())
        raise ArgumentError(
            f"{arm.name}: {driven[worst].name!r} has the Coulomb friction "
            f"{coulomb[worst]:g}, with which it would push itself. Set it to zero to "
            "simulate the arm."
        )
    count = len(drives)
    static = coulomb * np.broadcast_to(np.asarray(friction.static, float), (count,))
    speed = np.broadcast_to(np.asarray(friction.stribeck_speed, float), (count,))
    return np.stack([inertia, viscous, coulomb, static, speed, offset])
