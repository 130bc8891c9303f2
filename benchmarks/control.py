"""How long a control step takes, and what the papers' grid costs.

python benchmarks/control.py [--grid]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from armwise.arms import load_arm
from armwise.control import (
    PD,
    Composite,
    ComputedTorque,
    Feedforward,
    ParameterSet,
    ResumableController,
    SlotineLi,
    UpdateLaw,
)
from armwise.motions import MotionSample
from armwise.plants import Measurement


def step_time(controller: ResumableController, dof: int, batch: int = 1) -> float:
    """Least mean time over 200 short rounds of one call of `torque`, in [µs]."""
    rng = np.random.default_rng(0)
    wanted = [MotionSample(*rng.normal(size=(3, batch, dof))) for _ in range(25)]
    seen = [
        Measurement(q=rng.normal(size=(batch, dof)), qd=rng.normal(size=(batch, dof)))
        for _ in range(25)
    ]
    controller.reset(batch, 1e-3)
    rounds = []
    for _ in range(200 if batch == 1 else 40):
        begin = time.perf_counter()
        for reference, measurement in zip(wanted, seen, strict=True):
            controller.torque(0.0, reference, measurement)
        rounds.append((time.perf_counter() - begin) / len(wanted))
    return 1e6 * min(rounds)


def main() -> None:
    arm = load_arm("panda")
    base = ParameterSet.base(arm, ("viscous", "coulomb"))
    kd = np.array([10.0, 20, 10, 8, 0.5, 0.5, 0.1])
    controllers: dict[str, ResumableController] = {
        "PD": PD(10.0 * kd, kd),
        "feedforward": Feedforward(PD(10.0 * kd, kd), arm),
        "computed torque": ComputedTorque(arm, 100.0, 20.0),
        "Slotine-Li": SlotineLi(base, 10.0, kd, UpdateLaw.gradient(1e-4)),
        "composite": Composite(base, 10.0, kd, UpdateLaw.bounded_gain(1e-4, 0.1, 1.0)),
    }
    print(f"panda, {base.count} adapted parameters, one step of one plant and of 200:")
    for name, controller in controllers.items():
        one = step_time(controller, arm.dof)
        many = step_time(controller, arm.dof, 200)
        print(f"  {name:16s} {one:8.1f} µs {many:10.1f} µs  ({many / one:.1f} times)")
    if "--grid" in sys.argv:
        grid()


def grid() -> None:
    from papers.mitchell_grid import run_grid

    begin = time.perf_counter()
    frame = run_grid(workers=2)
    took = time.perf_counter() - begin
    lost = frame.height - int(frame["stable"].sum())
    print(f"Mitchell's grid: {frame.height} cells, {lost} unstable, {took:.0f} s")


if __name__ == "__main__":
    main()
