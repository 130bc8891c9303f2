"""Contact on MuJoCo: pushes seen in time, and false alarms of an imperfect model.

An arm with friction that no one told us about is identified from one log, the momentum
observer learns its thresholds from another, and then the arm works on: undisturbed for
minutes or an hour, and pushed at random joints by a tenth of their torque limits.
MuJoCo moves the arm; encoders count, torques are noisy.

    python -m studies.contact --minutes 60 --pushes 1000
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import numpy as np

import armwise as aw
from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.monitoring import MomentumObserver
from armwise.motions import random_motion
from armwise.plants import import_mujoco, perturbed
from armwise.plants.mujoco_arm import spec_from_arm
from armwise.recordings import Recording, Samples
from studies.foreign_plants import with_drives

RATE_HZ = 1000.0
PUSH = 0.1
"""Size of a push, as a fraction of the joint's torque limit."""

_PERIOD = 20.0
"""Length of a motion in [s]; each is another."""


class Plant:
    """An arm on MuJoCo under PD control with gravity compensation.

    Args:
        arm: Its make; the plant has inertias 5 % away, rotors and dry friction.
        seed: Of all that is drawn.
    """

    def __init__(self, arm: Arm, seed: int) -> None:
        self._mujoco = import_mujoco()
        self._rng = np.random.default_rng(seed)
        self.limit = arm.limits("effort")
        truth = perturbed(with_drives(arm, 0.5 * self.limit, 0.05), 0.05, self._rng)
        self.description = perturbed(arm, 0.2, self._rng)
        self._model = spec_from_arm(truth).compile()
        self._model.opt.timestep = 1.0 / RATE_HZ
        self._model.opt.integrator = self._mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self._gravity = Dynamics(self.description)
        self._seed = seed

    def motions(self, seconds: float, first: int) -> Iterator[Samples]:
        """Work undisturbed, a motion of twenty seconds after the other."""
        for k in range(round(seconds / _PERIOD)):
            yield self.follow(first + k, np.zeros((self._steps, self.limit.size)))

    def follow(self, seed: int, push: np.ndarray) -> Samples:
        """Follow a random motion with torques from outside (steps, n)."""
        arm = self.description
        motion = random_motion(
            arm, 1000 * self._seed + seed, _PERIOD, harmonics=12, roughness=0.7,
            fastest=1.3,
        )  # fmt: skip
        mujoco, model = self._mujoco, self._model
        data = mujoco.MjData(model)
        time = np.arange(self._steps) / RATE_HZ
        reference = motion.sample(time)
        feed = self._gravity.inverse_dynamics(*reference)
        count = 2.0 * np.pi / 2**19
        kp, kd = 15.0 * self.limit, 1.2 * self.limit
        kept = np.exp(-2.0 * np.pi * 100.0 / RATE_HZ)
        data.qpos[:], data.qvel[:] = reference.q[0], reference.qd[0]
        q, qd, tau = np.empty((3, self._steps, arm.dof))
        noise = 0.003 * self.limit * self._rng.normal(size=q.shape)
        speed, last = reference.qd[0].copy(), None
        for k in range(self._steps):
            now = np.round(data.qpos / count) * count
            if last is not None:
                speed = kept * speed + (1.0 - kept) * (now - last) * RATE_HZ
            last = now
            torque = kp * (reference.q[k] - now) + kd * (reference.qd[k] - speed)
            torque += feed[k]
            q[k], qd[k], tau[k] = now, speed, torque
            data.qfrc_applied[:] = torque + push[k]
            mujoco.mj_step(model, data)
        if data.warning.number.any():
            raise RuntimeError("The plant ran away.")
        rest = np.zeros_like(q)
        return Samples(time, q, qd, rest, tau + noise, arm=arm)

    @property
    def _steps(self) -> int:
        return round(_PERIOD * RATE_HZ)

    def pushes(self, count: int, first: int) -> Iterator[tuple[Samples, list[int]]]:
        """Be pushed once a second for a tenth of one; with the rows it begins at."""
        each = round(_PERIOD) - 1
        for k in range(-(-count // each)):
            push = np.zeros((self._steps, self.limit.size))
            rows = []
            for s in range(min(each, count - k * each)):
                row = round(RATE_HZ * (s + 0.8 + self._rng.uniform(0.0, 0.1)))
                joint = int(self._rng.integers(self.limit.size))
                size = PUSH * self.limit[joint] * self._rng.choice([-1.0, 1.0])
                push[row : row + 100, joint] = size
                rows.append(row)
            yield self.follow(first + k, push), rows


def observer_of(plant: Plant, bandwidth_hz: float | None) -> MomentumObserver:
    """Identify the plant from one log; learn thresholds from others."""
    (log,) = plant.motions(_PERIOD, 0)
    recording = Recording.from_arrays(log.time, q=log.q, tau=log.tau)
    estimate = aw.identify(plant.description, recording)
    observer = MomentumObserver(estimate, rate_hz=RATE_HZ, bandwidth_hz=bandwidth_hz)
    observer.learn(Samples.concatenate(list(plant.motions(4.0 * _PERIOD, 1))))
    return observer


def main() -> None:
    """Print false alarms and delays."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--pushes", type=int, default=100)
    parser.add_argument("--arm", default="ur10")
    parser.add_argument("--bandwidth", type=float, help="[Hz]; else chosen")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    plant = Plant(aw.load_arm(options.arm), options.seed)
    observer = observer_of(plant, options.bandwidth)
    learnt = observer.thresholds
    assert learnt is not None
    print(
        json.dumps(
            {
                "stated_false_alarms_per_hour": learnt.false_alarms_per_hour,
                "bandwidth_hz": observer.bandwidth_hz.tolist(),
            }
        ),
        flush=True,
    )
    delays, early = [], 0
    for log, rows in plant.pushes(options.pushes, 10_000):
        seen = observer.observe(log)
        contacts = np.round(np.array(seen.contacts) * RATE_HZ).astype(int)
        for row in rows:
            after = contacts[(contacts >= row) & (contacts < row + 100)]
            delays.append((after[0] - row) / RATE_HZ if after.size else np.inf)
            early += int(np.any((contacts >= row - 300) & (contacts < row)))
    late = np.array(delays)
    print(
        json.dumps(
            {
                "pushes": len(late),
                "within_20_ms": round(float(np.mean(late <= 0.02)), 4),
                "seen": round(float(np.mean(np.isfinite(late))), 4),
                "median_ms": round(1e3 * float(np.median(late)), 1),
                "alarms_before_a_push": early,
            }
        ),
        flush=True,
    )
    alarms, largest = 0, np.zeros(plant.limit.size)
    for log in plant.motions(60.0 * options.minutes, 20_000):
        seen = observer.observe(log)
        alarms += len(seen.contacts)
        ratio = np.abs(seen.torque) / seen.threshold
        largest = np.maximum(largest, ratio.max(axis=0))
    print(
        json.dumps(
            {
                "minutes": options.minutes,
                "false_alarms": alarms,
                "largest_ratio": largest.round(3).tolist(),
                "threshold_over_limit": (
                    np.median(seen.threshold, axis=0) / plant.limit
                )
                .round(3)
                .tolist(),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
