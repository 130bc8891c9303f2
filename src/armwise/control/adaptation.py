"""Parameters that move: estimate, gain, and the guard against running away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.update_law import (
    UpdateLaw,
    apply_gain,
    innovation,
    outside_dead_band,
)
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Projection = Callable[[np.ndarray], np.ndarray]
"""Takes parameters (..., p) to the nearest ones that are allowed."""


class Adaptation:
    """An estimate â that follows errors by an update law, one row per plant.

    Its whole state is `parameters`, `gain` and `stopped`; `to_dict` and `restore`
    carry it across processes.

    Attributes:
        parameters: â, shape (*batch, p).
        gain: P.
        stopped: Plants whose adaptation ran away and was stopped, shape (*batch,).
    """

    def __init__(
        self,
        law: UpdateLaw,
        initial: Float[np.ndarray, " p"],
        batch: tuple[int, ...] = (),
        projection: Projection | None = None,
        limit: float = 1e6,
    ) -> None:
        self.law = law
        self.projection = projection
        start = np.asarray(initial, dtype=float)
        self.limit = limit * max(1.0, float(np.abs(start).max(initial=0.0)))
        self.parameters = np.broadcast_to(
            start, (*batch, start.shape[-1]) if start.ndim == 1 else start.shape
        ).copy()
        self.gain = law.initial_gain(start.shape[-1], batch)
        self.stopped = np.zeros(batch, dtype=bool)
        self._any_stopped = False

    def track(
        self,
        Y: Float[np.ndarray, "... n p"],
        s: Float[np.ndarray, "... n"],
        dt: float,
        frozen: Bool[np.ndarray, ...] | None = None,
    ) -> None:
        """â' = −P Yᵀ s over dt, the direct rule (`astley1996` Eq. 3.26)."""
        s = outside_dead_band(s, self.law.dead_band)
        force = np.matmul(s[..., None, :], Y)[..., 0, :]
        step = apply_gain(self.gain, force)
        step *= -dt
        self._move(step, frozen)
        if self.law.adapts_gain:
            self.gain = self.law.next_gain(self.gain, Y, dt)

    def compose(
        self,
        Y: Float[np.ndarray, "... n p"],
        s: Float[np.ndarray, "... n"],
        W: Float[np.ndarray, "... n p"],
        filtered_torque: Float[np.ndarray, "... n"],
        dt: float,
        weights: tuple[float, float] = (1.0, 1.0),
        frozen: Bool[np.ndarray, ...] | None = None,
    ) -> None:
        """â' = −P (C1 Yᵀ s + C2 Wᵀ e) over dt (`astley1996` Eq. 3.40).

        The prediction error e = W â − Fτ is taken at the end of the step, which
        keeps large gains stable at any sampling rate.
        """
        tracking, prediction = weights
        s = outside_dead_band(s, self.law.dead_band)
        force = np.matmul(s[..., None, :], Y)[..., 0, :]
        step = apply_gain(self.gain, force)
        step *= -dt * tracking
        factors = None
        if prediction:
            P = self._gain_matrix()
            moved = self.parameters + step
            error = (W @ moved[..., None])[..., 0] - filtered_torque
            error = outside_dead_band(error, self.law.prediction_dead_band)
            spread, inverse = innovation(P, W, dt * prediction)
            step -= (spread @ (inverse @ error[..., None]))[..., 0]
            factors = (spread, inverse) if prediction == 1.0 else None
        self._move(step, frozen)
        if self.law.adapts_gain:
            self.gain = self.law.next_gain(self.gain, W, dt, factors)

    def _gain_matrix(self) -> np.ndarray:
        if self.gain.ndim >= 2:
            return self.gain
        return self.gain * np.eye(self.parameters.shape[-1])

    def _move(self, step: np.ndarray, frozen: np.ndarray | None) -> None:
        if frozen is not None or self._any_stopped:
            still = self.stopped if frozen is None else frozen | self.stopped
            step[still] = 0.0
        moved = self.parameters + step
        if self.projection is not None:
            moved = self.projection(moved)
        # One comparison catches both NaN and a runaway.
        if not np.abs(moved).max() <= self.limit:
            moved = self._stop(moved)
        self.parameters = moved

    def _stop(self, moved: np.ndarray) -> np.ndarray:
        """Leave runaway plants with their last good parameters and stop them."""
        bad = ~(np.abs(moved).max(axis=-1) <= self.limit)
        self.stopped = self.stopped | bad
        self._any_stopped = True
        return np.where(bad[..., None], self.parameters, moved)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {
            "parameters": self.parameters.copy(),
            "gain": self.gain.copy(),
            "stopped": self.stopped.copy(),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called."""
        for name in ("parameters", "gain", "stopped"):
            value, now = np.asarray(state[name]), getattr(self, name)
            if value.shape != now.shape:
                raise ArgumentError(
                    f"The saved {name} has shape {value.shape}, not {now.shape}; "
                    "it belongs to another controller."
                )
            setattr(self, name, value.copy())
        self._any_stopped = bool(self.stopped.any())
