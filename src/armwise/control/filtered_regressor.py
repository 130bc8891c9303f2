"""The regressor behind a low-pass: torques without accelerations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptive_model import AdaptiveModel
from armwise.control.gains import feedback_gain

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


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
        """Begin anew, asked every `period` [s]."""
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
        links = 10 * len(dynamics.arm.links)
        G[..., links + 1 :: 4] = H[..., links::4]
        return self.model.select(H), self.model.select(G)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {f"filter_{k}": v.copy() for k, v in self._state.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called."""
        prefix = "filter_"
        self._state = {
            key.removeprefix(prefix): np.array(value)
            for key, value in state.items()
            if key.startswith(prefix)
        }
