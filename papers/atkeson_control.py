"""`atkeson1986` App. A: feedforward and computed torque on the direct-drive arm."""

from __future__ import annotations

from collections.abc import Sequence
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
from papers.drawings import Drawing, line, paper_points
from papers.rig_constants import Constants, constants
from papers.rows import Row, agrees, claim, explained, own

if TYPE_CHECKING:
    from jaxtyping import Float

MOTION = Quintic(
    np.deg2rad([80.0, 269.1, -30.0]), np.deg2rad([330.0, 19.1, 220.0]), 1.3
)
"""The 250° motion of all three joints: 360 °/s and 854 °/s² at most."""

PRINTED = {"PD": ("4.4", "3.5"), "feedforward": ("2.2", "2.0")}
"""Peak errors of joints 1 and 2 with the digital servos in [°]; those of the computed
torque are the feedforward's, "with no clear distinction"."""

PRINTED_ANALOG = ("0.33", "0.84", "1.4")
"""Peak errors of the three joints with analog servos and full feedforward in [°]."""

MODEL_ERROR = 0.03
"""How far the controllers' model is off; roughly what identification left."""


@dataclass(frozen=True)
class Servos:
    """What the thesis does not print of its servos.

    Attributes:
        natural: Natural frequencies in [rad/s] that the gains give rough inertias.
        torque_loss: Fraction of the commanded torque that the motors do not give.
    """

    natural: tuple[float, float, float]
    torque_loss: float

    @property
    def gains(self) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"]]:
        """K_p and K_d, critically damped."""
        return gains(np.array(self.natural), 1.0)

    def actuator(self, delay: float = 0.0) -> Actuator:
        """Motors that lose torque, some time after the command [s]."""
        return Actuator(gain_error=-self.torque_loss, delay=delay)


def digital_servos() -> Servos:
    """Those on the 68000, as `fit_servos` found them; joint 3 has joint 2's."""
    found = constants("servos")
    one, two = found["digital"]
    return Servos((one, two, two), found["torque_loss"][0])


def analog_servos() -> Servos:
    """The stiff analog ones, alike on all joints, as `fit_servos` found them."""
    found = constants("servos")
    return Servos((found["analog"][0],) * 3, found["torque_loss"][0])


def fit_servos() -> Constants:
    """Gains of the servos and torque loss of the motors from four printed errors.

    The digital PD's errors of joints 1 and 2 give their two natural frequencies, the
    feedforward's error of joint 1 what the motors lose (back EMF, amplifiers, scaled
    fixed-point arithmetic: the thesis names no figure); the analog feedforward's error
    of joint 1 gives one frequency for the analog servos, with the same motors. Left to
    be judged: the feedforward's error of joint 2, the computed torque's of both, and
    the analog servos' of joints 2 and 3. A delay cannot do it: two periods give joint 1
    half a degree, and three are unstable. Motors that give too much torque would fit as
    well as those that lose it; losing is what back EMF and amplifiers do.
    """
    from scipy.optimize import brentq, least_squares

    (one, two), forward = PRINTED["PD"], PRINTED["feedforward"][0]

    def misfit(x: np.ndarray) -> list[float]:
        servos = Servos((np.exp(x[0]), np.exp(x[1]), np.exp(x[1])), float(x[2]))
        pd, ff, _ = digital_runs(servos).values()
        return [
            pd.peak[0] / float(one) - 1.0,
            pd.peak[1] / float(two) - 1.0,
            ff.peak[0] / float(forward) - 1.0,
        ]

    start = [np.log(18.0), np.log(28.0), 0.4]
    x = least_squares(misfit, start, diff_step=1e-3).x
    loss = float(x[2])

    def excess(log_natural: float) -> float:
        servos = Servos((float(np.exp(log_natural)),) * 3, loss)
        tracking = analog_runs(servos, only="5 PD + full feedforward")
        (found,) = tracking.values()
        return float(found.peak[0]) - float(PRINTED_ANALOG[0])

    analog = float(np.exp(brentq(excess, np.log(10.0), np.log(150.0), xtol=1e-4)))
    return {
        "digital": [float(np.exp(x[0])), float(np.exp(x[1]))],
        "torque_loss": [loss],
        "analog": [analog],
    }


