"""A plant driven in its sensors' units: scaled readings in, signed torques out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.errors import RecordingError
from armwise.motions import Motion
from armwise.plants import Plant
from armwise.recordings import Channel, Recording

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


_FAR_OFF = 0.1
"""Error of a scaled reading that no controller here leaves for long."""

_STUCK = 0.3
"""Time in [s] a reading may stay the same to the last bit while far off."""

KEPT = 20
"""Samples from one note of adapted parameters to the next."""


class SensorController(Protocol):
    """Decides on torques in the sensors' sense, from scaled readings."""

    def reset(self, batch: int, period: float) -> None:
        """Begin anew."""
        ...

    def torque(
        self, wanted: tuple[np.ndarray, ...], x: np.ndarray, xd: np.ndarray
    ) -> Float[np.ndarray, "batch dof"]:
        """Return torques in the sensors' sense."""
        ...


@dataclass(frozen=True, eq=False)
class Trace:
    """What happened on the bench: samples first, then arms, then joints.

    Attributes:
        time: In [s].
        x: Scaled readings.
        wanted, speed: Scaled references and their rates.
        u: Torques in the sensors' sense in [N m].
        parameters: Adapted parameters at every `KEPT`-th sample, if any.
    """

    time: Float[np.ndarray, " samples"]
    x: Float[np.ndarray, "samples batch dof"]
    wanted: Float[np.ndarray, "samples batch dof"]
    speed: Float[np.ndarray, "samples batch dof"]
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
    """

    def __init__(
        self,
        plant: Plant,
        scale: np.ndarray,
        posture: ArrayLike,
        cutoff_hz: float,
        torque_step: np.ndarray | float = 0.0,
    ) -> None:
        self.plant, self.scale = plant, scale
        self._torque_step = np.asarray(torque_step, dtype=float)
        self.period = plant.control_period
        self._keep = float(np.exp(-2.0 * np.pi * cutoff_hz * self.period))
        self._reading = plant.reset(posture).need("volts") / scale
        self._speed = np.zeros_like(self._reading)
        self._before, self._stuck = self._reading, np.zeros_like(self._reading)
        self.sense = np.ones_like(self._reading)
        self._stages: list[Trace] = []

    @property
    def x(self) -> Float[np.ndarray, "batch dof"]:
        """Scaled readings now."""
        return self._reading

    def step(self, u: np.ndarray) -> None:
        """Hold torques (in the sensors' sense) for one period, then read."""
        reading = self.plant.step(u * self.sense).need("volts") / self.scale
        if not np.isfinite(reading).all() or self.plant.diverged.any():
            raise RecordingError("The arm ran away; lower the gains or the effort.")
        raw = (reading - self._reading) / self.period
        self._speed = self._keep * self._speed + (1.0 - self._keep) * raw
        self._reading = reading

    def _convertible(self, u: np.ndarray) -> np.ndarray:
        """The nearest torques the converter can give."""
        step = np.where(self._torque_step > 0.0, self._torque_step, 1.0)
        return np.where(self._torque_step > 0.0, np.rint(u / step) * step, u)

    def _check_reading(self, wanted: np.ndarray) -> None:
        """Refuse readings that stay the same to the last bit while off their mark."""
        off = np.abs(self._reading - wanted) > _FAR_OFF
        same = self._reading == self._before
        self._stuck = np.where(off & same, self._stuck + 1, 0)
        self._before = self._reading
        if self._stuck.max() * self.period > _STUCK:
            j = int(self._stuck.max(axis=0).argmax())
            volts = float(self._reading[self._stuck[:, j].argmax(), j] * self.scale[j])
            raise RecordingError(
                f"Joint {j + 1}: the reading stays at {volts:.4g} V while its joint is "
                "pushed: the sensor is saturated or broken. Move less far (full_scale),"
                " or lower the sensor's amplification."
            )

    def follow(
        self,
        controller: SensorController,
        motion: Motion | Callable[[float], tuple[np.ndarray, ...]],
        duration: float,
        watch: Callable[[float], bool] | None = None,
    ) -> Trace:
        """Follow a motion of scaled readings; stop early when `watch` says so."""
        batch, dof = self._reading.shape
        steps = round(duration / self.period)
        times = np.arange(steps) * self.period
        samples = motion.sample(times) if isinstance(motion, Motion) else None
        kept = np.empty((4, steps, batch, dof))
        controller.reset(batch, self.period)
        adaptation, adapted = getattr(controller, "adaptation", None), []
        for k in range(steps):
            if adaptation is not None and k % KEPT == 0:
                adapted.append(adaptation.parameters.copy())
            if samples is not None:
                wanted = tuple(np.broadcast_to(y[k], (batch, dof)) for y in samples)
            else:
                wanted = motion(times[k])  # type: ignore[operator]
            u = self._convertible(controller.torque(wanted, self._reading, self._speed))
            kept[:, k] = self._reading, wanted[0], wanted[1], u
            self.step(u)
            self._check_reading(wanted[0])
            if watch is not None and k % 500 == 499 and watch(times[k]):
                steps = k + 1
                break
        evolution = np.array(adapted) if adapted else None
        x, wanted_x, speed, torque = kept[:, :steps]
        trace = Trace(times[:steps], x, wanted_x, speed, torque, evolution)
        self._stages.append(trace)
        return trace

    def recordings(self) -> list[list[Recording]]:
        """Per arm, one recording of each stage: volts and commanded torques."""
        return [
            [self._recording(trace, b) for trace in self._stages]
            for b in range(self._reading.shape[0])
        ]

    def _recording(self, trace: Trace, b: int) -> Recording:
        channels = {}
        for j in range(self._reading.shape[1]):
            volts = trace.x[:, b, j] * self.scale[j]
            torque = trace.u[:, b, j] * self.sense[b, j]
            channels[f"volts_{j + 1}"] = Channel(trace.time, volts, "V")
            # A torque acts from its own instant to the next: half a period later.
            late = trace.time + 0.5 * self.period
            channels[f"tau_{j + 1}"] = Channel(late, torque, "N m")
        return Recording.from_channels(
            channels, joint_names=self.plant.joint_names, source="calibration"
        )
