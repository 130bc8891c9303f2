"""Two rates in simulation: what a slow background task costs in torque.

The background task takes a state, works a whole period on it and hands over M and h;
they serve the synchronous task for the next period. When they are used, they are one to
two periods old. Worked out for where the arm will be one and a half periods later, most
of that age is made good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.codegen.reference import friction_torque
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.motions import Motion, MotionSample

if TYPE_CHECKING:
    from jaxtyping import Float


MEAN_AGE = 1.5
"""Age of M and h when they are used, on average, in background periods."""


@dataclass(frozen=True, eq=False)
class TwoRateError:
    """Torque of the two-rate structure against the whole inverse dynamics.

    Attributes:
        ratio: Synchronous samples per background period.
        lead: For how much later the background works, in background periods.
        error: Largest torque error of each joint in [N m].
        peak: Largest torque of each joint in [N m].
    """

    ratio: int
    lead: float
    error: Float[np.ndarray, " dof"]
    peak: Float[np.ndarray, " dof"]

    @property
    def fraction(self) -> float:
        """Largest error as a fraction of the largest torque of the motion."""
        return float(self.error.max() / self.peak.max())


def two_rate_error(
    arm: Arm,
    motion: Motion,
    *,
    synchronous_hz: float = 1000.0,
    ratio: int = 10,
    lead: float = MEAN_AGE,
) -> TwoRateError:
    """Follow a motion with M and h from a background task that is slower.

    Args:
        arm: The arm.
        motion: The motion.
        synchronous_hz: Rate of the synchronous task.
        ratio: How many times slower the background task is.
        lead: For how much later than it took the state the background works, in its
            periods; 0 is the paper's way.
    """
    if ratio < 1 or not synchronous_hz > 0:
        raise ArgumentError(
            f"The background is at least as slow as the synchronous task: ratio "
            f"{ratio}, {synchronous_hz} Hz."
        )
    times = np.arange(0.0, motion.duration, 1.0 / synchronous_hz)
    now = motion.sample(times)
    taken = np.maximum(np.arange(times.size) // ratio - 1, 0) * ratio
    then = MotionSample(now.q[taken], now.qd[taken], now.qdd[taken])
    seconds = lead * ratio / synchronous_hz
    q = then.q + seconds * (then.qd + 0.5 * seconds * then.qdd)
    qd = then.qd + seconds * then.qdd
    dynamics = Dynamics(arm)
    h = dynamics.velocity_torque(q, qd) + dynamics.gravity_torque(q)
    M = dynamics.mass_matrix(q)
    tau = (M @ now.qdd[..., None])[..., 0] + h + friction_torque(arm, now.qd)
    exact = dynamics.inverse_dynamics(now.q, now.qd, now.qdd)
    return TwoRateError(
        ratio, lead, np.abs(tau - exact).max(axis=0), np.abs(exact).max(axis=0)
    )
