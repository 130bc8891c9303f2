"""All sensors of a plant: when each samples, what it said, what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.log import Log
from armwise.plants.protocol import Measurement
from armwise.plants.sensors import (
    Encoder,
    Mount,
    Sampler,
    Sensor,
    Tachometer,
    TorqueSensor,
)
from armwise.plants.state import State

IDEAL_SENSORS: tuple[Sensor, ...] = (Encoder(), Tachometer(), TorqueSensor())
"""Position, velocity and motor torque, exactly."""

TRUTH = ("q", "qd", "qdd", "tau")
"""What is remembered of the truth, as the logs true_q, true_qd, …."""


@dataclass
class _Mounted:
    """A sensor at work: how it samples, every how many ticks, and its log."""

    signal: str
    sample: Sampler
    ticks: float
    log: Log
    due: int = 0
    taken: int = 0


class Instruments:
    """Samples every sensor when it is due and keeps what each one said.

    Args:
        sensors: Descriptions, at most one for each signal.
        batch, dof: Number of arms and of joints.
        tick: Time step of the plant in [s].
        control_ticks: Ticks between two torques.
        seed: Seed of all randomness; every sensor gets a stream of its own.
        wrench: Makes a sampler of the true wrench at a named frame.
        keeps_truth: Whether the true motion and torque are logged as well.
    """

    def __init__(
        self,
        sensors: Sequence[Sensor],
        *,
        batch: int,
        dof: int,
        tick: float,
        control_ticks: int,
        seed: int,
        wrench: Callable[[str], Sampler],
        keeps_truth: bool,
    ) -> None:
        _check(sensors)
        self._shape = (batch, dof)
        self._held: dict[str, np.ndarray] = {}
        self._mounted: list[_Mounted] = []
        streams = np.random.default_rng(seed).spawn(len(sensors))
        for sensor, stream in zip(sensors, streams, strict=True):
            ticks = _ticks(sensor, tick, control_ticks)
            mount = Mount(batch, dof, ticks * tick, stream, wrench)
            width = 6 if sensor.signal == "wrench" else dof
            log = Log(batch, width, sensor.unit)
            self._mounted.append(
                _Mounted(sensor.signal, sensor.mounted(mount), ticks, log)
            )
        self._truth = {name: Log(batch, dof, "") for name in TRUTH if keeps_truth}
        self._control_ticks = control_ticks
        self.is_single_rate = all(m.ticks == control_ticks for m in self._mounted)

    @property
    def logs(self) -> dict[str, Log]:
        """Everything remembered, by signal."""
        found = {m.signal: m.log for m in self._mounted}
        return found | {f"true_{name}": log for name, log in self._truth.items()}

    def next_due(self, after: int) -> int:
        """Return the first tick later than `after` at which a sensor samples."""
        return min((m.due for m in self._mounted if m.due > after), default=after + 1)

    def sample(self, state: State, tick: int) -> None:
        """Let every sensor that is due sample the truth."""
        for mounted in self._mounted:
            if mounted.due <= tick:
                value = mounted.sample(state)
                self._held[mounted.signal] = value
                mounted.log.append(state.time, value)
                mounted.taken += 1
                mounted.due = round(mounted.taken * mounted.ticks)

    def skip_to(self, tick: int) -> None:
        """Let time pass without sampling; sensors are next due at or after a tick."""
        for mounted in self._mounted:
            mounted.taken = int(np.ceil(tick / mounted.ticks - 1e-9))
            mounted.due = round(mounted.taken * mounted.ticks)

    def measurement(self, state: State) -> Measurement:
        """Return what every sensor said last, and remember the truth of now."""
        for name, log in self._truth.items():
            log.append(state.time, getattr(state, name))
        return Measurement(**self._held)


def _check(sensors: Sequence[Sensor]) -> None:
    signals = [sensor.signal for sensor in sensors]
    if twice := sorted({name for name in signals if signals.count(name) > 1}):
        raise ArgumentError(
            f"Two sensors measure {twice[0]!r}; a plant has one for each signal."
        )


def _ticks(sensor: Sensor, tick: float, control_ticks: int) -> float:
    if sensor.rate_hz is None:
        return float(control_ticks)
    ticks = 1.0 / (sensor.rate_hz * tick) if sensor.rate_hz > 0 else 0.0
    if ticks < 1.0 - 1e-9:
        raise ArgumentError(
            f"{type(sensor).__name__} cannot sample at {sensor.rate_hz:g} Hz on a "
            f"plant of {1.0 / tick:g} Hz. Raise plant_rate_hz."
        )
    whole = round(ticks)
    return float(whole) if abs(ticks - whole) < 1e-9 * whole else ticks
