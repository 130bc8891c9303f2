"""`atkeson1986` App. A: feedforward and computed torque on the direct-drive arm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.control import PD, ComputedTorque, Feedforward, ResumableController
from armwise.motions import Quintic
from armwise.plants import Actuator, SimulatedArm, run
from armwise.report import Figure
from papers.direct_drive import believed_arm, direct_drive_arm, gains
from papers.drawings import Drawing, line
from papers.rows import Row, agrees, better, claim

if TYPE_CHECKING:
    from jaxtyping import Float

MOTION = Quintic(
    np.deg2rad([80.0, 269.1, -30.0]), np.deg2rad([330.0, 19.1, 220.0]), 1.3
)
"""The 250° motion of all three joints: 360 °/s and 854 °/s² at most."""

ANALOG = gains(np.array([20.0, 25.0, 30.0]), 1.0)
"""Stiff and well damped, as the analog servos were; the thesis gives no numbers."""

DIGITAL = np.array([13.0, 20.0, 20.0])
"""Natural frequencies in [rad/s] that 133 Hz and a period of computing allow."""

MODEL_ERROR = 0.03
"""How far the controllers' model is off; roughly what identification left."""


def analog_controllers(model: Arm) -> dict[str, ResumableController]:
    """The five controllers of App. A, in its order."""
    kp, kd = ANALOG
    return {
        "1 PD, position": PD(kp, kd, velocity_reference=False),
        "2 PD, position + gravity": Feedforward(
            PD(kp, kd, velocity_reference=False), model, "gravity"
        ),
        "3 PD, position and velocity": PD(kp, kd),
        "4 PD, position and velocity + gravity": Feedforward(
            PD(kp, kd), model, "gravity"
        ),
        "5 PD + full feedforward": Feedforward(PD(kp, kd), model),
    }


def digital_controllers(model: Arm) -> dict[str, ResumableController]:
    """The three controllers that ran on the 68000."""
    kp, kd = gains(DIGITAL, 1.0)
    return {
        "PD": PD(kp, kd),
        "feedforward": Feedforward(PD(kp, kd), model),
        "computed torque": ComputedTorque(model, DIGITAL**2, 2.0 * DIGITAL),
    }


@dataclass(frozen=True, eq=False)
class Tracking:
    """How a controller followed the motion.

    Attributes:
        time: In [s].
        error: Of each joint in [°].
    """

    time: Float[np.ndarray, " samples"]
    error: Float[np.ndarray, "samples 3"]

    @property
    def peak(self) -> Float[np.ndarray, " 3"]:
        """Largest error of each joint in [°]."""
        return np.asarray(np.abs(self.error).max(axis=0))


def follow(controller: ResumableController, plant: SimulatedArm) -> Tracking:
    """Run the motion under a controller."""
    recording = run(plant, controller, MOTION)
    time = recording["true_q_1"].time
    q = np.stack([recording[f"true_q_{j}"].values for j in (1, 2, 3)], axis=1)
    return Tracking(time, np.rad2deg(q - MOTION.sample(time).q))


@cache
def analog_errors(third_joint_friction: bool = True) -> dict[str, Tracking]:
    """The five controllers, references at 1 kHz."""
    model = believed_arm(MODEL_ERROR)
    plant = SimulatedArm(direct_drive_arm(third_joint_friction))
    return {
        name: follow(controller, plant)
        for name, controller in analog_controllers(model).items()
    }


@cache
def digital_errors() -> dict[str, Tracking]:
    """The three digital controllers, 133 Hz, a period late."""
    model = believed_arm(MODEL_ERROR)
    late = Actuator(delay=1.0 / 133.0)
    plant = SimulatedArm(direct_drive_arm(), control_rate_hz=133.0, actuator=late)
    return {
        name: follow(controller, plant)
        for name, controller in digital_controllers(model).items()
    }


def figures() -> list[Drawing]:
    """Figures 2 and 3 of App. A."""
    five = dict(list(analog_errors().items())[2:])
    return [
        *_error_drawings(
            "App. A, analog servos", five,
            "controllers 1 and 2 are out of the graph's range, as in the thesis",
        ),
        *_error_drawings("App. A, digital servos at 133 Hz", digital_errors()),
    ]  # fmt: skip


