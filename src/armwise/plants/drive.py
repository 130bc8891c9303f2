"""Drive models: actuator limits and delays, dry friction, joint elasticity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Coupling, Joint
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.regression import FrictionTerm


@dataclass(frozen=True, eq=False)
class Actuator:
    """Motors and their amplifiers.

    Attributes:
        saturation: Largest torque in [N m]; one number, or one per joint.
        bits: Resolution of the converter over ±saturation; None converts exactly.
        gain_error: Fraction by which they give too much; a row per arm is allowed.
        delay: Time from command to torque in [s].
    """

    saturation: ArrayLike = np.inf
    bits: int | None = None
    gain_error: ArrayLike = 0.0
    delay: float = 0.0

    def mounted(self, batch: int, dof: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function from commands (batch, dof) to torques."""
        limit = np.broadcast_to(np.asarray(self.saturation, float), (dof,))
        if not np.all(limit > 0):
            raise ArgumentError("saturation must be positive for every joint.")
        if self.delay < 0 or not np.isfinite(self.delay):
            raise ArgumentError("An actuator's delay must be a number ≥ 0 in [s].")
        gain = 1.0 + np.broadcast_to(np.asarray(self.gain_error, float), (batch, dof))
        has_limit, has_gain = bool(np.isfinite(limit).any()), bool(np.any(gain != 1.0))
        step = self._step(limit)

        def convert(tau: np.ndarray) -> np.ndarray:
            if has_limit:
                # Twice as fast as np.clip on a few joints, at every step.
                tau = np.minimum(np.maximum(tau, -limit), limit)
            if step is not None:
                tau = np.rint(tau / step) * step
            return tau * gain if has_gain else tau

        return convert

    def _step(self, limit: np.ndarray) -> np.ndarray | None:
        if self.bits is None:
            return None
        if not np.isfinite(limit).all():
            raise ArgumentError(
                "A converter of some bits needs a finite saturation: its full scale."
            )
        # 2ⁿ codes over a full scale from −limit to +limit.
        step: np.ndarray = 2.0 * limit / 2**self.bits
        return step


# Joint elasticity: tendons, harmonic drives, belts.


@dataclass(frozen=True, eq=False)
class JointElasticity:
    """A spring between each motor and its link: τ = k (θ − q) + d (θ̇ − q̇).

    Motors then move by themselves, with the drive's rotor inertia and friction. A gear
    with backlash transmits nothing within its play, and k (θ − q ∓ b/2) beyond.

    Attributes:
        stiffness: k in [N m/rad] or [N/m]; one number, or one per joint.
        damping: d in [N m s/rad] or [N s/m].
        backlash: Play b of the gear in [rad] or [m].
    """

    stiffness: ArrayLike
    damping: ArrayLike = 0.0
    backlash: ArrayLike = 0.0

    def __post_init__(self) -> None:
        if not np.min(self.stiffness) > 0 or not np.all(np.isfinite(self.stiffness)):
            raise ArgumentError("The stiffness of every joint must be positive.")
        if np.min(self.damping) < 0:
            raise ArgumentError("The damping of a joint cannot be negative.")
        if np.min(self.backlash) < 0 or not np.all(np.isfinite(self.backlash)):
            raise ArgumentError("The backlash of a joint cannot be negative.")


# Dry friction beyond a drive's Coulomb and viscous terms.


@dataclass(frozen=True, eq=False)
class Friction:
    """What is added to the Coulomb and viscous friction of the arm's drives.

    Sliding at speed v a drive loses fv v + [fc + (fs − fc) / (1 + (v/vs)²)] sign(v);
    at rest it withstands up to fs: with fs above fc the joint sticks and slips.

    Attributes:
        static: fs as a multiple of each drive's Coulomb friction, at least 1.
        stribeck_speed: vs in [rad/s] or [m/s].
        smoothing: Speed in [rad/s] or [m/s] over which Runge–Kutta integrators, which
            cannot stick, and further terms blend sign(v) into v / √(v² + smoothing²).
        terms: Further terms, such as load-dependent friction and hysteresis, and their
            coefficients; `estimate.friction` has those of an estimate.
    """

    static: ArrayLike = 1.0
    # Judgement: some 3 °/s.
    stribeck_speed: ArrayLike = 0.05
    # Judgement: far below speeds that matter, yet not so stiff that explicit methods
    # need steps below those of the arm itself.
    smoothing: float = 1e-3
    terms: tuple[tuple[FrictionTerm, float], ...] = ()

    def __post_init__(self) -> None:
        if np.min(self.static) < 1.0:
            raise ArgumentError("Static friction cannot be less than Coulomb friction.")
        if np.min(self.stribeck_speed) <= 0 or self.smoothing <= 0:
            raise ArgumentError("stribeck_speed and smoothing must be positive.")


DRIVE_ROWS = ("inertia", "viscous", "coulomb", "static", "stribeck_speed", "offset")
"""Numbers of each drive that an engine takes, in order."""


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
