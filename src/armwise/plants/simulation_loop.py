"""Simulation loop shared by plants: clock, actuator delay, sensors and logs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.drive import Actuator
from armwise.plants.protocol import Measurement
from armwise.plants.sensors import (
    Encoder,
    Mount,
    Sampler,
    Sensor,
    Tachometer,
    TorqueSensor,
)
from armwise.plants.state import Clock, State
from armwise.regression import FrictionModel

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike


# Growing logs of samples and their times.

_BLOCK = 128
"""Rows that are turned into columns together, while they are in cache."""


class SampleLog:
    """Time stamps and the rows (batch, width) that go with them, kept as columns.

    Attributes:
        unit: Unit of the values.
    """

    def __init__(self, batch: int, width: int, unit: str) -> None:
        self.unit = unit
        self._block = np.empty((_BLOCK, batch, width))
        self._held = 0
        self._time = np.empty(0)
        self._columns = np.empty((batch, width, 0))
        self._stored = 0

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all; more may still come."""
        more = rows - self._time.size
        if more > 0:
            self._time = np.concatenate([self._time, np.empty(more)])
            columns = np.empty((*self._columns.shape[:2], rows))
            columns[:, :, : self._stored] = self._columns[:, :, : self._stored]
            self._columns = columns

    def append(self, time: float, row: Float[np.ndarray, "batch width"]) -> None:
        """Add one row, copied."""
        if self._held == _BLOCK:
            self._store()
        total = self._stored + self._held
        if total == self._time.size:
            # Doubling: appending stays constant time on average.
            self.reserve(2 * total + _BLOCK)
        self._time[total] = time
        self._block[self._held] = row
        self._held += 1

    def _store(self) -> None:
        end = self._stored + self._held
        rows = self._block[: self._held]
        self._columns[:, :, self._stored : end] = rows.transpose(1, 2, 0)
        self._stored, self._held = end, 0

    def __len__(self) -> int:
        return self._stored + self._held

    @property
    def time(self) -> Float[np.ndarray, " samples"]:
        """When each row was taken in [s]."""
        return self._time[: len(self)]

    @property
    def columns(self) -> Float[np.ndarray, "batch width samples"]:
        """What was sampled, every signal contiguous in time."""
        self._store()
        return self._columns[:, :, : self._stored]


# Sensors of a plant: sampling times and logs.

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
    log: SampleLog
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
        # A stream for each sensor: one more at the end leaves the others' noise
        # unchanged.
        streams = np.random.default_rng(seed).spawn(len(sensors))
        for sensor, stream in zip(sensors, streams, strict=True):
            ticks = _ticks(sensor, tick, control_ticks)
            mount = Mount(batch, dof, ticks * tick, stream, wrench)
            width = 6 if sensor.signal == "wrench" else dof
            log = SampleLog(batch, width, sensor.unit)
            self._mounted.append(
                _Mounted(sensor.signal, sensor.mounted(mount), ticks, log)
            )
        self._truth = {name: SampleLog(batch, dof, "") for name in TRUTH if keeps_truth}
        self._control_ticks = control_ticks
        self.is_single_rate = all(m.ticks == control_ticks for m in self._mounted)

    @property
    def logs(self) -> dict[str, SampleLog]:
        """Everything remembered, by signal."""
        by_signal = {m.signal: m.log for m in self._mounted}
        return by_signal | {f"true_{name}": log for name, log in self._truth.items()}

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
            # A tick that is a sampling time but for rounding counts as one.
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
    # Rates that divide each other but for rounding sample at exactly the same ticks.
    whole = round(ticks)
    return float(whole) if abs(ticks - whole) < 1e-9 * whole else ticks


# Rig: clock, delayed commands, engine and sensors.


class PlantEngine(Protocol):
    """Moves a state through time under held torques."""

    @property
    def state(self) -> State:
        """The truth, updated in place."""
        ...

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        ...

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        ...


class FrictionEngine:
    """An engine whose arms have further friction terms, tick by tick.

    Args:
        engine: What moves the arms, with the friction of their drives.
        model: The further friction.
    """

    def __init__(self, engine: PlantEngine, model: FrictionModel) -> None:
        self._engine, self._model = engine, model

    @property
    def state(self) -> State:
        """The truth at this instant."""
        return self._engine.state

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, friction as good as new."""
        self._engine.start(q, qd)
        self._model.reset()

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques for some ticks."""
        state = self.state
        for _ in range(ticks):
            # The load is that of the tick before: gears are stiffer than a tick.
            lost = self._model.torque(state.q, state.qd, state.link_tau)
            self._engine.advance(tau - lost, 1)
        state.tau[:] = tau


