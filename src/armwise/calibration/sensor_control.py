"""Control in the sensors' own units: test bench, PD and composite adaptive control.

A plant is driven by scaled readings x and torques u in the sensors' sense, neither gain
nor offset known. `Bench` runs controllers on it one after another; the controllers are
those of `astley1996` ch. 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from armwise.control import Adaptation, UpdateLaw
from armwise.errors import RecordingError
from armwise.motions import Motion
from armwise.plants import Measurement, Plant
from armwise.recordings import Channel, Recording

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


_LARGEST_ERROR = 0.1
"""Tracking error of a scaled reading that no controller here has for long."""

_FROZEN_TIME = 0.3
"""Time in [s] a reading may stay the same to the last bit under such an error: noise of
a working sensor changes its last bit within milliseconds."""

_CHECK_INTERVAL = 500
"""Samples between two checks whether a stage may end: it costs an inversion."""

RINGING_TIME = 0.2
"""Time in [s] of torques that are looked at together: some ten periods of a loop that
rings because of its delay of milliseconds."""

PARAMETER_STRIDE = 20
"""Samples from one entry of adapted parameters in a trace to the next."""

_ERROR_MEMORY = 10.0
"""Time constant in [s] of the mean of squared prediction errors: two waves."""

_ERROR_WINDOW = 0.5
"""Time in [s] over which prediction errors are averaged before they are squared: noise
averages out, errors at the frequencies of the motion stay."""

_FRICTION_SPEED = 0.02
"""Scaled speed per [s] over which Coulomb friction, fed forward, changes its sign: a
smooth step instead of one that would excite the arm at every reversal."""

GRAVITY = 9.81
"""Columns of gravity carry it, as in the thesis, so that its gains mean the same."""


class SensorController(Protocol):
    """Decides on torques in the sensors' sense, from scaled readings."""

    def reset(self, batch: int, period: float) -> None:
        """Begin anew."""
        ...

    def torque(
        self, reference: tuple[np.ndarray, ...], x: np.ndarray, xd: np.ndarray
    ) -> Float[np.ndarray, "batch dof"]:
        """Return torques in the sensors' sense."""
        ...


@dataclass(frozen=True, eq=False)
class Trace:
    """Recorded run on the bench: samples first, then arms, then joints.

    Attributes:
        time: In [s].
        x: Scaled readings.
        reference, reference_speed: Scaled references and their rates.
        u: Torques in the sensors' sense in [N m].
        parameters: Adapted parameters at every `PARAMETER_STRIDE`-th sample, if any.
    """

    time: Float[np.ndarray, " samples"]
    x: Float[np.ndarray, "samples batch dof"]
    reference: Float[np.ndarray, "samples batch dof"]
    reference_speed: Float[np.ndarray, "samples batch dof"]
    u: Float[np.ndarray, "samples batch dof"]
    parameters: Float[np.ndarray, "instants batch p"] | None = None


