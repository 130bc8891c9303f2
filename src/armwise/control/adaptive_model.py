"""A model whose parameters are being learned: regressor, estimate, torque limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptation import Adaptation, Projection
from armwise.control.parameter_set import ParameterSet
from armwise.control.update_law import UpdateLaw
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class AdaptiveModel:
    """The part every adaptive controller shares.

    Args:
        parameters: What is adapted, of which arm.
        law: How.
        initial: First estimate; zeros if not given.
        projection: What the estimate may be.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        law: UpdateLaw,
        initial: Float[np.ndarray, " p"] | None = None,
        projection: Projection | None = None,
    ) -> None:
        self.parameters = parameters
        self.dynamics = Dynamics(parameters.arm)
        self.law = law
        self.projection = projection
        start = np.zeros(parameters.count) if initial is None else initial
        self.initial = np.asarray(start, dtype=float)
        if self.initial.shape[-1] != parameters.count:
            raise ArgumentError(
                f"The first estimate has {self.initial.shape[-1]} numbers for "
                f"{parameters.count} adapted parameters."
            )
        effort = parameters.arm.limits("effort")
        self._effort = effort if np.all(np.isfinite(effort)) else None
        self._columns = None if parameters.is_whole else parameters.columns
        self.adaptation = Adaptation(law, self.initial, (), projection)
        self.period = 0.0

    @property
    def estimate(self) -> Float[np.ndarray, "batch p"]:
        """The parameters as they are now."""
        return self.adaptation.parameters

    def reset(self, batch: int, period: float) -> None:
        """Forget everything, for `batch` plants asked every `period` [s]."""
        self.period = period
        self.adaptation = Adaptation(self.law, self.initial, (batch,), self.projection)

    def tracking_regressor(
        self, q: np.ndarray, qd: np.ndarray, qdr: np.ndarray, qddr: np.ndarray
    ) -> Float[np.ndarray, "batch dof p"]:
        """Y with Y a = M q̈_r + C q̇_r + g + friction, adapted columns only."""
        return self.select(self.dynamics.slotine_li_regressor(q, qd, qdr, qddr))

    def select(self, Y: np.ndarray) -> Float[np.ndarray, "batch dof p"]:
        """Keep the adapted columns of a full regressor."""
        if self._columns is None:
            return Y
        chosen: np.ndarray = Y.take(self._columns, axis=-1)
        return chosen

    def torque(self, Y: Float[np.ndarray, "batch dof p"]) -> np.ndarray:
        """Y â with the estimate of now."""
        product: np.ndarray = np.matmul(Y, self.estimate[..., None])[..., 0]
        return product

    def saturated(self, tau: np.ndarray) -> Bool[np.ndarray, " batch"] | None:
        """Plants asked for more than they can give, which must not learn from it."""
        if self._effort is None:
            return None
        over: np.ndarray = np.abs(tau) >= self._effort
        if not over.any():
            return None
        return np.asarray(over.any(axis=-1))

    def limited(self, tau: np.ndarray) -> np.ndarray:
        """What the actuators can make of a torque."""
        if self._effort is None:
            return tau
        return np.asarray(np.clip(tau, -self._effort, self._effort))

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self.adaptation.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called."""
        self.adaptation.restore(state)
