"""Closed loops of thousands of arms on a GPU, one arm a thread.

A thread steps one arm, its controller and its sensors. Noise comes from Philox 4×32-10
(Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): every number
follows from the seed and from where and when it is used.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from armwise.dynamics import Dynamics, Mechanism, mechanism_of
from armwise.identification.coverage import LoopSetting
from armwise.plants import Friction, SemiImplicit, cuda_stepper_source
from armwise.plants.state import ArmNumbers
from armwise.programs import Memory, device, fill

TEMPLATES = Path(__file__).parent / "templates"

_THREADS = 64
"""Arms of a block: each needs most of a thread's registers."""

_CONTROL_RATE_HZ = 1000.0


class GpuLoop:
    """Runs copies of a closed loop on the GPU; their measurements stay there.

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
        self._ticks = round(SemiImplicit.default_rate_hz * period)
        numbers = ArmNumbers.of([arm], mechanism, Friction(), None)
        retention = np.exp(-2.0 * np.pi * setting.velocity_cutoff_hz * period)
        reference = motion.sample(np.arange(self.steps) * period)
        torque = Dynamics(setting.model).inverse_dynamics(*reference)
        self._inputs = [
            np.array([period / self._ticks, period, retention]),
            _joints(setting),
            np.concatenate([numbers.drives.ravel(), numbers.bodies.ravel()]),
            np.concatenate([reference.q[0], reference.qd[0]]),
            np.concatenate([reference.q, reference.qd, torque], axis=1),
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
        inputs = [self._device.upload(array) for array in self._inputs]
        numbers = [runs, self.steps, self._ticks, first, seed]
        blocks = -(-runs // _THREADS)
        self._module.launch("follow", blocks, _THREADS, [*numbers, *inputs, out])
        self._device.wait()


def _joints(setting: LoopSetting) -> np.ndarray:
    """Stack the joints' numbers in the kernel's order."""
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


def loop_source(mechanism: Mechanism) -> str:
    """Return CUDA C of `follow`, for the arms of one mechanism."""
    threads = f"#define THREADS {_THREADS}"
    loop = fill(TEMPLATES / "closed_loop.cu.in")
    return "\n".join([cuda_stepper_source(mechanism), threads, loop])
