"""Thousands of arms in closed loop on a GPU, one a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics, mechanism_of
from armwise.motions import Motion
from armwise.plants.drive import Friction
from armwise.plants.gpu_loop_source import THREADS, loop_source
from armwise.plants.integrators import SemiImplicit
from armwise.plants.state import ArmNumbers
from armwise.programs import Memory, device

if TYPE_CHECKING:
    from jaxtyping import Float

_CONTROL_RATE_HZ = 1000.0


@dataclass(frozen=True, eq=False)
class LoopSetting:
    """A closed loop that many copies of an arm go through, each with its own noise.

    Feedback K_p (q_d − q) + K_v (q̇_d − q̇), with the velocity made from encoder counts
    by a first-order low-pass, and feedforward of a model; joints truly stick.

    Attributes:
        arm: The true arm.
        believed: The arm of the feedforward.
        motion: What is followed.
        kp, kd: Gains of the joints in [N m/rad] and [N m s/rad].
        velocity_cutoff_hz: Low-pass of the velocity in [Hz].
        resolution: A count of the encoders in [rad].
        zero_spread: Counts over which the encoders' zeros are spread at random.
        torque_noise: Standard deviation of the measured torques in [N m].
    """

    arm: Arm
    believed: Arm
    motion: Motion
    kp: Float[np.ndarray, " dof"]
    kd: Float[np.ndarray, " dof"]
    velocity_cutoff_hz: float
    resolution: float
    zero_spread: float
    torque_noise: Float[np.ndarray, " dof"]


class GpuLoop:
    """Runs copies of a closed loop on the GPU, and leaves what they measured there.

    Args:
        setting: The loop.
    """

    def __init__(self, setting: LoopSetting) -> None:
        arm, motion = setting.arm, setting.motion
        mechanism = mechanism_of(arm)
        self._device = device()
        self._module = self._device.compile(loop_source(mechanism))
        period = 1.0 / _CONTROL_RATE_HZ
        self.dof, self.rate_hz = arm.dof, _CONTROL_RATE_HZ
        self.steps = max(1, round(motion.duration / period))
        self._ticks = round(SemiImplicit.usual_rate_hz * period)
        numbers = ArmNumbers.of([arm], mechanism, Friction(), None)
        keep = np.exp(-2.0 * np.pi * setting.velocity_cutoff_hz * period)
        wanted = motion.sample(np.arange(self.steps) * period)
        torque = Dynamics(setting.believed).inverse_dynamics(*wanted)
        self._given = [
            np.array([period / self._ticks, period, keep]),
            _joints(setting),
            np.concatenate([numbers.drives.ravel(), numbers.bodies.ravel()]),
            np.concatenate([wanted.q[0], wanted.qd[0]]),
            np.concatenate([wanted.q, wanted.qd, torque], axis=1),
        ]

    @property
    def bytes_per_run(self) -> int:
        """Memory of what one run measures in bytes."""
        return 8 * 2 * self.dof * (self.steps + 1)

    def run(self, runs: int, seed: int, first: int, out: Memory) -> None:
        """Start some runs.

        Args:
            runs: How many.
            seed: Of all noise.
            first: Number of the first run; each number has its own noise.
            out: Becomes (q of every joint, then τ) × (steps + 1) × runs.
        """
        given = [self._device.upload(array) for array in self._given]
        numbers = [runs, self.steps, self._ticks, first, seed]
        blocks = -(-runs // THREADS)
        self._module.launch("follow", blocks, THREADS, [*numbers, *given, out])
        self._device.wait()


def _joints(setting: LoopSetting) -> np.ndarray:
    """Collect what the kernel is told of each joint, in its order."""
    every = np.ones(setting.arm.dof)
    return np.stack(
        [
            setting.kp * every,
            setting.kd * every,
            setting.resolution * every,
            setting.zero_spread * every,
            setting.torque_noise * every,
        ]
    )
