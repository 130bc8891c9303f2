"""Standard comparison of controllers on any arm: tasks, plants, gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Drive, InertialParameters
from armwise.control.adaptation import ParameterSet, UpdateLaw
from armwise.control.adaptive import (
    Composite,
    CraigHsuSastry,
    Indirect,
    SlotineLi,
)
from armwise.control.benchmark import ControllerFactory, PlantFactory
from armwise.control.feedback import PD, ResumableController, feedback_gain
from armwise.control.feedforward import (
    ComputedTorque,
    Feedforward,
    WrenchFeedforward,
)
from armwise.control.mixture import Gating, MixtureCompensator
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.motions import Motion, MotionSample, Quintic, Sinusoid, check_limits
from armwise.plants import (
    Actuator,
    Encoder,
    Measurement,
    MujocoArm,
    Payload,
    Plant,
    Sensor,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
    WristSensor,
)

if TYPE_CHECKING:
    from jaxtyping import Float


def middle_posture(arm: Arm) -> Float[np.ndarray, " dof"]:
    """The middle of every joint's range; zero where it has none."""
    lower, upper = arm.limits("lower"), arm.limits("upper")
    is_bounded = np.isfinite(lower) & np.isfinite(upper)
    return np.where(is_bounded, 0.5 * (lower + upper), 0.0)


def effective_inertia(arm: Arm, q: Float[np.ndarray, " dof"]) -> np.ndarray:
    """Inertia each joint's feedback meets: between M_ii and 1/(M⁻¹)_ii, by geometry.

    The first holds while the other joints are held, the second while they are free.
    """
    M = Dynamics(arm).mass_matrix(q)
    free: np.ndarray = np.diag(M) / np.diag(np.linalg.inv(M))
    return np.sqrt(free)


def tracking_tasks(
    arm: Arm, duration: float = 4.0, slowed: float = 1.0
) -> dict[str, Motion]:
    """A reach and a wave through the middle of the arm's range, within its limits.

    Args:
        arm: The arm.
        duration: Of the wave in [s]; the reach takes half of it.
        slowed: Factor by which the same paths take longer.

    Raises:
        ArgumentError: If the duration leaves no time to stay within limits.
    """
    feedback_gain(duration, "duration")
    feedback_gain(slowed, "slowed")
    middle = middle_posture(arm)
    # Whole periods, at a different frequency in every joint: none repeats.
    slow = 2.0 * np.pi * np.round(duration * (0.4 + 0.05 * np.arange(arm.dof)))
    omega = slow / duration
    swing = _swing(arm, middle, omega, duration)
    phase = np.arange(arm.dof) * np.pi / max(arm.dof, 1)
    signs = np.where(np.arange(arm.dof) % 2, -1.0, 1.0)
    tasks: dict[str, Motion] = {
        "reach": Quintic(
            middle - signs * swing, middle + signs * swing, slowed * duration / 2
        ),
        "wave": Sinusoid(middle, swing, omega / slowed, slowed * duration, phase),
    }
    for motion in tasks.values():
        check_limits(motion, arm)
    return tasks


def _swing(
    arm: Arm, middle: np.ndarray, omega: np.ndarray, duration: float
) -> Float[np.ndarray, " dof"]:
    """How far each joint may go to either side, with something to spare."""
    room = np.minimum(arm.limits("upper") - middle, middle - arm.limits("lower"))
    # Judgement: 1 rad without limits, and 1.2 rad at most, so that arms with wide
    # ranges are not sent through themselves.
    room = np.minimum(np.where(np.isfinite(room), room, 1.0), 1.2)
    # A quintic over 2 s in T/2 peaks at 7.5 s/T and 46.2 s/T².
    speed = arm.limits("velocity") / np.maximum(omega, 7.5 / duration)
    push = arm.limits("acceleration") / np.maximum(omega**2, 46.2 / duration**2)
    # Half the room and nine tenths of the rates remain for the controllers.
    smallest: np.ndarray = np.minimum(0.5 * room, 0.9 * np.minimum(speed, push))
    return smallest


def standard_feedback(model: Arm, natural_hz: float = 3.0) -> Callable[[], PD]:
    """Return what makes the feedback of every controller that is compared.

    Args:
        model: The assumed arm, for the inertia that each joint meets.
        natural_hz: Natural frequency in [Hz], critically damped.
    """
    feedback_gain(natural_hz, "natural_hz")
    omega = 2.0 * np.pi * natural_hz
    inertia = effective_inertia(model, middle_posture(model))
    return partial(PD, inertia * omega**2, 2.0 * inertia * omega)


