"""Feedforward of what a model says the wanted motion takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import Arm
from armwise.control.controller import ResumableController
from armwise.control.model import dynamics_of
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


class Feedforward:
    """τ = feedback + n̂(q_d, q̇_d, q̈_d), or only its gravity part (`atkeson1986` A.3–4).

    Args:
        feedback: The controller that closes the loop.
        model: The arm it believes in; friction in its drives counts, too.
        terms: "full" for the whole inverse dynamics, "gravity" for gravity alone.
    """

    def __init__(
        self,
        feedback: ResumableController,
        model: Arm | Dynamics,
        terms: Literal["full", "gravity"] = "full",
    ) -> None:
        if terms not in ("full", "gravity"):
            raise ArgumentError(f"terms must be 'full' or 'gravity', not {terms!r}.")
        self.feedback = feedback
        self.model = dynamics_of(model)
        self.terms = terms

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        self.feedback.reset(batch, period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        if self.terms == "full":
            nominal = self.model.inverse_dynamics(*reference)
        else:
            nominal = self.model.gravity_torque(reference.q)
        total: np.ndarray = nominal + self.feedback.torque(t, reference, measurement)
        return total

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self.feedback.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self.feedback.restore(state)