class Bench:
    """Runs controllers on a plant one after another, without putting it back.

    Args:
        plant: With analog joint sensors.
        scale: Reading in [V] that counts as one, per joint.
        posture: Where a simulated plant is when the power comes, in its own
            coordinates; unknown to everything here.
        cutoff_hz: Low-pass on differences of readings.
        torque_step: Step of the torques' converter in [N m], zero for none; commands
            are rounded to it.
        center: Reading that counts as zero, per joint.
        effort: Largest torque of each joint in [N m].
        goes_on: Whether the others of a batch go on when one fails; `lost` has those.
    """

    def __init__(
        self,
        plant: Plant,
        scale: np.ndarray,
        posture: ArrayLike,
        cutoff_hz: float,
        torque_step: np.ndarray | float = 0.0,
        center: np.ndarray | float = 0.0,
        effort: np.ndarray | float = np.inf,
        goes_on: bool = False,
    ) -> None:
        self.lost: dict[int, RecordingError] = {}
        self._goes_on = goes_on
        self.plant, self.scale = plant, scale
        self.center = np.broadcast_to(np.asarray(center, dtype=float), scale.shape)
        self._torque_step = np.asarray(torque_step, dtype=float)
        self._is_rounded = self._torque_step > 0.0
        self._rounds = bool(self._is_rounded.any())
        self._effort = np.asarray(effort, dtype=float)
        self._is_limited = bool(np.isfinite(self._effort).any())
        self.period = plant.control_period
        self._keep = float(np.exp(-2.0 * np.pi * cutoff_hz * self.period))
        # Half a period of the held torque, half of the difference, and the low-pass.
        self.delay = self.period + 1.0 / (2.0 * np.pi * cutoff_hz)
        first = plant.reset(posture)
        self.signal = "q" if first.volts is None else "volts"
        self._reading = self._scaled(first)
        self._speed = np.zeros_like(self._reading)
        self._before, self._stuck = self._reading, np.zeros_like(self._reading)
        self.sense = np.ones_like(self._reading)
        self._stages: list[Trace] = []

    @property
    def x(self) -> Float[np.ndarray, "batch dof"]:
        """Scaled readings now."""
        return self._reading

    @property
    def speed(self) -> Float[np.ndarray, "batch dof"]:
        """Rates of the scaled readings now, low-passed, in [1/s]."""
        return self._speed

    def _scaled(self, measurement: Measurement) -> np.ndarray:
        raw = measurement.need(self.signal)
        return np.asarray((raw - self.center) / self.scale)

    def step(self, u: np.ndarray) -> None:
        """Hold torques (in the sensors' sense) for one period, then read."""
        if self.lost:
            u[list(self.lost)] = 0.0
        reading = self._scaled(self.plant.step(u * self.sense))
        if not np.isfinite(reading.sum()) or self.plant.diverged.any():
            away = ~np.isfinite(reading).all(axis=1) | self.plant.diverged
            self.lose(away, "The arm ran away; lower the gains or the effort.")
            reading = np.where(np.isfinite(reading), reading, self._reading)
        raw = (reading - self._reading) / self.period
        self._speed = self._keep * self._speed + (1.0 - self._keep) * raw
        self._reading = reading

    def _convertible(self, u: np.ndarray) -> np.ndarray:
        """The nearest torques the converter and the motors can give."""
        # Called at every step: what is not limited or rounded costs nothing.
        if self._is_limited:
            u = np.minimum(np.maximum(u, -self._effort), self._effort)
        if self._rounds:
            step = np.where(self._is_rounded, self._torque_step, 1.0)
            u = np.where(self._is_rounded, np.rint(u / step) * step, u)
        return u

    def _check_reading(self, reference: np.ndarray) -> None:
        """Refuse readings that stay the same to the last bit while off their target."""
        is_stuck = self._reading == self._before
        self._before = self._reading
        # Called at every step, and hardly ever is a reading the same to the last bit.
        if not is_stuck.any():
            self._stuck[:] = 0
            return
        is_stuck &= np.abs(self._reading - reference) > _LARGEST_ERROR
        self._stuck = np.where(is_stuck, self._stuck + 1, 0)
        if self.lost:
            self._stuck[list(self.lost)] = 0
        if self._stuck.max() * self.period > _FROZEN_TIME:
            b, j = np.unravel_index(int(self._stuck.argmax()), self._stuck.shape)
            volts = float(self._reading[b, j])
            volts = volts * float(self.scale[j]) + float(self.center[j])
            self.lose(
                np.arange(len(self._stuck)) == b,
                f"Joint {j + 1}: the reading stays at {volts:.4g} while its joint is "
                "pushed: the sensor is saturated or broken. Move less far (full_scale),"
                " or lower the sensor's amplification.",
            )

    def lose(self, arms: np.ndarray, why: str) -> None:
        """Go on without some arms, or not at all."""
        for b in np.flatnonzero(arms):
            self.lost.setdefault(int(b), RecordingError(why))
        if not self._goes_on or len(self.lost) == len(self._reading):
            raise RecordingError(why)

    def follow(
        self,
        controller: SensorController,
        motion: Motion | Callable[[float], tuple[np.ndarray, ...]],
        duration: float,
        is_finished: Callable[[float], bool] | None = None,
        rings: Callable[[Float[np.ndarray, "samples batch dof"]], bool] | None = None,
    ) -> Trace:
        """Follow a motion of scaled readings.

        Args:
            controller: What moves it.
            motion: Where to.
            duration: In [s].
            is_finished: Ends the run early, asked with the time.
            rings: The same, asked every `RINGING_TIME` with the torques since.
        """
        batch, dof = self._reading.shape
        steps = round(duration / self.period)
        times = np.arange(steps) * self.period
        samples: list[np.ndarray] | None = None
        if isinstance(motion, Motion):
            # One row for each arm: a row of its own for every step is a view, no copy.
            samples = [
                np.repeat(y[:, None], batch, axis=1) for y in motion.sample(times)
            ]
        rows = np.empty((4, steps, batch, dof))
        controller.reset(batch, self.period)
        adaptation, adapted = getattr(controller, "adaptation", None), []
        watched = max(8, round(RINGING_TIME / self.period))
        for k in range(steps):
            if adaptation is not None and k % PARAMETER_STRIDE == 0:
                adapted.append(adaptation.parameters.copy())
            if samples is None:
                target = motion(times[k])  # type: ignore[operator]
            else:
                target = (samples[0][k], samples[1][k], samples[2][k])
            u = self._convertible(controller.torque(target, self._reading, self._speed))
            rows[:, k] = self._reading, target[0], target[1], u
            self.step(u)
            self._check_reading(target[0])
            is_due = k % _CHECK_INTERVAL == _CHECK_INTERVAL - 1
            if is_finished is not None and is_due and is_finished(times[k]):
                steps = k + 1
                break
            is_due = k % watched == watched - 1
            recent = rows[3, k + 1 - watched : k + 1]
            if rings is not None and is_due and rings(recent):
                steps = k + 1
                break
        evolution = np.array(adapted) if adapted else None
        x, targets, speeds, torques = rows[:, :steps]
        trace = Trace(times[:steps], x, targets, speeds, torques, evolution)
        self._stages.append(trace)
        return trace

    def recordings(self) -> list[list[Recording]]:
        """Per arm, one recording of each stage: volts and commanded torques."""
        return [
            [self.recording(trace, b) for trace in self._stages]
            for b in range(self._reading.shape[0])
        ]

    def recording(self, trace: Trace, b: int = 0) -> Recording:
        """One arm's readings and commanded torques of a run."""
        channels = {}
        for j in range(self._reading.shape[1]):
            volts = trace.x[:, b, j] * self.scale[j] + self.center[j]
            torque = trace.u[:, b, j] * self.sense[b, j]
            channels[f"volts_{j + 1}"] = Channel(trace.time, volts, "V")
            # A torque acts from its own instant to the next: half a period later.
            late = trace.time + 0.5 * self.period
            channels[f"tau_{j + 1}"] = Channel(late, torque, "N m")
        return Recording.from_channels(
            channels, joint_names=self.plant.joint_names, source="calibration"
        )


