"""`astley1996` Fig. 5.9: tracking with and without adaptation."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.calibration import Plan, Trace
from armwise.calibration.sensor_control import Bench, Parabola, SensorPD
from armwise.calibration.stages import Stages
from armwise.report import Figure
from papers.astley_calibration import (
    BETA,
    RANGE,
    TORQUE_STEP,
    plant,
    structure,
)
from papers.drawings import Drawing, line
from papers.rows import Row, claim, explained
from papers.single_link import RESPONSE

if TYPE_CHECKING:
    from jaxtyping import Float

JOINT = 1
"""The outer joint, as in the figure."""


class Tracking(NamedTuple):
    """Position errors of one joint along one wave, in [V] of its sensor.

    Attributes:
        time: In [s].
        same_gains: Under PD with the adaptive controller's feedback gains.
        own_gains: Under PD with gains as it would have alone, about twice those.
        adaptive: Under composite adaptive control.
    """

    time: Float[np.ndarray, " samples"]
    same_gains: Float[np.ndarray, "samples arms"]
    own_gains: Float[np.ndarray, "samples arms"]
    adaptive: Float[np.ndarray, "samples arms"]

    def late(self, errors: np.ndarray) -> float:
        """Root mean square in the second half, when all is learned."""
        return float(np.sqrt(np.mean(errors[len(errors) // 2 :] ** 2)))


@cache
def track(arms: int = 3, seconds: float = 20.0, seed: int = 0) -> Tracking:
    """Drive the outer joint along the same wave by three controllers, one by one."""
    plan, known = Plan(), structure()
    bench = Bench(
        plant(arms, seed),
        np.full(2, RANGE),
        np.broadcast_to(BETA, (arms, 2)),
        cutoff_hz=40.0,
        torque_step=TORQUE_STEP,
    )
    stages = Stages(known, bench, plan, known.arm.limits("effort"))
    stages.find_feedback()
    for j in range(2):
        stages.measure_friction(j)
    wave = stages.wave((JOINT,), plan.period, seconds)
    adaptive = stages.adaptive(Parabola(JOINT), (JOINT,), RESPONSE)
    # K_D s = K_D (ė + Λ e): the same feedback without anything learned.
    kp, kd = stages.kp.copy(), stages.kd.copy()
    kd[:, JOINT] = adaptive.kd[:, JOINT]
    kp[:, JOINT] = adaptive.rate * adaptive.kd[:, JOINT]
    alone = SensorPD(stages.kp, stages.kd)
    runs = [
        bench.follow(controller, wave, seconds)
        for controller in (SensorPD(kp, kd), alone, adaptive)
    ]
    return Tracking(runs[0].time, *(_error(run) for run in runs))


def _error(trace: Trace) -> Float[np.ndarray, "samples arms"]:
    return np.asarray(RANGE * (trace.x - trace.reference)[:, :, JOINT])


def figures() -> list[Drawing]:
    """The position errors of the first arm."""
    found = track()
    shown = (
        ("PD, the same gains", found.same_gains),
        ("PD, its own gains", found.own_gains),
        ("adaptive", found.adaptive),
    )
    figure = Figure(
        "Position error of joint 2", "time [s]", "error [V]",
        tuple(line(name, found.time, errors[:, 0]) for name, errors in shown),
    )  # fmt: skip
    return [Drawing("Fig. 5.9", figure)]


def rows() -> list[Row]:
    """The figure's factor of ten."""
    found = track()
    ours = found.late(found.adaptive)
    least = found.late(found.own_gains) / ours
    return [
        explained(
            claim("Fig. 5.9", f"tracking error of PD with {name} / adaptive",
                  "about 10", found.late(errors) / ours, above=5.0, below=15.0,
                  why="half as much either way",
                  note="joint 2, the same wave; "
                  f"{found.late(errors):.3g} and {ours:.3g} V, root mean square of "
                  "the second half"),
            "the thesis does not say which gains PD had: with PD's own, twice as "
            "stiff, the factor is {:.1f}, so that 10 lies between the two", least,
            above=1.0, below=10.0,
        )
        for name, errors in (
            ("the same gains", found.same_gains), ("its own gains", found.own_gains),
        )
    ]  # fmt: skip
