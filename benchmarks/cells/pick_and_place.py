"""Arms that pick and place: closed loop at 1 kHz, with all that is wrong with arms.

Random goals, dwells, a load taken up and put down every other time. Encoders round and
are noisy, velocity is made of their differences, torques are noisy, joints have dry
friction, and the model that the controller believes in is 1 % wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from armwise.arms import Arm, Drive, InertialParameters, load_arm
from armwise.control import ComputedTorque
from armwise.motions import Hold, MotionSample, Quintic, Sequence
from armwise.plants import (
    Encoder,
    Friction,
    Measurement,
    Payload,
    SimulatedArm,
    TorqueSensor,
    perturbed,
    run_batch,
)

PERIOD = 1e-3
CYCLE = 2.5
"""From one load change to the next in [s]."""

NOISE = 0.05
"""Of torques in [N m]."""

DRIVES = {
    "panda": Drive(rotor_inertia=0.1, viscous=0.3, coulomb=0.2, offset=0.0),
    "ur10": Drive(rotor_inertia=0.5, viscous=2.0, coulomb=1.0, offset=0.0),
}


class Block(NamedTuple):
    """What a cell's arms measured in one cycle."""

    time: np.ndarray
    q: np.ndarray
    tau: np.ndarray


class Faulty:
    """A controller that believes sensors whose zeros jump at their onsets."""

    def __init__(self, model: Arm, shift: np.ndarray, onset: np.ndarray) -> None:
        self._inner = ComputedTorque(model, 200.0, 28.0)
        self._shift, self._onset = shift, onset
        self.begin = 0.0

    def reset(self, batch: int, period: float) -> None:
        """Begin anew."""
        self._inner.reset(batch, period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> np.ndarray:
        """Follow the reference by what the sensors say."""
        q = measurement.need("q") + self.error(np.array([self.begin + t]))[:, 0]
        return self._inner.torque(t, reference, measurement._replace(q=q))

    def error(self, times: np.ndarray) -> np.ndarray:
        """Of every arm's readings at some times."""
        has_jumped = times[None, :] >= self._onset[:, None] - 1e-9
        return self._shift[:, None, :] * has_jumped[:, :, None]


class Cell:
    """Arms side by side, each at its own work.

    Args:
        name: Of a bundled arm.
        shift: Jumps of each arm's readings in [rad].
        onset: When they jump in [s].
        seed: Of everything.
    """

    def __init__(
        self, name: str, shift: np.ndarray, onset: np.ndarray, seed: int
    ) -> None:
        bare = load_arm(name)
        joints = tuple(replace(j, drive=DRIVES[name]) for j in bare.joints)
        self.model = replace(bare, joints=joints)
        self._arms = [perturbed(self.model, 0.01, seed + k) for k in range(len(shift))]
        self.batch = len(shift)
        self._random, self._seed = np.random.default_rng(seed), seed
        self._controller = Faulty(self.model, shift, onset)
        self._loads = [
            Payload("flange", _box(mass))
            for mass in self._random.uniform(0.2, 1.0, len(shift))
        ]
        low = np.maximum(bare.limits("lower"), -1.5)
        high = np.minimum(bare.limits("upper"), 2.0)
        self._space = low + np.array([[0.15], [0.85]]) * (high - low)

    def work(self, seconds: float) -> Iterator[Block]:
        """Work, and tell of it cycle by cycle."""
        wanted = state = self._goals()
        for k in range(round(seconds / CYCLE)):
            goals = self._goals()
            motions = [self._motion(*ends) for ends in zip(wanted, goals, strict=True)]
            plant = SimulatedArm(
                self.model, true_arm=self._arms, payload=self._loads if k % 2 else None,
                batch=len(self._arms), friction=Friction(static=1.2),
                sensors=[Encoder(2e-5, noise_std=1e-5), TorqueSensor(noise_std=NOISE)],
                plant_rate_hz=2000, keeps_truth=False, seed=1000 * self._seed + k,
            )  # fmt: skip
            self._controller.begin = k * CYCLE
            run_batch(plant, self._controller, motions, duration=CYCLE, q=state)
            wanted, state = goals, plant.state.q.copy()
            # The first sample of a run comes before its first torque.
            times = k * CYCLE + plant.logs["q"].time[1:]
            q, tau = (
                np.moveaxis(plant.logs[signal].columns, 1, 2)[:, 1:]
                for signal in ("q", "tau")
            )
            yield Block(times, q + self._controller.error(times), tau)

    def _goals(self) -> np.ndarray:
        size = (len(self._arms), self.model.dof)
        return self._random.uniform(*self._space, size)

    def _motion(self, begin: np.ndarray, end: np.ndarray) -> Sequence:
        took = float(self._random.uniform(1.2, 2.0))
        rest = CYCLE - 0.15 - took
        return Sequence((Hold(begin, 0.15), Quintic(begin, end, took), Hold(end, rest)))


def _box(mass: float) -> InertialParameters:
    return InertialParameters.from_center_of_mass(
        mass, [0.02, 0.01, 0.08], 1e-3 * mass * np.eye(3)
    )
