"""From motors to joints: gears, couplings, torque constants, phase currents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError

if TYPE_CHECKING:
    from jaxtyping import Float


def motor_to_joint_motion(
    gears: Float[np.ndarray, "motors joints"], motors: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Turn motor positions (or speeds) into the joints': motor = G q."""
    return _combined(np.linalg.inv(gears), motors)


def motor_to_joint_torque(
    gears: Float[np.ndarray, "motors joints"], motors: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Turn motor torques into the joints': τ = Gᵀ τ_motor."""
    return _combined(gears.T, motors)


def three_phase_torque(
    currents: tuple[np.ndarray, np.ndarray, np.ndarray],
    angle: np.ndarray,
    constant: float,
) -> np.ndarray:
    """Return a brushless motor's torque in [N m] (`aah1986` Eq. 22).

    τ = K_T (I_a sin θ + I_b sin(θ + 120°) + I_c sin(θ + 240°)).

    Args:
        currents: I_a, I_b, I_c in [A].
        angle: Electrical angle θ in [rad].
        constant: K_T in [N m/A].
    """
    third = 2.0 * np.pi / 3.0
    torque = sum(
        current * np.sin(angle + k * third) for k, current in enumerate(currents)
    )
    return constant * np.asarray(torque)


def per_joint(values: Sequence[float], count: int, where: str) -> list[float]:
    """Return one number per joint; a single one serves all."""
    if len(values) == 1:
        return [float(values[0])] * count
    if len(values) != count:
        raise RecordingError(f"{where}: {len(values)} numbers for {count} joints.")
    return [float(value) for value in values]


def _combined(matrix: np.ndarray, signals: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Multiply by a matrix signal by signal, without stacking long logs."""
    results = []
    for row in matrix:
        used = [(w, s) for w, s in zip(row, signals, strict=True) if w != 0.0]
        total = used[0][0] * used[0][1] if used else np.zeros_like(signals[0])
        for weight, signal in used[1:]:
            total = total + weight * signal
        results.append(total)
    return results