def _error_drawings(
    experiment: str, found: dict[str, Tracking], note: str = ""
) -> list[Drawing]:
    return [
        Drawing(
            experiment,
            Figure(
                f"Trajectory error of joint {j + 1}", "time [s]", "error [°]",
                tuple(line(n, x.time, x.error[:, j]) for n, x in found.items()),
            ),
            note if j == 2 else "",
        )
        for j in range(3)
    ]  # fmt: skip


def rows() -> list[Row]:
    """Figures 2 and 3 of App. A, ours beside the thesis'."""
    return [*_motion_rows(), *_analog_rows(), *_digital_rows()]


def _motion_rows() -> list[Row]:
    sample = MOTION.sample(np.linspace(0.0, MOTION.duration, 3001))
    speed, push = (float(np.rad2deg(np.abs(x).max())) for x in (sample.qd, sample.qdd))
    return [
        agrees("App. A, analog servos", "peak velocity of the motion [°/s]", 360, speed,
               within=0.01),
        agrees("App. A, analog servos", "peak acceleration of the motion [°/s²]", 854,
               push, within=0.01),
    ]  # fmt: skip


_IDEAL = (
    "amplifiers and motors are ideal here, bearing friction is that of `direct_drive`; "
    "the thesis gives no gains: 3.2, 4.0, 4.8 Hz, critically damped"
)


def _analog_rows() -> list[Row]:
    errors = {name: found.peak for name, found in analog_errors().items()}
    full = errors["5 PD + full feedforward"]
    free = analog_errors(third_joint_friction=False)["5 PD + full feedforward"].peak
    one, two, three, four, five = (float(np.linalg.norm(e)) for e in errors.values())
    experiment = "App. A, analog servos"
    sizes = ", ".join(f"{x:.2f}°" for x in (one, two, three, four, five))
    return [
        claim(experiment, "peak error of 1 and 2 over that of 3",
              "1 and 2 out of the graph's range, 3 much better",
              (one / three, two / three), above=2.0, why="twice as far at least",
              shown=f"{one / three:.1f}, {two / three:.1f} ({sizes} of 1 to 5)",
              note=_IDEAL),
        claim(experiment, "peak error of 3 over that of 4", "4 little better than 3",
              three / four, above=1.0, below=1.5,
              why="better, and by less than half", note=_IDEAL),
        claim(experiment, "peak error of 4 over that of 5", "5 best", four / five,
              above=1.1, why="a tenth at least", note=_IDEAL),
        *(
            better(experiment, f"full feedforward, peak error of joint {j + 1} [°]",
                   printed, float(full[j]), note=_IDEAL)
            for j, printed in enumerate((0.33, 0.84, 1.4))
        ),
        claim(experiment, "full feedforward, joint 3, with over without its friction",
              "ruled by friction and motor dynamics", full[2] / free[2], above=2.0,
              why="friction makes the larger part of the error",
              shown=f"{full[2] / free[2]:.1f} ({full[2]:.2f}° and {free[2]:.2f}°)",
              note=_IDEAL),
    ]  # fmt: skip


def _digital_rows() -> list[Row]:
    errors = {name: found.peak for name, found in digital_errors().items()}
    pd, forward, computed = errors.values()
    note = (
        "133 Hz, torque one period late; gains 2.1, 3.2, 3.2 Hz are ours (the thesis "
        "has none): its PD error sets their scale, its gain by feedforward does not "
        "follow, for arithmetic is not fixed-point and motors are ideal here"
    )
    experiment = "App. A, digital servos at 133 Hz"
    printed = {"PD": (4.4, 3.5), "feedforward": (2.2, 2.0), "computed torque": (2.2, 2)}
    ratio = float(np.linalg.norm(forward) / np.linalg.norm(computed))
    return [
        *(
            better(experiment, f"{name}: peak errors of joints 1 and 2 [°]",
                   printed[name], e[:2], note=note)
            for name, e in errors.items()
        ),
        better(experiment, "PD's error over feedforward's, joints 1 and 2",
               (2.0, 1.75), pd[:2] / forward[:2], less=False, note=note),
        better(experiment, "PD's error over computed torque's, joints 1 and 2",
               (2.0, 1.75), pd[:2] / computed[:2], less=False, note=note),
        claim(experiment, "feedforward error over computed torque's",
              "no clear distinction", ratio, above=0.67, below=1.5,
              why="less than half as much more either way", note=note),
    ]  # fmt: skip
