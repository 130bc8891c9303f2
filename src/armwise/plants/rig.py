"""What every simulated plant does around its engine: commands in, samples out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.actuator import Actuator
from armwise.plants.clock import Clock
from armwise.plants.instruments import Instruments
from armwise.plants.protocol import Measurement
from armwise.plants.sensors import Sampler, Sensor
from armwise.plants.state import State

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.plants.log import Log


class Engine(Protocol):
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
        engine: Engine,
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
    def logs(self) -> dict[str, Log]:
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
        if self.clock.delay_ticks == 0 and instruments.is_single_rate:
            self.engine.advance(torque, self.clock.control_ticks)
            self._tick = end
            state.time = end * self.clock.tick
            instruments.sample(state, end)
            return instruments.measurement(state)
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
