"""Closed loops on MuJoCo: its integrator, its friction, and what models leave out.

Arms under PD control with gravity compensation, as a robot's own controller would run
them. Nothing here shares an equation with what identifies them: MuJoCo steps the bodies
and holds joints that stick; encoders, torque noise, lag and mismatch are written below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armwise.arms import Arm, Drive
from armwise.control import largest_torque
from armwise.dynamics import Dynamics
from armwise.motions import Motion, random_motion
from armwise.plants import import_mujoco, perturbed
from armwise.plants.mujoco_arm import spec_from_arm
from armwise.recordings import Recording

KINDS = ("plain", "stribeck", "load", "elastic", "gain", "thinning", "position")
"""What a plant does beyond viscous and Coulomb friction, one thing at a time."""

_SUBSTEP = 5e-4
"""Step of MuJoCo in [s], Runge and Kutta's: semi-implicit steps would themselves delay
the motion by half of one. A quarter of it changes no angle by more than 1e-7 rad, under
Stribeck's friction 1e-5."""


@dataclass(frozen=True)
class PlantSetting:
    """How a loop differs from the ideal one.

    Attributes:
        kind: One of KINDS.
        rate_hz: Torques and samples a second.
        encoder_bits: Counts of a turn, as a power of two.
        friction: Coulomb friction as a fraction of a joint's largest torque.
        noise: Torque noise, likewise, between 0.05 and 0.7 N m.
        lag: Bounds of the torque's delay in [s].
        stickiness: MuJoCo's time constant of friction in [s]: how softly joints stick.
        stiffness: Torque of the controller per error in [1/rad], as a multiple of a
            joint's largest; its damping in [s/rad] is a tenth of that.
    """

    kind: str = "plain"
    rate_hz: float = 1000.0
    encoder_bits: int = 16
    friction: float = 0.06
    noise: float = 0.006
    lag: tuple[float, float] = (0.5e-3, 2e-3)
    stickiness: float = 0.02
    stiffness: float = 20.0


@dataclass(frozen=True, eq=False)
class ForeignRun:
    """Logs of one plant, and the truth behind them.

    Attributes:
        description: The arm as its user has it: off by a fifth, without friction.
        truth: The arm as it is.
        lag: Delay of the torque behind the motion in [s].
        log, other: A motion to identify from, and another to validate on.
        is_plain: Whether friction is viscous and Coulomb's, and nothing else is off.
    """

    description: Arm
    truth: Arm
    lag: float
    log: Recording
    other: Recording
    is_plain: bool = True


def foreign_run(
    arm: Arm, setting: PlantSetting, seed: int, duration: float = 20.0
) -> ForeignRun:
    """Move an arm of this make along random motions and log it.

    Args:
        arm: The make; every run has inertias and friction of its own, 5 % apart.
        setting: What the plant does.
        seed: Of arm, description, motion, lag and noise.
        duration: Of the log in [s]; the log to validate on lasts half as long.
    """
    rng = np.random.default_rng([seed, 23])
    motions = [lively_motion(arm, 2 * seed + k, duration / (k + 1)) for k in range(2)]
    # Friction's size must not vary from run to run by what a random motion draws.
    size = largest_torque(arm, lively_motion(arm, 0, duration))
    # Drives of a wrist are smaller than a shoulder's, but by no more than this.
    size = np.maximum(size, 0.04 * size.max())
    truth = perturbed(with_drives(arm, size, setting.friction), 0.05, rng)
    description = perturbed(arm, 0.2, rng)
    lag = float(rng.uniform(*setting.lag))
    gains = 1.0 + 0.03 * rng.choice([-1.0, 1.0], arm.dof) * (setting.kind == "gain")
    loop = ForeignLoop(truth, description, setting, size)
    log, other = (loop.log(motion, lag, rng, gains) for motion in motions)
    return ForeignRun(description, truth, lag, log, other, setting.kind == "plain")


def lively_motion(arm: Arm, seed: int, duration: float) -> Motion:
    """A random motion that excites what there is within a robot's usual speeds."""
    return random_motion(
        arm, seed, duration, harmonics=round(0.8 * duration), roughness=0.5, fastest=1.6
    )


def with_drives(arm: Arm, size: np.ndarray, friction: float) -> Arm:
    """Give every joint a rotor and friction in proportion to its torque."""
    joints = list(arm.joints)
    for j, i in enumerate(arm.coordinates):
        # Viscous friction of 1 rad/s as strong as Coulomb's; a rotor as heavy as a
        # hundredth of the torque would turn at 1 rad/s².
        drive = Drive(0.01 * size[j], friction * size[j], friction * size[j], 0.0)
        drive = replace(drive, offset=0.005 * size[j] * (-1.0) ** j)
        joints[i] = replace(joints[i], drive=drive)
    return replace(arm, joints=tuple(joints))