def standard_controllers(
    model: Arm, natural_hz: float = 3.0, wrist: str | None = None
) -> dict[str, ControllerFactory]:
    """Every controller: PD, with gravity, feedforward, computed torque, adaptive ones.

    The mixtures of local models know nothing of the arm but its range.

    Args:
        model: The assumed arm; adaptation starts from it.
        natural_hz: Natural frequency of the feedback in [Hz], critically damped.
        wrist: Frame of a wrist sensor; adds feedforward of the wrench it measures.
    """
    feedback = standard_feedback(model, natural_hz)
    kp, kd = feedback().kp, feedback().kd
    omega = 2.0 * np.pi * natural_hz
    base = ParameterSet.base(model)
    start, typical = base.values(), typical_torque(model)
    size = _prior_size(base, typical)
    controllers: dict[str, ControllerFactory] = {
        "PD": feedback,
        "PD + gravity": partial(_forward, feedback, model, "gravity"),
        "PD + gravity where it is": partial(
            _forward, feedback, model, "gravity where it is"
        ),
        "feedforward": partial(_forward, feedback, model, "full"),
        "computed torque": partial(ComputedTorque, model, omega**2, 2.0 * omega),
        "Slotine-Li": partial(
            SlotineLi, base, 0.5 * omega, kd, UpdateLaw.gradient(0.2 * size), start
        ),
        "composite": partial(
            Composite,
            base,
            0.5 * omega,
            kd,
            UpdateLaw.bounded_gain(size**2, 0.1, 1e3 * float(np.sum(size**2))),
            torque_scale=0.02 * typical,
            weights=(1.0, 1.0),
            initial=start,
        ),
        "indirect": partial(
            Indirect,
            base,
            omega**2,
            2.0 * omega,
            UpdateLaw.bounded_gain(size**2, 0.1, 1e3 * float(np.sum(size**2))),
            0.5 * kd,
            torque_scale=0.02 * typical,
            initial=start,
        ),
        "Craig-Hsu-Sastry": partial(
            CraigHsuSastry,
            base,
            omega**2,
            2.0 * omega,
            UpdateLaw.gradient(0.2 * size),
            start,
            omega,
        ),
        "one linear model": partial(_mixture, model, kp, kd, 1),
        "mixture of local models": partial(_mixture, model, kp, kd, 8),
    }
    if wrist is not None:
        felt = partial(_felt, feedback, model, wrist)
        controllers["feedforward + wrench"] = felt
    return controllers


def _mixture(
    model: Arm, kp: np.ndarray, kd: np.ndarray, experts: int
) -> MixtureCompensator:
    """Local linear models over the range of the arm's own wave, gravity among them."""
    wave = tracking_tasks(model)["wave"].sample(np.linspace(0.0, 4.0, 200))
    lower, upper = wave.q.min(axis=0), wave.q.max(axis=0)
    gating = Gating.over(lower - 0.05, upper + 0.05, experts)
    # Adaptation is integral feedback η ‖Φ‖² on s beside K_d: with η ‖Φ‖² ≤ K_d²/4I, the
    # position gain of the weakest joint, no joint is made to oscillate by it.
    largest = 1.0 + np.sum(wave.qd**2 + wave.qdd**2, axis=1).max()
    law = UpdateLaw.gradient(float(np.min(kp) / largest))
    # Half the natural frequency, as for the other controllers with a sliding error.
    rate = float(np.median(kp / kd))
    return MixtureCompensator(gating, rate, kd, law, static=True)


def standard_plants(
    arm: Arm,
    friction: float = 0.02,
    mujoco: bool = False,
    load: Payload | None = None,
) -> dict[str, PlantFactory]:
    """The arm with friction, and perhaps a load, that no controller knows of.

    Args:
        arm: The arm as it is but for friction.
        friction: Coulomb friction of each joint as a fraction of the torque its gravity
            and motion take; viscous friction takes as much at 1 rad/s.
        mujoco: Whether to add MuJoCo's simulation beside our own.
        load: What the hand holds, on a wrist sensor at the same frame.
    """
    rough = with_friction(arm, friction)
    plants: dict[str, PlantFactory] = {
        "simulated": partial(_plant, SimulatedArm, rough, load)
    }
    if mujoco:
        plants["mujoco"] = partial(_plant, MujocoArm, rough, load)
    return plants


def compact_load(arm: Arm, mass: float, frame: str | None = None) -> Payload:
    """A cube of water's density, its centre at a frame.

    Args:
        arm: The arm that holds it.
        mass: In [kg].
        frame: Name of a link or frame; the last link's if None.
    """
    feedback_gain(mass, "mass")
    name = arm.links[-1].name if frame is None else frame
    arm.find_frame(name)
    # A cubic metre of water is 1000 kg; a cube's moment of inertia is m s²/6.
    turning = mass * (mass / 1000.0) ** (2.0 / 3.0) / 6.0
    body = InertialParameters.from_center_of_mass(
        mass, [0.0, 0.0, 0.0], turning * np.eye(3)
    )
    return Payload(name, body)