def analog_controllers(model: Arm, servos: Servos) -> dict[str, ResumableController]:
    """The five controllers of App. A, in its order."""
    kp, kd = servos.gains
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


def digital_controllers(model: Arm, servos: Servos) -> dict[str, ResumableController]:
    """The three controllers that ran on the 68000."""
    (kp, kd), natural = servos.gains, np.array(servos.natural)
    return {
        "PD": PD(kp, kd),
        "feedforward": Feedforward(PD(kp, kd), model),
        "computed torque": ComputedTorque(model, natural**2, 2.0 * natural),
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


def analog_runs(
    servos: Servos,
    only: str = "",
    *,
    has_friction: bool = True,
    third_link: float = 1.0,
) -> dict[str, Tracking]:
    """The five controllers, or one of them, references at 1 kHz."""
    model = believed_arm(MODEL_ERROR, third_link=third_link)
    plant = SimulatedArm(direct_drive_arm(has_friction), actuator=servos.actuator())
    return {
        name: follow(controller, plant)
        for name, controller in analog_controllers(model, servos).items()
        if only in ("", name)
    }


def digital_runs(servos: Servos, periods: float = 1.0) -> dict[str, Tracking]:
    """The three digital controllers, 133 Hz, some periods late."""
    model = believed_arm(MODEL_ERROR)
    late = servos.actuator(delay=periods / 133.0)
    plant = SimulatedArm(direct_drive_arm(), control_rate_hz=133.0, actuator=late)
    return {
        name: follow(controller, plant)
        for name, controller in digital_controllers(model, servos).items()
    }


@cache
def analog_errors() -> dict[str, Tracking]:
    """The five controllers with the fitted servos."""
    return analog_runs(analog_servos())


@cache
def digital_errors() -> dict[str, Tracking]:
    """The three digital controllers with the fitted servos, a period late."""
    return digital_runs(digital_servos())


def figures() -> list[Drawing]:
    """Figures 2 and 3 of App. A, the printed peaks as levels."""
    five = dict(list(analog_errors().items())[2:])
    digital = [
        {f"printed, {name}": float(values[j]) for name, values in PRINTED.items()}
        for j in range(2)
    ]
    return [
        *_error_drawings(
            "App. A, analog servos", five,
            [{"printed, feedforward": float(x)} for x in PRINTED_ANALOG],
            "controllers 1 and 2 are out of the graph's range, as in the thesis",
        ),
        *_error_drawings(
            "App. A, digital servos at 133 Hz", digital_errors(), [*digital, {}],
        ),
    ]  # fmt: skip


_ACROSS = np.linspace(0.0, MOTION.duration, 16)
"""Where a printed peak is drawn, as a row of points."""


def _error_drawings(
    experiment: str,
    found: dict[str, Tracking],
    printed: Sequence[dict[str, float]],
    note: str = "",
) -> list[Drawing]:
    return [
        Drawing(
            experiment,
            Figure(
                f"Trajectory error of joint {j + 1}", "time [s]", "error [°]",
                (
                    *(line(n, x.time, x.error[:, j]) for n, x in found.items()),
                    *(
                        paper_points(n, _ACROSS, np.full(_ACROSS.size, level))
                        for n, level in printed[j].items()
                    ),
                ),
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
        agrees("App. A, analog servos", "peak velocity of the motion [°/s]", "360",
               speed, within=0.01),
        agrees("App. A, analog servos", "peak acceleration of the motion [°/s²]",
               "854", push, within=0.01),
    ]  # fmt: skip


def _analog_rows() -> list[Row]:
    errors = {name: found.peak for name, found in analog_errors().items()}
    full, gravity = errors["5 PD + full feedforward"], list(errors.values())[3]
    one, two, three, four, five = (float(np.linalg.norm(e)) for e in errors.values())
    experiment, servos = "App. A, analog servos", analog_servos()
    sizes = ", ".join(f"{x:.2f}°" for x in (one, two, three, four, five))
    ideal = Servos(servos.natural, 0.0)
    free = analog_runs(ideal, "5 PD + full feedforward", has_friction=False)
    rigid = float(next(iter(free.values())).peak[2])
    note = (
        f"servos of {servos.natural[0]:.0f} rad/s, fitted to joint 1's "
        f"{PRINTED_ANALOG[0]}°; motors as fitted on the digital servos; friction in "
        "joint 3 only, 2.5 N m, is ours"
    )
    helped = claim(
        experiment, "joint 3: peak error of 5 over that of 4",
        "for joint 3 the feedforward torques did not help", full[2] / gravity[2],
        above=0.9, below=1.1, why="no change beyond a tenth", note=note,
    )  # fmt: skip
    vague = analog_runs(servos, "5 PD + full feedforward", third_link=0.25)
    ratio = float(next(iter(vague.values())).peak[2] / gravity[2])
    return [
        claim(experiment, "peak error of 1 and 2 over that of 3",
              "1 and 2 out of the graph's range, 3 much better",
              (one / three, two / three), above=2.0, why="twice as far at least",
              shown=f"{one / three:.1f}, {two / three:.1f} ({sizes} of 1 to 5)",
              note=note),
        claim(experiment, "peak error of 3 over that of 4", "4 little better than 3",
              three / four, above=1.0, below=1.5,
              why="better, and by less than half", note=note),
        claim(experiment, "peak error of 4 over that of 5", "5 best", four / five,
              above=1.1, why="a tenth at least", note=note),
        *(
            agrees(experiment, f"full feedforward, peak error of joint {j + 1} [°]",
                   PRINTED_ANALOG[j], float(full[j]), note=note)
            for j in (1, 2)
        ),
        claim(experiment, "full feedforward, joint 3: error over that of a rigid arm "
              "without friction or torque loss", "ruled by friction and motor dynamics",
              full[2] / rigid, above=2.0, why="they make the larger part of the error",
              shown=f"{full[2] / rigid:.1f} ({full[2]:.2f}° and {rigid:.2f}°)",
              note=note),
        explained(
            helped, "the model of link 3 is right within 3 % here, and the thesis "
            "suspects its own (“may not be very good”): with a quarter of the link in "
            "the model the ratio is {:.2f}", ratio, above=0.9, below=1.1,
        ),
    ]  # fmt: skip


def _digital_rows() -> list[Row]:
    _, forward, computed = (found.peak for found in digital_errors().values())
    servos, experiment = digital_servos(), "App. A, digital servos at 133 Hz"
    pd, first = " and ".join(PRINTED["PD"]), PRINTED["feedforward"][0]
    note = (
        f"133 Hz, torque one period late; gains and torque loss fitted to PD's {pd}° "
        f"and joint 1's {first}° of the feedforward"
    )
    ratio = float(np.linalg.norm(forward[:2]) / np.linalg.norm(computed[:2]))
    return [
        own(experiment, "constants fitted to PD's two errors and to feedforward's of "
            "joint 1: natural frequencies [rad/s], torque lost",
            "one digit of the thesis each",
            (*servos.natural[:2], servos.torque_loss)),
        explained(
            agrees(experiment, "feedforward: peak error of joint 2 [°]",
                   PRINTED["feedforward"][1], float(forward[1]), note=note),
            "one loss is fitted for both motors; if joint 2's loses 2.0 / 3.5 of its "
            "torque and is driven as stiffly, its error is {:.2f}°",
            _own_loss(servos), above=1.8, below=2.2,
        ),
        agrees(experiment, "computed torque: peak errors of joints 1 and 2 [°]",
               PRINTED["feedforward"], computed[:2], note=note),
        claim(experiment, "feedforward error over computed torque's, joints 1 and 2",
              "no clear distinction", ratio, above=0.67, below=1.5,
              why="less than half as much more either way", note=note),
    ]  # fmt: skip


def _own_loss(servos: Servos) -> float:
    """A probe: joint 2's feedforward error with the loss its own errors ask for."""
    pd, forward = (float(PRINTED[name][1]) for name in ("PD", "feedforward"))
    loss = forward / pd
    stiffer = np.sqrt((1.0 - servos.torque_loss) / (1.0 - loss))
    one, two, _ = servos.natural
    other = Servos((one, two * stiffer, two * stiffer), loss)
    return float(digital_runs(other)["feedforward"].peak[1])
