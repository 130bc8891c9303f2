"""What adaptive controllers share: an estimate, and a state that can be kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptive_model import AdaptiveModel
from armwise.control.filtered_regressor import FilteredRegressor
from armwise.control.velocity import VelocitySource

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


class AdaptiveController:
    """A controller that adapts the parameters of a model while it works.

    Args:
        model: What is adapted.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(self, model: AdaptiveModel, cutoff_hz: float) -> None:
        self.model = model
        self._velocity = VelocitySource(cutoff_hz)

    @property
    def estimate(self) -> Float[np.ndarray, "batch p"]:
        """The adapted parameters as they are now."""
        return self.model.estimate

    @property
    def stopped(self) -> np.ndarray:
        """Plants whose adaptation ran away and was stopped."""
        return self.model.adaptation.stopped

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        self.model.reset(batch, period)
        self._velocity.reset(period)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self.model.to_dict() | self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self.model.restore(state)
        self._velocity.restore(state)


class PredictingController(AdaptiveController):
    """One that also learns from how well it predicts its own torque, filtered.

    Args:
        model: What is adapted.
        bandwidth: b of the filter F = b/(s + b) in [rad/s].
        torque_scale: Prediction error to be expected of each joint in [N m] or [N].
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        model: AdaptiveModel,
        bandwidth: float,
        torque_scale: ArrayLike,
        cutoff_hz: float,
    ) -> None:
        super().__init__(model, cutoff_hz)
        self.filtered = FilteredRegressor(model, bandwidth, torque_scale)
        self._tau = np.zeros(())

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        super().reset(batch, period)
        self.filtered.reset(period)
        self._tau = np.zeros((batch, self.model.parameters.arm.dof))

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        own = {"held_torque": self._tau.copy()}
        return own | super().to_dict() | self.filtered.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        super().restore(state)
        self._tau = np.array(state["held_torque"])
        self.filtered.restore(state)
