"""`izaguirre1992` §7.2: computed torque played on joints 1 to 3 without feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.motions import MotionSample, Quintic
from armwise.plants import Measurement, SimulatedArm, run

if TYPE_CHECKING:
    from jaxtyping import Float

WAY = np.deg2rad(90.0)
FAST, SLOW = np.deg2rad(180.0), np.deg2rad(30.0)
"""Peak speeds of §7.2's fast motions, and of slow ones (the paper gives no figure)."""

START = np.deg2rad([0.0, -90.0, 90.0, 0.0, 0.0, 0.0])
TURNS = np.array([1.0, 1.0, -1.0])
"""Which way joints 1 to 3 turn: the forearm unfolds while the upper arm swings."""

_PEAK = 1.875
"""Peak over mean speed of a quintic."""

RUNS: dict[str, list[tuple[int, ...]]] = {
    "one by one": [(0,), (1,), (2,)],
    "together": [(0, 1, 2)],
}
"""Which joints move at a time in Figs. 6 and 8, and in Figs. 7 and 9."""


def quick_motion(joints: Sequence[int], speed: float) -> Quintic:
    """Turn joints by 90° with a given peak speed in [rad/s]."""
    end = START.copy()
    for j in joints:
        end[j] += TURNS[j] * WAY
    return Quintic(START, end, _PEAK * WAY / speed)


class OpenLoop:
    """Plays the computed torque on some joints; the others are held by stiff springs.

    Args:
        model: The arm it believes in.
        moving: Which joints get the computed torque and nothing else.
        gravity_from: "plan": all of the torque from the planned motion; "position":
            gravity from the actual position, "an elementary form of feedback".
    """

    def __init__(
        self, model: Arm, moving: Sequence[int], gravity_from: str = "plan"
    ) -> None:
        self.dynamics = Dynamics(model)
        self.is_moving = np.isin(np.arange(model.dof), list(moving))
        self.gravity_from = gravity_from
        self.stiffness = np.array([400.0, 400.0, 200.0, 20.0, 20.0, 5.0])
        self.damping = np.array([25.0, 28.0, 11.0, 0.9, 0.9, 0.2])

    def reset(self, batch: int, period: float) -> None:
        """Begin anew: there is nothing to forget."""

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] to hold from time t [s] on."""
        q, qd = measurement.need("q"), measurement.need("qd")
        tau = self.dynamics.inverse_dynamics(*reference) + 0.0 * q
        if self.gravity_from == "position":
            planned = self.dynamics.gravity_torque(reference.q)
            tau = tau + self.dynamics.gravity_torque(q) - planned
        hold = self.stiffness * (reference.q - q) + self.damping * (reference.qd - qd)
        return np.where(self.is_moving, tau, tau + hold)


@dataclass(frozen=True, eq=False)
class Drift:
    """Where a joint went without position feedback.

    Attributes:
        joint: Its index.
        time: In [s].
        error: From the plan, in [°].
    """

    joint: int
    time: Float[np.ndarray, " samples"]
    error: Float[np.ndarray, " samples"]

    @property
    def share(self) -> float:
        """Largest error as a fraction of the 90° it turns."""
        return float(np.abs(self.error).max() / np.rad2deg(WAY))


def play(
    model: Arm, truth: Arm, kind: str, speed: float, gravity_from: str = "plan"
) -> list[Drift]:
    """Play the torque of a model on an arm; one answer for each of joints 1 to 3.

    Args:
        model: What the torque is computed with.
        truth: What is simulated.
        kind: Which of RUNS.
        speed: Peak speed in [rad/s].
        gravity_from: "plan", or "position" for the actual one.
    """
    found = []
    for joints in RUNS[kind]:
        motion = quick_motion(joints, speed)
        plant = SimulatedArm(truth, keeps_truth=True)
        recording = run(plant, OpenLoop(model, joints, gravity_from), motion)
        for j in joints:
            channel = recording.channels[f"true_q_{j + 1}"]
            wanted = motion.sample(channel.time).q[:, j]
            error = np.rad2deg(channel.values - wanted)
            found.append(Drift(j, channel.time, error))
    return found


def worst(drifts: Sequence[Drift]) -> float:
    """Largest error of all joints, as a fraction of 90°."""
    return max(drift.share for drift in drifts)