def with_friction(arm: Arm, fraction: float) -> Arm:
    """Add friction in proportion to the torques of the arm's own tasks."""
    joints = list(arm.joints)
    for size, i in zip(fraction * typical_torque(arm), arm.coordinates, strict=True):
        old = joints[i].drive
        drive = Drive(
            old.rotor_inertia,
            old.viscous + float(size),
            old.coulomb + float(size),
            old.offset,
        )
        joints[i] = replace(joints[i], drive=drive)
    return replace(arm, joints=tuple(joints))


def typical_torque(arm: Arm) -> Float[np.ndarray, " dof"]:
    """Largest torque of each joint along the arm's own wave in [N m] or [N]."""
    wave = tracking_tasks(arm)["wave"]
    sample = wave.sample(np.linspace(0.0, wave.duration, 200))
    largest = np.abs(Dynamics(arm).inverse_dynamics(*sample)).max(axis=0)
    # A joint that gravity never loads would get no friction at all.
    return np.maximum(largest, 1e-3 * largest.max())


def _prior_size(base: ParameterSet, typical: np.ndarray) -> np.ndarray:
    """Prior standard deviation of each parameter.

    A tenth of its value, as CAD data are; friction: 3 % of the joint's torque, which
    is what a good gear loses. A floor keeps parameters that start at zero adaptable.
    """
    size = 0.1 * np.abs(base.values())
    layout = base.arm.layout
    for i, column in enumerate(base.columns):
        if not layout.is_inertial[column]:
            joint = min(layout.owners[column], typical.size - 1)
            size[i] = 0.03 * typical[joint]
    floor = 1e-3 * np.abs(base.values()).max()
    return np.maximum(size, floor)


def _forward(feedback: Callable[[], PD], model: Arm, terms: str) -> Feedforward:
    return Feedforward(feedback(), model, terms)  # type: ignore[arg-type]


def _felt(feedback: Callable[[], PD], model: Arm, wrist: str) -> WrenchFeedforward:
    """Feedforward of the arm up to the sensor, and of what the sensor feels."""
    link, pose = model.find_frame(wrist)
    links = list(model.links)
    # The sensor feels the described hand as well: counted once, as it is felt.
    for frame in model.frames:
        if frame.name == wrist:
            arm_alone = links[link].inertia - frame.inertia.transformed(pose)
            links[link] = replace(links[link], inertia=arm_alone)
    bare = replace(model, links=tuple(links))
    return WrenchFeedforward(Feedforward(feedback(), bare), model, wrist)


def _plant(
    kind: type[SimulatedArm | MujocoArm],
    arm: Arm,
    load: Payload | None,
    batch: int,
    seed: int,
) -> Plant:
    return kind(
        arm,
        sensors=_sensors(load),
        batch=batch,
        seed=seed,
        payload=load,
        actuator=_motors(arm),
        keeps_truth=True,
    )


def _sensors(load: Payload | None) -> tuple[Sensor, ...] | None:
    """Exact ones, with a wrist sensor under the load."""
    if load is None:
        return None
    return (Encoder(), Tachometer(), TorqueSensor(), WristSensor(load.frame))


def _motors(arm: Arm) -> Actuator:
    return Actuator(saturation=arm.limits("effort"))


# Several controllers side by side on one batch of plants.


class Partition:
    """Gives every run of plants in a batch to a controller of its own.

    Args:
        parts: Controllers and how many plants each one serves, in order.
    """

    def __init__(self, parts: Sequence[tuple[ResumableController, int]]) -> None:
        self.parts = tuple(parts)
        ends = np.cumsum([count for _, count in self.parts])
        self._slices = [
            slice(int(end) - count, int(end))
            for (_, count), end in zip(self.parts, ends, strict=True)
        ]

    @property
    def batch(self) -> int:
        """Plants served in all."""
        return sum(count for _, count in self.parts)

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        if batch != self.batch:
            raise ArgumentError(
                f"The controllers serve {self.batch} plants; the plant has {batch}."
            )
        for controller, count in self.parts:
            controller.reset(count, period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        is_shared = reference.q.ndim == 1 or len(reference.q) == 1
        tau = np.empty((self.batch, reference.q.shape[-1]))
        for (controller, _), rows in zip(self.parts, self._slices, strict=True):
            own = (
                reference if is_shared else MotionSample(*(x[rows] for x in reference))
            )
            measured = Measurement(
                *(None if x is None else x[rows] for x in measurement)
            )
            tau[rows] = controller.torque(t, own, measured)
        return tau

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {
            f"part_{i}.{key}": value
            for i, (controller, _) in enumerate(self.parts)
            for key, value in controller.to_dict().items()
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        for i, (controller, _) in enumerate(self.parts):
            prefix = f"part_{i}."
            own = {
                key.removeprefix(prefix): value
                for key, value in state.items()
                if key.startswith(prefix)
            }
            controller.restore(own)
