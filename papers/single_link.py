"""The hand controller of `astley1996`: one run of the arm and of its outer link."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, load_arm
from armwise.calibration import (
    PARAMETER_STRIDE,
    AdaptiveCalibration,
    CosineFit,
    Plan,
    Structure,
    Trace,
    calibrate_by_adaptation,
)
from armwise.calibration.sensor_control import Bench, Parabola
from armwise.calibration.stages import Stages
from armwise.errors import ArgumentError
from armwise.plants import (
    Actuator,
    AnalogSensor,
    Friction,
    JointElasticity,
    SimulatedArm,
)
from armwise.plants.sensors import Mount, Sampler
from armwise.plants.state import State
from papers.astley_calibration import (
    ALPHA,
    BETA,
    NONLINEARITY,
    RANGE,
    TORQUE_STEP,
    plant,
    structure,
)

if TYPE_CHECKING:
    from jaxtyping import Float


RESPONSE = np.array([0.1, 1.0, 3.0, 8.0])
"""P0 of the parabola's inertia, a, b and c (§5.2.6)."""


@dataclass(frozen=True, eq=False)
class Evolution:
    """Adapted parameters over time.

    Attributes:
        time: In [s].
        values: One column each.
    """

    time: Float[np.ndarray, " instants"]
    values: Float[np.ndarray, "instants p"]

    def settled(self, column: int, scale: float) -> float:
        """When a parameter last was farther than `scale` from its end, in [s]."""
        away = np.abs(self.values[:, column] - self.values[-1, column]) > scale
        return float(self.time[np.flatnonzero(away)[-1]]) if away.any() else 0.0


def evolution(trace: Trace) -> Evolution:
    """Adapted parameters of a stage of the first arm."""
    assert trace.parameters is not None
    return Evolution(trace.time[::PARAMETER_STRIDE], trace.parameters[:, 0])


def fitted(fit: CosineFit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scaled readings that were visited, the parabola there, and the cosine.

    The parabola is the one whose cosine this is: the best over |q| ≤ 1.
    """
    wide, q = np.linspace(-1.0, 1.0, 101), np.linspace(-0.8, 0.8, 161)

    def cosine(x: np.ndarray) -> np.ndarray:
        return np.asarray(fit.moment * np.cos(fit.gain * x + fit.phase))

    parabola = np.polynomial.Polynomial.fit(wide, cosine(wide), 2)
    return q, np.asarray(parabola(q)), cosine(q)


def sensor_curve(joint: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Fig. 5.6: output [V] and angle [°] of the simulated sensor over its range."""
    angle = BETA[joint] + ALPHA[joint] * np.linspace(-RANGE, RANGE, 121)
    sensor = AnalogSensor(ALPHA[joint], BETA[joint], NONLINEARITY, bits=None)
    mount = Mount(angle.size, 1, 1e-3, np.random.default_rng(0), _no_wrench)
    state = State.at_rest(angle.size, 1)
    state.q = state.motor_q = angle[:, None]
    return sensor.mounted(mount)(state)[:, 0], np.rad2deg(angle)


def _no_wrench(frame: str) -> Sampler:
    raise ArgumentError(f"A bench of angle sensors has no wrench at {frame!r}.")


@cache
def whole_arm(plan: Plan | None = None) -> AdaptiveCalibration:
    """Calibrate one hand controller, both joints."""
    return calibrate_by_adaptation(
        plant(1),
        structure(),
        posture=BETA,
        full_scale=RANGE,
        torque_step=TORQUE_STEP,
        plan=plan,
    )


@cache
def outer_link(plan: Plan | None = None) -> AdaptiveCalibration:
    """Calibrate the second link alone, on a fixed base, with the same imperfections."""
    arm = _worn_link()
    bench = SimulatedArm(
        arm,
        sensors=[AnalogSensor(ALPHA[1:], BETA[1:], NONLINEARITY, 3e-4, bits=16)],
        friction=Friction(static=1.3, stribeck_speed=0.05),
        elasticity=JointElasticity(300.0, 0.5),
        actuator=Actuator(saturation=5.0, bits=10),
        control_rate_hz=1000.0,
        plant_rate_hz=4000.0,
        seed=0,
        keeps_truth=False,
    )
    known = Structure(arm, known=("*.my", "*.offset"), positive=("*.mx",))
    return calibrate_by_adaptation(
        bench,
        known,
        posture=BETA[1:],
        full_scale=RANGE,
        torque_step=TORQUE_STEP,
        plan=plan,
    )


def softened_error(fraction: float = 0.25, seconds: float = 15.0) -> float:
    """How much larger joint 1's error is with a fraction of its feedback gains.

    Mean position error under adaptive control in the second half of a wave.
    """
    plan, known = Plan(), structure()
    posture = np.broadcast_to(BETA, (1, 2))
    scale = np.full(2, RANGE)
    bench = Bench(plant(1), scale, posture, cutoff_hz=40.0, torque_step=TORQUE_STEP)
    stages = Stages(known, bench, plan, known.arm.limits("effort"))
    stages.find_feedback()
    for joint in range(2):
        stages.measure_friction(joint)
    wave = stages.wave((0,), plan.period, seconds)
    errors = []
    for factor in (fraction, 1.0):
        controller = stages.adaptive(Parabola(0), (0,), RESPONSE)
        controller.kd = controller.kd * np.array([factor, 1.0])
        trace = bench.follow(controller, wave, seconds)
        late = slice(len(trace.time) // 2, None)
        errors.append(np.abs(trace.x - trace.reference)[late, 0, 0].mean())
    return float(errors[0] / errors[1])


def _worn_link() -> Arm:
    arm = load_arm("hand_controller")
    joint, link = arm.joints[1], arm.links[1]
    drive = replace(joint.drive, coulomb=0.028, viscous=1e-3, rotor_inertia=5e-4)
    alone = replace(joint, parent=BASE, origin=np.eye(4), drive=drive)
    return Arm("outer_link", (alone,), (link,), gravity=arm.gravity)