class ForeignLoop:
    """PD control with gravity compensation of a MuJoCo model.

    Args:
        truth: The arm as it is.
        model: The controller's, for gravity.
        setting: What plant and loop do.
        size: Torque of every joint in [N m] that noise, friction and gains go by.
    """

    def __init__(
        self, truth: Arm, model: Arm, setting: PlantSetting, size: np.ndarray
    ) -> None:
        self._mujoco = import_mujoco()
        self._setting, self._size = setting, size
        self._arm, self._gravity = truth, Dynamics(model)
        drives = [truth.joints[i].drive for i in truth.coordinates]
        self._coulomb = np.array([d.coulomb for d in drives])
        self._viscous = np.array([d.viscous for d in drives])
        self._offset = np.array([d.offset for d in drives])
        if setting.kind == "elastic":
            self._model = _elastic(truth, size)
        else:
            self._model = spec_from_arm(truth).compile()
        self._model.opt.timestep = _SUBSTEP
        self._model.opt.integrator = int(self._mujoco.mjtIntegrator.mjINT_RK4)
        self._model.dof_solref[:, 0] = setting.stickiness
        names = truth.coordinate_names
        self._dof = np.array([int(self._model.joint(n).dofadr[0]) for n in names])
        if setting.kind == "thinning":
            # Half of viscous friction as |q̇|^0.6, whatever MuJoCo's polynomial says.
            self._model.dof_damping[self._dof] *= 0.5

    def log(
        self,
        motion: Motion,
        lag: float,
        rng: np.random.Generator,
        gains: float | np.ndarray = 1.0,
    ) -> Recording:
        """Follow a motion, and log torques late, times gains, with noise."""
        time, q, torque = self.follow(motion, rng)
        tau = _delayed(torque, lag * self._setting.rate_hz) * gains
        noise = np.clip(self._setting.noise * self._size, 0.05, 0.7)
        tau = tau + noise * rng.standard_normal(tau.shape)
        return Recording.from_arrays(time, q=q, tau=tau)

    def follow(
        self, motion: Motion, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Follow a motion: times, positions as encoders show them, torques."""
        setting, model, dof = self._setting, self._model, self._dof
        period = 1.0 / setting.rate_hz
        steps = round(motion.duration / period)
        time = np.arange(steps) * period
        reference = motion.sample(time)
        data = self._mujoco.MjData(model)
        data.qpos[dof], data.qvel[dof] = reference.q[0], reference.qd[0]
        resolution = 2.0 * np.pi / 2**setting.encoder_bits
        zero = rng.uniform(-0.5, 0.5, dof.size)
        kp, kd = setting.stiffness * np.array([1.0, 0.1])[:, None] * self._size
        retention = np.exp(-2.0 * np.pi * 60.0 * period)
        gravity = self._gravity.gravity_torque(reference.q)
        ticks = max(1, round(period / _SUBSTEP))
        q, torque = np.empty((2, steps, dof.size))
        speed, last = reference.qd[0].copy(), None
        for k in range(steps):
            q[k] = (np.round(data.qpos[dof] / resolution + zero) - zero) * resolution
            if last is not None:
                speed += (1.0 - retention) * ((q[k] - last) / period - speed)
            last = q[k]
            error, slip = reference.q[k] - q[k], reference.qd[k] - speed
            torque[k] = kp * error + kd * slip + gravity[k]
            for _ in range(1 if setting.kind in _STEADY else ticks):
                self._apply(data, torque[k])
                count = ticks if setting.kind in _STEADY else 1
                self._mujoco.mj_step(model, data, count)
        if not np.isfinite(data.qpos).all() or data.warning.number.any():
            raise RuntimeError("The plant ran away.")
        return time, q, torque

    def _apply(self, data: Any, torque: np.ndarray) -> None:
        """Set the torques of the next step, and friction that depends on the state."""
        kind, dof = self._setting.kind, self._dof
        applied = torque - self._offset
        v, q = data.qvel[dof], data.qpos[dof]
        if kind == "stribeck":
            factor = 1.0 + 0.5 * np.exp(-((v / 0.1) ** 2))
            self._model.dof_frictionloss[dof] = self._coulomb * factor
        elif kind == "load":
            load = np.abs(data.qfrc_bias[dof])
            self._model.dof_frictionloss[dof] = self._coulomb + 0.06 * load
        elif kind == "position":
            self._model.dof_frictionloss[dof] = self._coulomb * (1 + 0.25 * np.sin(q))
        elif kind == "thinning":
            applied = applied - 0.5 * self._viscous * np.sign(v) * np.abs(v) ** 0.6
        data.qfrc_applied[dof] = applied


_STEADY = ("plain", "gain", "elastic")
"""Kinds whose friction is MuJoCo's own, so that a period is one call."""


def _elastic(truth: Arm, size: np.ndarray) -> Any:
    """The arm with a spring between each rotor and its link."""
    mujoco = import_mujoco()
    spec = spec_from_arm(truth)
    for i in truth.coordinates:
        joint = truth.joints[i]
        body = spec.body(truth.links[i].name)
        # A torque of 60 N m winds a joint of 20 kN m/rad by 3 mrad.
        stiffness = 20e3 * size[truth.coordinates.index(i)] / 60.0
        body.add_joint(
            name=f"{joint.name} spring",
            type=mujoco.mjtJoint.mjJNT_HINGE,
            axis=joint.axis,
            pos=joint.anchor,
            stiffness=stiffness,
            damping=[0.0005 * stiffness, 0.0, 0.0],
        )
    return spec.compile()


def _delayed(torque: np.ndarray, samples: float) -> np.ndarray:
    """What a sensor with an anti-aliasing filter shows of held torques, late.

    The mean over a control period around a moment is linear between the moments at
    which periods have their middle.
    """
    wanted = np.arange(len(torque)) - samples - 0.5
    whole = np.clip(np.floor(wanted).astype(int), 0, len(torque) - 2)
    u = np.clip(wanted - whole, 0.0, 1.0)[:, None]
    return np.asarray((1.0 - u) * torque[whole] + u * torque[whole + 1])
