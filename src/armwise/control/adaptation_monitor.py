"""Monitor of an adaptive controller: estimates, Lyapunov function, excitation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.arms import Arm
from armwise.control.adaptive import AdaptiveModel
from armwise.control.feedback import VelocitySource, sliding_reference
from armwise.dynamics import Dynamics

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class SlidingController(Protocol):
    """An adaptive controller with a sliding surface: `SlotineLi`, `Composite`."""

    model: AdaptiveModel
    rate: np.ndarray

    def reset(self, batch: int, period: float) -> None:
        """Begin anew."""
        ...

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> np.ndarray:
        """Return the torques."""
        ...

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on."""
        ...


@dataclass(frozen=True, eq=False)
class AdaptationHistory:
    """Signals of an adaptation; the first axis is time, the second the plant.

    Attributes:
        time: In [s].
        parameters: â.
        tracking: ‖s‖ of the sliding error.
        lyapunov: V = ½ sᵀ M s + ½ ãᵀ P⁻¹ ã with the true M and ã; NaN if the truth
            was not given. Under the gradient law it never grows but by sampling.
        excitation: Smallest eigenvalue of ∫ YᵀY dt over the window: how much the
            least excited direction of parameter space is excited.
    """

    time: Float[np.ndarray, " samples"]
    parameters: Float[np.ndarray, "samples batch p"]
    tracking: Float[np.ndarray, "samples batch"]
    lyapunov: Float[np.ndarray, "samples batch"]
    excitation: Float[np.ndarray, "samples batch"]


class AdaptationMonitor:
    """The same controller, with a record of its adaptation.

    Args:
        controller: An adaptive controller.
        truth: The arm as it really is, in simulation.
        every: Control periods between two rows.
        window: Time in [s] over which excitation is forgotten.
    """

    def __init__(
        self,
        controller: SlidingController,
        truth: Arm | None = None,
        # Judgement: an eigenvalue decomposition per period would cost more than
        # control.
        every: int = 10,
        # Judgement: about one repetition of a usual motion, in [s].
        window: float = 2.0,
    ) -> None:
        self.controller = controller
        self.truth = truth
        self.every = every
        self.window = window
        self._plant = Dynamics(truth) if truth is not None else None
        self._rows: list[tuple[np.ndarray, ...]] = []
        self._time: list[float] = []
        self._information = np.zeros(())
        self._velocity = VelocitySource()
        self._count = 0
        self._period = 0.0

    @property
    def history(self) -> AdaptationHistory:
        """Everything recorded since the last reset."""
        columns = [np.array(column) for column in zip(*self._rows, strict=True)]
        if not columns:
            columns = [np.zeros((0, 0, 0)), *(np.zeros((0, 0)) for _ in range(3))]
        return AdaptationHistory(np.array(self._time), *columns)

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self.controller.reset(batch, period)
        self._velocity.reset(period)
        self._rows, self._time, self._count, self._period = [], [], 0, period
        size = self.controller.model.parameters.count
        self._information = np.zeros((batch, size, size))

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the controller's torques; record every n-th period."""
        if self._count % self.every == 0:
            self._record(t, reference, measurement)
        self._count += 1
        return self.controller.torque(t, reference, measurement)

    def _record(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> None:
        model, rate = self.controller.model, self.controller.rate
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        qdr, qddr = sliding_reference(rate, reference, q, qd)
        Y = model.tracking_regressor(q, qd, qdr, qddr)
        dt = self.every * self._period
        # Exponential forgetting: a window that costs no memory.
        self._information *= np.exp(-dt / self.window)
        self._information += dt * np.swapaxes(Y, -1, -2) @ Y
        # Persistent excitation is the smallest eigenvalue of ∫ YᵀY dt staying above
        # zero.
        excitation = np.linalg.eigvalsh(self._information)[..., 0]
        s = qd - qdr
        tracking = np.linalg.norm(s, axis=-1)
        self._time.append(t)
        self._rows.append(
            (model.estimate.copy(), tracking, self._lyapunov(q, s), excitation)
        )

    def _lyapunov(self, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        if self._plant is None:
            return np.full(q.shape[0], np.nan)
        model = self.controller.model
        M = self._plant.mass_matrix(q)
        kinetic = np.einsum("bi,bij,bj->b", s, M, s)
        away = model.estimate - model.parameters.values(self.truth)
        gain = model.adaptation.gain
        if gain.ndim < 2:
            spread = np.sum(away**2 / gain, axis=-1)
        else:
            solved = np.linalg.solve(gain, away[..., None])[..., 0]
            spread = np.sum(away * solved, axis=-1)
        energy: np.ndarray = 0.5 * (kinetic + spread)
        return energy

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything the controller needs to go on later."""
        return self.controller.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self.controller.restore(state)