class Rig:
    """An engine, its actuators and its sensors, run tick by tick.

    Args:
        engine: What moves the arms.
        clock: Ticks of the plant and of the controller.
        actuator: Between command and torque.
        sensors: What is measured.
        seed: Seed of all randomness; reset begins it anew.
        wrench: Makes a sampler of the true wrench at a named frame.
        keeps_truth: Whether the true motion and torque are logged as well.
    """

    def __init__(
        self,
        engine: PlantEngine,
        clock: Clock,
        actuator: Actuator,
        sensors: Sequence[Sensor],
        seed: int,
        wrench: Callable[[str], Sampler],
        keeps_truth: bool,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self._seed = seed
        self._sensors = tuple(sensors)
        self._wrench = wrench
        self._keeps_truth = keeps_truth
        self._shape = engine.state.q.shape
        self._convert = actuator.mounted(*self._shape)
        self._instruments = self._fresh_instruments()
        self._pending: deque[tuple[int, np.ndarray]] = deque()
        self._tick, self._torque = 0, np.zeros(self._shape)

    def _fresh_instruments(self) -> Instruments:
        return Instruments(
            self._sensors,
            batch=self._shape[0],
            dof=self._shape[1],
            tick=self.clock.tick,
            control_ticks=self.clock.control_ticks,
            seed=self._seed,
            wrench=self._wrench,
            keeps_truth=self._keeps_truth,
        )

    @property
    def logs(self) -> dict[str, SampleLog]:
        """What was sampled since the last reset."""
        return self._instruments.logs

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> Measurement:
        """Put every arm in a posture, at a velocity, at t = 0, and measure."""
        speed = np.zeros(self._shape) if qd is None else self._rows(qd, "qd")
        self.engine.start(self._rows(q, "q"), speed)
        self._instruments = self._fresh_instruments()
        self._pending.clear()
        self._tick, self._torque = 0, np.zeros(self._shape)
        self._instruments.sample(self.engine.state, 0)
        return self._instruments.measurement(self.engine.state)

    def step(self, tau: Float[np.ndarray, "batch dof"]) -> Measurement:
        """Hold torques for one control period, then measure."""
        if np.shape(tau) != self._shape:
            tau = self._rows(tau, "tau")
        torque = self._convert(tau)
        end = self._tick + self.clock.control_ticks
        instruments, state = self._instruments, self.engine.state
        # The common case: nothing happens within the period, so one call does all.
        if self.clock.delay_ticks == 0 and instruments.is_single_rate:
            self.engine.advance(torque, self.clock.control_ticks)
            self._tick = end
            state.time = end * self.clock.tick
            instruments.sample(state, end)
            return instruments.measurement(state)
        # The delay is constant: arrivals stay in order and a queue suffices.
        self._pending.append((self._tick + self.clock.delay_ticks, torque))
        self._advance_by_events(end)
        return instruments.measurement(state)

    def coast(self, tau: Float[np.ndarray, "batch dof"], ticks: int) -> None:
        """Hold torques for many ticks; nothing is measured on the way."""
        self._torque = self._convert(self._rows(tau, "tau"))
        self.engine.advance(self._torque, ticks)
        self._tick += ticks
        self.engine.state.time = self._tick * self.clock.tick
        self._pending.clear()
        self._instruments.skip_to(self._tick)

    def _advance_by_events(self, end: int) -> None:
        """Go from event to event: a sensor is due, or a delayed torque arrives."""
        while self._tick < end:
            while self._pending and self._pending[0][0] <= self._tick:
                self._torque = self._pending.popleft()[1]
            until = min(end, self._instruments.next_due(self._tick))
            if self._pending:
                until = min(until, self._pending[0][0])
            self.engine.advance(self._torque, until - self._tick)
            self._tick = until
            self.engine.state.time = until * self.clock.tick
            self._instruments.sample(self.engine.state, until)

    def _rows(self, values: ArrayLike, name: str) -> Float[np.ndarray, "batch dof"]:
        array = np.asarray(values, dtype=float)
        if array.ndim > 2 or array.shape[-1:] != self._shape[1:]:
            raise ArgumentError(
                f"{name} has the shape {array.shape}; this plant takes "
                f"{self._shape} or ({self._shape[1]},)."
            )
        if array.ndim == 2 and array.shape[0] not in (1, self._shape[0]):
            raise ArgumentError(
                f"{name} is for {array.shape[0]} arms; this plant has {self._shape[0]}."
            )
        if not np.all(np.isfinite(array)):
            raise ArgumentError(f"{name} is not finite.")
        return np.ascontiguousarray(np.broadcast_to(array, self._shape))


# Base class of plants on a rig.


class RiggedPlant:
    """A batch of arms with actuators and sensors; `_rig` is set by who inherits."""

    _rig: Rig

    @property
    def batch(self) -> int:
        """Number of arms side by side."""
        return len(self.state.q)

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(self.state.q.shape[1])

    @property
    def control_period(self) -> float:
        """Time between two torques in [s]."""
        return self._rig.clock.control_period

    @property
    def plant_period(self) -> float:
        """Step of the plant in [s]."""
        return self._rig.clock.tick

    @property
    def time(self) -> float:
        """Time since the last reset in [s]."""
        return self.state.time

    @property
    def diverged(self) -> Bool[np.ndarray, " batch"]:
        """Which arms have run away; they stand still from then on."""
        return self.state.diverged

    @property
    def state(self) -> State:
        """The truth at this instant; its arrays are updated in place."""
        return self._rig.engine.state

    @property
    def logs(self) -> dict[str, SampleLog]:
        """What every sensor measured since the last reset, and the truth."""
        return self._rig.logs

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> Measurement:
        """Put every arm in a posture, at a velocity (rest if not given), at t = 0."""
        return self._rig.reset(q, qd)

    def step(self, tau: Float[np.ndarray, "batch dof"]) -> Measurement:
        """Hold torques for one control period, then measure."""
        return self._rig.step(tau)