# Controllers on readings.


class Parts(NamedTuple):
    """A regressor split for filtering: Y a = d(H a)/dt + G a."""

    momentum: Float[np.ndarray, "batch rows p"]
    remainder: Float[np.ndarray, "batch rows p"]


class SensorRegressor(Protocol):
    """What torques are made of, as functions of readings."""

    @property
    def count(self) -> int:
        """Number of parameters."""
        ...

    def tracking(
        self, x: np.ndarray, xd: np.ndarray, xdr: np.ndarray, xddr: np.ndarray
    ) -> Float[np.ndarray, "batch rows p"]:
        """Y for the reference acceleration."""
        ...

    def parts(self, x: np.ndarray, xd: np.ndarray) -> Parts:
        """Momentum H and remainder G."""
        ...


@dataclass(frozen=True)
class Parabola:
    """u = α m l² ẍ + g (a + b x + c x²) for one joint, the others held (Eq. 4.23)."""

    joint: int
    count: int = 4

    def tracking(
        self, x: np.ndarray, xd: np.ndarray, xdr: np.ndarray, xddr: np.ndarray
    ) -> Float[np.ndarray, "batch 1 4"]:
        """[ẍ_r, g, g x, g x²]."""
        Y = self.parts(x, xd).remainder.copy()
        Y[:, 0, 0] = xddr[:, self.joint]
        return Y

    def parts(self, x: np.ndarray, xd: np.ndarray) -> Parts:
        """Momentum of ẍ, gravity's parabola."""
        one = x[:, self.joint]
        H, G = np.zeros((len(one), 1, 4)), np.zeros((len(one), 1, 4))
        H[:, 0, 0] = xd[:, self.joint]
        G[:, 0, 1], G[:, 0, 2], G[:, 0, 3] = 1.0, one, one**2
        return Parts(H, GRAVITY * G)


