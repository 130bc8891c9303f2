"""Common parts of adaptive controllers: adapted model, filtered regressor, state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptation import Adaptation, Projection, UpdateLaw
from armwise.control.feedback import VelocitySource, feedback_gain, restored
from armwise.control.parameter_set import ParameterSet
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike


# The adapted model: regressor, estimate, torque limits.


class AdaptiveModel:
    """A model whose parameters adapt: regressor, estimate, update law.

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
        self.adaptation = self._adaptation(())
        self.period = 0.0

    @property
    def estimate(self) -> Float[np.ndarray, "batch p"]:
        """The parameters as they are now."""
        return self.adaptation.parameters

    def reset(self, batch: int, period: float) -> None:
        """Forget everything, for `batch` plants controlled every `period` [s]."""
        self.period = period
        self.adaptation = self._adaptation((batch,))

    def _adaptation(self, batch: tuple[int, ...]) -> Adaptation:
        described = self.parameters.values()
        return Adaptation(
            self.law, self.initial, batch, self.projection, center=described
        )

    def tracking_regressor(
        self, q: np.ndarray, qd: np.ndarray, qdr: np.ndarray, qddr: np.ndarray
    ) -> Float[np.ndarray, "batch dof p"]:
        """Y with Y a = M q̈_r + C q̇_r + g + friction, adapted columns only."""
        return self.select(self.dynamics.slotine_li_regressor(q, qd, qdr, qddr))

    def select(self, Y: np.ndarray) -> Float[np.ndarray, "batch dof p"]:
        """Keep the adapted columns of a full regressor."""
        if self._columns is None:
            return Y
        columns: np.ndarray = Y.take(self._columns, axis=-1)
        return columns

    def torque(self, Y: Float[np.ndarray, "batch dof p"]) -> np.ndarray:
        """Y â with the estimate of now."""
        product: np.ndarray = np.matmul(Y, self.estimate[..., None])[..., 0]
        return product

    def saturated(self, tau: np.ndarray) -> Bool[np.ndarray, " batch"] | None:
        """Plants whose torque saturates: their errors must not drive adaptation."""
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


# Filtered regressor: torques without accelerations.


class FilteredRegressor:
    """W = F(s) Y and F(s) τ with F = b/(s + b) (`astley1996` Eq. 3.29–3.33).

    With p = M q̇ = H π, τ = ṗ + G π, G π = −∂T/∂q + g + friction, so that
    W = b (H − F H) + F G: the derivative falls to the filter.

    Args:
        model: Whose regressor.
        bandwidth: b in [rad/s]; the arm's motion must lie within it.
        torque_scale: What both sides are divided by, one or one per joint: the
            error to be expected of each, so that strong joints do not drown weak ones.
    """

    def __init__(
        self, model: AdaptiveModel, bandwidth: float, torque_scale: ArrayLike = 1.0
    ) -> None:
        feedback_gain(bandwidth, "bandwidth")
        self.model = model
        self.bandwidth = bandwidth
        self.torque_scale = feedback_gain(torque_scale, "torque_scale")
        self._state: dict[str, np.ndarray] = {}
        self._keep = self._old = self._new = 0.0

    def reset(self, period: float) -> None:
        """Begin anew, called every `period` [s]."""
        self._state = {}
        x = self.bandwidth * period
        self._keep = float(np.exp(-x))
        # Between samples H and G run straight from the old value to the new one.
        self._new = 1.0 - (1.0 - self._keep) / x
        self._old = (1.0 - self._keep) / x - self._keep

    def update(
        self, q: np.ndarray, qd: np.ndarray, tau: Float[np.ndarray, "batch dof"]
    ) -> tuple[Float[np.ndarray, "batch dof p"], Float[np.ndarray, "batch dof"]]:
        """Return W and F τ now; `tau` is what was held since the last call."""
        H, G = self._parts(q, qd)
        # First call: the filters start at rest in the present state.
        if not self._state:
            zero = np.zeros_like(H)
            self._state = {
                "H": H,
                "G": G,
                "FH": H.copy(),
                "FG": zero,
                "Ftau": np.zeros(q.shape),
            }
            return zero, np.zeros(q.shape)
        s = self._state
        s["FH"] = self._keep * s["FH"] + self._old * s["H"] + self._new * H
        s["FG"] = self._keep * s["FG"] + self._old * s["G"] + self._new * G
        # Torque is held over a period, unlike H and G: a zero-order hold is exact.
        s["Ftau"] = self._keep * s["Ftau"] + (1.0 - self._keep) * tau
        s["H"], s["G"] = H, G
        W = self.bandwidth * (H - s["FH"]) + s["FG"]
        if self.torque_scale.ndim == 0 and self.torque_scale == 1.0:
            return W, s["Ftau"]
        return W / self.torque_scale[..., None], s["Ftau"] / self.torque_scale

    def _parts(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dynamics = self.model.dynamics
        still = np.zeros_like(qd)
        H = dynamics.momentum_regressor(q, qd)
        G = dynamics.slotine_li_regressor(q, qd, still, still)
        G -= dynamics.kinetic_gradient_regressor(q, qd)
        # A unit of viscous friction takes what a unit of rotor inertia has as momentum.
        layout = dynamics.arm.layout
        G[..., layout.drive("viscous")] = H[..., layout.drive("rotor_inertia")]
        return self.model.select(H), self.model.select(G)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {f"filter_{k}": v.copy() for k, v in self._state.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called."""
        self._state = {}
        if not any(key.startswith("filter_") for key in state):
            return
        adaptation, arm = self.model.adaptation, self.model.parameters.arm
        batch, count = adaptation.parameters.shape
        table: tuple[int, ...] = (batch, arm.dof, count)
        shapes = dict.fromkeys(("H", "G", "FH", "FG"), table)
        shapes["Ftau"] = (batch, arm.dof)
        self._state = {
            name: restored(state, f"filter_{name}", shape)
            for name, shape in shapes.items()
        }


# Base of adaptive controllers: estimate and state.


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
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self.model.reset(batch, period)
        self._velocity.reset(period)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self.model.to_dict() | self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self.model.restore(state)
        batch = self.model.estimate.shape[0]
        self._velocity.restore(state, (batch, self.model.parameters.arm.dof))


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
        """Begin anew, for `batch` plants controlled every `period` [s]."""
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
        self._tau = restored(state, "held_torque", self._tau.shape)
        self.filtered.restore(state)
