"""Wrist sensors and encoders of 1986, simulated: the rigs behind the load tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.dynamics import HeldBody
from armwise.motions import Motion, MotionSample
from armwise.plants import Encoder, Tachometer, WristSensor
from armwise.plants.sensors import Mount, Sampler
from armwise.plants.state import State
from armwise.recordings import Preparation, Samples, differentiate, low_pass

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Vibration:
    """How much a machine shakes: joint oscillations of random phase.

    Attributes:
        amplitude: Of each oscillation in [rad].
        frequencies: In [Hz].
    """

    amplitude: float = 0.0
    frequencies: tuple[float, ...] = (9.0, 14.0, 19.0)

    def added_to(
        self, motion: MotionSample, time: np.ndarray, random: np.random.Generator
    ) -> MotionSample:
        """Return the motion with the shaking on every joint."""
        q, qd, qdd = (np.array(part) for part in motion)
        for f in self.frequencies:
            omega = 2.0 * np.pi * f
            phase = random.uniform(0.0, 2.0 * np.pi, q.shape[1])
            size = self.amplitude * random.normal(size=q.shape[1])
            angle = omega * time[:, None] + phase
            q += size * np.sin(angle)
            qd += size * omega * np.cos(angle)
            qdd -= size * omega**2 * np.sin(angle)
        return MotionSample(q, qd, qdd)


@dataclass(frozen=True, eq=False)
class LoadRig:
    """An arm with encoders and a six-axis wrist sensor, both with their faults.

    Attributes:
        arm: The arm.
        frame: Where the sensor sits.
        rate_hz: Samples per second.
        resolution: One count of an encoder at the joint in [rad].
        tachometer_std: Noise of the tachometers in [rad/s]; None if there are none.
        joint_error_std: Kinematic error: zeros of the joints are off by this in [rad].
        noise_std: White noise of the wrench in [N] and [N m].
        bias_std: What is left of its zero after taring in [N] and [N m].
        drift: Its random walk in [N/√s] and [N m/√s].
        resonance_hz, damping: Of the load on the sensor's spring.
        vibration: How the machine shakes.
        gripper: What hangs on the sensor before any load.
    """

    arm: Arm
    frame: str
    rate_hz: float = 200.0
    resolution: float = 1e-4
    tachometer_std: float | None = None
    joint_error_std: float = np.deg2rad(0.8)
    noise_std: tuple[float, float] = (0.1, 0.004)
    bias_std: tuple[float, float] = (0.1, 0.006)
    drift: tuple[float, float] = (0.02, 0.001)
    resonance_hz: float = 30.0
    damping: float = 0.05
    vibration: Vibration = Vibration()
    gripper: InertialParameters = field(default_factory=InertialParameters.zero)

    def record(
        self,
        motion: Motion,
        load: InertialParameters | Sequence[InertialParameters],
        runs: int,
        seed: int,
        joint_errors: Float[np.ndarray, "runs dof"] | None = None,
    ) -> list[Run]:
        """Move a load, several times over, and read the sensors.

        Args:
            motion: What the arm does, exactly but for its vibration.
            load: What it holds, gripper aside, in the sensor frame; the same in all
                runs, or one for each.
            runs: How many times, each with other errors.
            seed: Of all errors.
            joint_errors: Zeros of the joints, to keep them the same from motion to
                motion; drawn when not given.
        """
        random = np.random.default_rng(seed)
        time = np.arange(round(motion.duration * self.rate_hz)) / self.rate_hz
        plan = motion.sample(time)
        moves = [self.vibration.added_to(plan, time, random) for _ in range(runs)]
        truth = [np.stack(part, axis=1) for part in zip(*moves, strict=True)]
        errors = self.joint_errors(runs, seed) if joint_errors is None else joint_errors
        loads = [load] * runs if isinstance(load, InertialParameters) else load
        bodies = np.stack([(x + self.gripper).vector for x in loads])
        return self._read(time, truth, bodies, errors, random)

    def joint_errors(self, runs: int, seed: int) -> Float[np.ndarray, "runs dof"]:
        """Draw how far the zeros of the joints are off in [rad]."""
        random = np.random.default_rng([seed, 1])
        return random.normal(size=(runs, self.arm.dof)) * self.joint_error_std

    def _read(
        self,
        time: np.ndarray,
        truth: Sequence[np.ndarray],
        bodies: np.ndarray,
        errors: np.ndarray,
        random: np.random.Generator,
    ) -> list[Run]:
        runs, dof = errors.shape
        held = HeldBody(self.arm, self.frame)

        def true_wrench(state: State) -> np.ndarray:
            A = held.regressor(state.q, state.qd, state.qdd)
            return np.einsum("rcp,rp->rc", A, bodies)

        def wrench(_: str) -> Sampler:
            return true_wrench

        mount = Mount(runs, dof, 1.0 / self.rate_hz, random, wrench)
        encoder = Encoder(self.resolution, offset=errors).mounted(mount)
        wrist = self._wrist(random, runs).mounted(mount)
        speed = Tachometer(self.tachometer_std or 0.0).mounted(mount)
        state = State.at_rest(runs, dof)
        log: list[tuple[np.ndarray, ...]] = []
        for t, q, qd, qdd in zip(time, *truth, strict=True):
            state.time, state.q, state.qd, state.qdd = float(t), q, qd, qdd
            state.motor_q, state.motor_qd = q, qd
            log.append((encoder(state), speed(state), wrist(state)))
        q, qd, w = (np.stack(part, axis=1) for part in zip(*log, strict=True))
        has_speed = self.tachometer_std is not None
        return [
            Run(time, q[k], qd[k] if has_speed else None, w[k], self.rate_hz)
            for k in range(runs)
        ]

    def _wrist(self, random: np.random.Generator, runs: int) -> WristSensor:
        def six(pair: tuple[float, float]) -> np.ndarray:
            return np.repeat(pair, 3)

        return WristSensor(
            self.frame,
            noise_std=six(self.noise_std),
            bias=random.normal(size=(runs, 6)) * six(self.bias_std),
            drift=six(self.drift),
            resonance_hz=self.resonance_hz,
            damping=self.damping,
        )


@dataclass(frozen=True, eq=False)
class Run:
    """What the sensors said during one motion.

    Attributes:
        time: In [s].
        q: Encoders in [rad].
        qd: Tachometers in [rad/s], if there are any.
        wrench: Wrist sensor in [N] and [N m].
        rate_hz: Samples per second.
    """

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None
    wrench: np.ndarray
    rate_hz: float

    def cut(self, begin: float, end: float) -> Run:
        """Return what was said between two instants [s]."""
        kept = (self.time >= begin - 1e-9) & (self.time < end - 1e-9)
        qd = None if self.qd is None else self.qd[kept]
        return Run(self.time[kept], self.q[kept], qd, self.wrench[kept], self.rate_hz)

    def differentiated(self, cutoff_hz: float) -> Samples:
        """Low-pass everything alike and differentiate, as the paper did."""
        step = 1.0 / self.rate_hz

        def smooth(x: np.ndarray) -> np.ndarray:
            return np.apply_along_axis(low_pass, 0, x, cutoff_hz, self.rate_hz)

        q = smooth(self.q)
        by_position = np.apply_along_axis(differentiate, 0, q, step)
        qd = by_position if self.qd is None else smooth(self.qd)
        qdd = np.apply_along_axis(differentiate, 0, qd, step)
        none = np.zeros((len(self.time), 0))
        return Samples(
            self.time, q, qd, qdd, none, smooth(self.wrench),
            preparation=Preparation(cutoff_hz=cutoff_hz),
        )  # fmt: skip

    def raw(self, cutoff_hz: float) -> Samples:
        """Measured positions and wrench as they are; rates low-passed, as a start."""
        start = self.differentiated(cutoff_hz)
        return Samples(self.time, self.q, start.qd, start.qdd, start.tau, self.wrench)
