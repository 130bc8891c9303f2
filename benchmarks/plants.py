"""How fast plants run: a closed loop, a batch, and open-loop steps beside MuJoCo's.

One thread; processor time, best of several, both in this process. Ratios hold, times
vary with the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from armwise.arms import Arm, Drive, load_arm
from armwise.motions import MotionSample, Quintic
from armwise.plants import (
    Encoder,
    Measurement,
    MujocoArm,
    RungeKutta4,
    SemiImplicit,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
)
from armwise.plants import run as follow
from armwise.plants import run_batch as follow_all
from benchmarks.figures import Row

STEPS = 10_000
BATCH = 200
GAINS = np.array([1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.02])


class Pd:
    """A controller in plain Python."""

    def reset(self, batch: int, period: float) -> None:
        pass

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> np.ndarray:
        error = reference.q - measurement.q
        return GAINS * (100.0 * error + 20.0 * (reference.qd - measurement.qd))


def best(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def closed_loop(repeats: int = 3) -> list[Row]:
    arm = load_arm("panda")
    motion = Quintic(np.zeros(7), np.ones(7), 10.0)
    noisy = (
        Encoder.from_counts(4096, 100),
        Tachometer(noise_std=0.01),
        TorqueSensor(noise_std=0.1, bias=0.1, ripple=0.05),
    )
    single = SimulatedArm(arm)
    sensed = SimulatedArm(arm, sensors=noisy)
    many = SimulatedArm(arm, batch=BATCH)
    one = best(lambda: follow(single, Pd(), motion), repeats)
    real = best(lambda: follow(sensed, Pd(), motion), repeats)
    batch = best(lambda: follow_all(many, Pd(), motion), repeats)
    return [
        Row("10 s closed loop, 1 kHz, 7 joints [s]", one, 1.0, one, "< 1 s"),
        Row("the same with noisy sensors [s]", real, 1.0, real, "< 1 s"),
        Row(f"{BATCH} plants in one batch [s]", batch, one, batch / one, "< 20"),
    ]


def damped(arm: Arm) -> Arm:
    """Rotors and viscous friction, so that no integrator runs away in free fall."""
    drive = Drive(rotor_inertia=0.1, viscous=1.0)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


def open_loop(repeats: int = 5) -> list[Row]:
    import mujoco

    arm = damped(load_arm("panda"))
    pairs = (
        ("semi-implicit", SemiImplicit(), "implicitfast", "> 4"),
        ("Euler", SemiImplicit(), "euler", "> 4"),
        ("Runge-Kutta 4", RungeKutta4(), "rk4", "> 4"),
    )
    return [_steps_per_second(arm, mujoco.mj_step, *pair, repeats) for pair in pairs]


def _steps_per_second(
    arm: Arm,
    mj_step: Callable[..., None],
    name: str,
    ours: object,
    theirs: str,
    bar: str,
    repeats: int,
) -> Row:
    plant = SimulatedArm(arm, integrator=ours, plant_rate_hz=1000.0)
    peer = MujocoArm(arm, integrator=theirs, plant_rate_hz=1000.0)
    plant.reset(0.3 * np.ones(7))
    peer.reset(0.3 * np.ones(7))
    data, zero = peer._engine.data[0], np.zeros(7)
    mine = STEPS / best(lambda: plant.coast(zero, STEPS), repeats)
    other = STEPS / best(lambda: mj_step(peer.model, data, STEPS), repeats)
    if plant.diverged.any() or not np.isfinite(data.qvel).all():
        raise RuntimeError(f"{name}: an arm ran away; the times mean nothing.")
    return Row(f"open loop, {name} [steps/s]", mine, other, mine / other, bar)


def run() -> list[Row]:
    return [*closed_loop(), *open_loop()]


def main() -> None:
    print(f"{'':42}{'ours':>12}{'peer':>12}{'ratio':>8}  asked")
    for row in run():
        figures = f"{row.ours:12.4g}{row.theirs:12.4g}{row.ratio:8.2f}"
        print(f"{row.name:42}{figures}  {row.bar}")


if __name__ == "__main__":
    main()
