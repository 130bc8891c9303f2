"""Learning operators: how a trial's error becomes a correction of the command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.learning.loops import LiftedLoop, block_toeplitz

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class LearningOperator:
    """One update of the command: u ← Q (base − L e), or u ← u + F (base − L e − u).

    Attributes:
        name: What to call it in tables.
        gain: L, from trajectory errors of a trial to command errors.
        smoothing: Q, a filter over the trial; None for none.
        from_applied: Whether the base is what reached the actuators, feedback
            included (`atkeson1986` 6.11), rather than the feedforward alone.
        response: L as a function of z, where L is time-invariant.
        correction_filter: F, a filter that only the correction passes; None for none.
    """

    name: str
    gain: Float[np.ndarray, "commands errors"]
    smoothing: Float[np.ndarray, "commands commands"] | None = None
    from_applied: bool = True
    response: Callable[[np.ndarray], np.ndarray] | None = None
    correction_filter: Float[np.ndarray, "commands commands"] | None = None

    def propagation(self, loop: LiftedLoop) -> Float[np.ndarray, "commands commands"]:
        """How a command error goes from one trial to the next: δu ← Q (S − L B) δu."""
        size = loop.applied.shape[0]
        base = loop.applied if self.from_applied else np.eye(size)
        matrix: np.ndarray = base - self.gain @ loop.error
        if self.correction_filter is not None:
            matrix = np.eye(size) + self.correction_filter @ (matrix - np.eye(size))
        return matrix if self.smoothing is None else self.smoothing @ matrix


def scaled_error(
    scale: float, samples: int, lead: int = 0, from_applied: bool = True
) -> LearningOperator:
    """Correct with a multiple of the error, taken `lead` samples later."""
    name = f"{scale:.4g} × error"
    gain = scale * np.eye(samples, k=lead)
    return LearningOperator(
        name, gain, None, from_applied, lambda z: scale * z[:, None, None] ** lead
    )


def inverse_model(model: LiftedLoop) -> LearningOperator:
    """Correct with the inverse of a model of the plant, R̂⁻¹ (`atkeson1986` 6.7).

    R̂ is the model's command-to-error map with its own feedback undone, so an
    exact model cancels every command error in one trial.
    """
    gain = np.linalg.solve(model.error.T, model.applied.T).T
    loop = model.loop

    def response(z: np.ndarray) -> np.ndarray:
        assert loop is not None
        applied, error = loop.response(z)
        return applied @ np.linalg.inv(error)

    return LearningOperator(
        "inverse model", gain, None, True, response if loop is not None else None
    )


def norm_optimal(
    model: LiftedLoop, command_weight: float, change_weight: float
) -> LearningOperator:
    """Minimise ‖e‖² + ρ‖u‖² + λ‖Δu‖² on the model, trial by trial.

    Q = ((ρ+λ)I + TᵀT)⁻¹(λI + TᵀT), L = (λI + TᵀT)⁻¹Tᵀ with T the model's
    command-to-output map (an error here is output minus reference).

    Args:
        model: The loop the operator believes in.
        command_weight: ρ, the price of a large command.
        change_weight: λ, the price of changing it.
    """
    T = model.error
    normal = T.T @ T
    eye = np.eye(T.shape[1])
    step = change_weight * eye + normal
    smoothing = np.linalg.solve(command_weight * eye + step, step)
    gain = np.linalg.solve(step, T.T)
    return LearningOperator("norm-optimal", gain, smoothing, from_applied=False)


def impulse_operator(
    name: str, impulse: Float[np.ndarray, " taps"], samples: int
) -> LearningOperator:
    """Correct with a causal filter of the error, given by its impulse response."""
    padded = np.zeros(samples)
    padded[: min(samples, impulse.size)] = impulse[:samples]
    powers = np.arange(impulse.size)

    def response(z: np.ndarray) -> np.ndarray:
        values: np.ndarray = (z[:, None] ** -powers) @ impulse
        return values[:, None, None]

    return LearningOperator(
        name, block_toeplitz(padded[:, None, None]), None, True, response
    )
