"""Play a stored command on top of feedback, and keep what was applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.controller import ResumableController
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class Playback:
    """τ = feedback + u(t), with u stored at every control instant.

    Args:
        feedback: The controller that closes the loop.
        command: u, one row per control period from t = 0 in [N m] or [N]; the last
            row is held afterwards. May have a plant axis: (samples, batch, dof).
    """

    def __init__(
        self,
        feedback: ResumableController,
        command: Float[np.ndarray, "samples *batch dof"],
    ) -> None:
        self.feedback = feedback
        self.command = np.asarray(command, dtype=float)
        if self.command.ndim not in (2, 3) or not np.all(np.isfinite(self.command)):
            raise ArgumentError(
                "A stored command needs finite rows, one per control period."
            )
        self._period = 1.0
        self._applied: list[np.ndarray] = []

    @property
    def applied(self) -> Float[np.ndarray, "samples batch dof"]:
        """Torques asked for since the last reset, feedback included."""
        return np.array(self._applied)

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        self._period = period
        self._applied = []
        self.feedback.reset(batch, period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        row = min(round(t / self._period), len(self.command) - 1)
        back = self.feedback.torque(t, reference, measurement)
        total: np.ndarray = self.command[row] + back
        self._applied.append(total)
        return total

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {"applied": self.applied} | self.feedback.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self._applied = list(state["applied"])
        self.feedback.restore(state)