@dataclass(eq=False)
class SensorComposite:
    """u = Y â − K_D s + f sign(ẋ_d), adapted by tracking and prediction errors.

    Attributes:
        regressor: What torques are made of.
        joints: Joints it drives; the others are held by PD control.
        law: How errors move parameters.
        rate: Λ in [1/s].
        kd: K_D of every joint in [N m s] per unit of the reading.
        friction: Coulomb friction fed forward, (batch, dof) in [N m].
        hold_kp: Stiffness of the joints that are held.
        effort: Largest torque of every joint in [N m].
        weights: C1 and C2.
        bandwidth: b of F = b/(s + b) in [rad/s].
        adaptation: The adapted parameters.
        error_density: Spectral density of recent prediction errors at the frequencies
            of the motion, in [(N m)² s], by joint.
    """

    regressor: SensorRegressor
    joints: tuple[int, ...]
    law: UpdateLaw
    rate: float
    kd: np.ndarray
    friction: np.ndarray
    hold_kp: np.ndarray
    effort: np.ndarray
    weights: tuple[float, float] = (0.3, 1.0)
    bandwidth: float = 20.0
    adaptation: Adaptation = field(init=False)
    error_density: np.ndarray = field(init=False)
    _filter: list[np.ndarray] = field(init=False, default_factory=list)

    def reset(self, batch: int, period: float) -> None:
        """Begin with all parameters zero."""
        start = np.zeros(self.regressor.count)
        self.adaptation = Adaptation(self.law, start, (batch,))
        self._filter, self._period = [], period
        self._applied = np.zeros((batch, len(self.joints)))
        self.error_density = np.zeros((batch, len(self.joints)))
        self._error_sum, self._summed = np.zeros_like(self.error_density), 0.0

    def torque(
        self, reference: tuple[np.ndarray, ...], x: np.ndarray, xd: np.ndarray
    ) -> Float[np.ndarray, "batch dof"]:
        """Return torques in the sensors' sense."""
        target, speed, acceleration = reference
        xdr = speed - self.rate * (x - target)
        xddr = acceleration - self.rate * (xd - speed)
        s = (xd - xdr)[:, self.joints]
        Y = self.regressor.tracking(x, xd, xdr, xddr)
        feedforward = np.matmul(Y, self.adaptation.parameters[..., None])[..., 0]
        u = self.hold_kp * (target - x) - self.kd * (xd - speed)
        u[:, self.joints] = feedforward - self.kd[..., self.joints] * s
        W, filtered = self._filtered(x, xd)
        if W is not None:
            self.adaptation.compose(Y, s, W, filtered, self._period, self.weights)
            self._average_error(W, filtered)
        dry = self.friction * np.tanh(speed / _FRICTION_SPEED)
        torque = np.clip(u + dry, -self.effort, self.effort)
        self._applied = (torque - dry)[:, self.joints]
        return np.asarray(torque)

    def _average_error(self, W: np.ndarray, filtered: np.ndarray) -> None:
        """Estimate the errors' spectral density at the frequencies of the motion."""
        error = np.matmul(W, self.adaptation.parameters[..., None])[..., 0] - filtered
        self._error_sum += error * self._period
        self._summed += self._period
        if self._summed >= _ERROR_WINDOW:
            density = self._error_sum**2 / self._summed
            gain = self._summed / _ERROR_MEMORY
            self.error_density += gain * (density - self.error_density)
            self._error_sum[:], self._summed = 0.0, 0.0

    def _filtered(
        self, x: np.ndarray, xd: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """W = b (H − F H) + F G and F u, stepped forward.

        Filtering d(H a)/dt + G a by F = b/(s + b) needs no acceleration.
        """
        H, G = self.regressor.parts(x, xd)
        if not self._filter:
            self._filter = [H.copy(), G.copy(), self._applied.copy()]
            return None, self._applied
        decay = float(np.exp(-self.bandwidth * self._period))
        for k, now in enumerate((H, G, self._applied)):
            self._filter[k] = decay * self._filter[k] + (1.0 - decay) * now
        FH, FG, Fu = self._filter
        return self.bandwidth * (H - FH) + FG, Fu


@dataclass(eq=False)
class SensorPD:
    """u = K_p (x_d − x) + K_D (ẋ_d − ẋ) on readings, and slowly what holds the weight.

    Attributes:
        kp, kd: Gains in [N m] and [N m s] per unit of the reading.
        ki: Gain in [N m/s] of the errors' integral, which lasts from run to run.
        most: Largest torque of the integral in [N m].
    """

    kp: np.ndarray
    kd: np.ndarray
    ki: np.ndarray | None = None
    most: np.ndarray | float = np.inf
    _weight: np.ndarray = field(init=False, default_factory=lambda: np.zeros(1))

    @property
    def gains(self) -> tuple[np.ndarray, ...]:
        """Those there are."""
        return (self.kp, self.kd) if self.ki is None else (self.kp, self.kd, self.ki)

    def reset(self, batch: int, period: float) -> None:
        """The weight stays: an arm must not sag whenever a run begins."""
        self._period = period

    def torque(
        self, reference: tuple[np.ndarray, ...], x: np.ndarray, xd: np.ndarray
    ) -> Float[np.ndarray, "batch dof"]:
        """Return torques in the sensors' sense."""
        error = reference[0] - x
        u = self.kp * error + self.kd * (reference[1] - xd)
        if self.ki is None:
            return np.asarray(u)
        more = self._weight + self.ki * self._period * error
        self._weight = np.minimum(np.maximum(more, -self.most), self.most)
        return np.asarray(u + self._weight)
