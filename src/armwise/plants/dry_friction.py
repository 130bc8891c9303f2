"""Dry friction of a batch of drives: how much there can be, and how much there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

_SWEEPS = 200


def dry_level(
    drives: Float[np.ndarray, "6 batch drives"],
    speed: Float[np.ndarray, "batch drives"],
) -> Float[np.ndarray, "batch drives"]:
    """Return the largest dry friction in [N m] at a speed: fs at rest, then fc."""
    coulomb, static, stribeck_speed = drives[2:5]
    level: np.ndarray = coulomb + (static - coulomb) / (
        1 + (speed / stribeck_speed) ** 2
    )
    return level


def guessed_friction(
    drives: Float[np.ndarray, "6 batch drives"],
    speed: Float[np.ndarray, "batch drives"],
    last: Float[np.ndarray, "batch drives"],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the level and the friction if sliding goes on and rest stays."""
    level = dry_level(drives, speed)
    held = np.clip(last, -level, level)
    return level, np.where(speed == 0.0, held, level * np.sign(speed))


def solve_friction(
    A: Float[np.ndarray, "batch drives drives"],
    level: Float[np.ndarray, "batch drives"],
    guess: Float[np.ndarray, "batch drives"],
    speed: Float[np.ndarray, "batch drives"],
) -> Float[np.ndarray, "batch drives"]:
    """Find the friction, within its level, that opposes the speeds it leaves.

    Speeds after a step are speed − A (f − guess). By Gauss–Seidel over the drives,
    which converges because A is positive definite.
    """
    f, u = guess.copy(), speed.copy()
    for _ in range(_SWEEPS):
        change = 0.0
        for k in range(f.shape[1]):
            with np.errstate(divide="ignore", invalid="ignore"):
                wanted = f[:, k] + u[:, k] / A[:, k, k]
            bounded = np.clip(wanted, -level[:, k], level[:, k])
            step = np.where(level[:, k] > 0, bounded - f[:, k], 0.0)
            u -= A[:, :, k] * step[:, None]
            f[:, k] += step
            relative = np.abs(step) / (level[:, k] + 1e-300)
            change = max(change, float(relative.max()))
        if change < 1e-12:
            break
    return f
