"""Push each joint to and fro: which way does its reading go, and how willingly?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.bench import Bench
from armwise.errors import NotIdentifiable

if TYPE_CHECKING:
    from jaxtyping import Float

_PULSE = 0.01
"""Length of a push in [s]."""

_PATTERN = (1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0)
"""Signs of successive pushes: in the end a joint is where it was, at rest."""


def find_senses(bench: Bench, effort: np.ndarray) -> Float[np.ndarray, "batch dof"]:
    """Set the bench's sense of every joint; return the joints' inertias.

    Args:
        bench: With a plant at rest.
        effort: Torque to push each joint with in [N m].

    Returns:
        Inertia of each joint in [N m s²] per unit of the reading.

    Raises:
        NotIdentifiable: If a joint does not answer.
    """
    inertia = np.zeros_like(bench.x)
    for j in range(inertia.shape[1]):
        answer, doubt = _answer(bench, j, float(effort[j]))
        if np.any(np.abs(answer) <= 3.0 * doubt):
            raise NotIdentifiable(
                f"Joint {j + 1} does not answer to a push of {effort[j]:.3g} N m: its "
                "sensor does not move, or friction holds it."
            )
        bench.sense[:, j] = np.sign(answer)
        inertia[:, j] = 1.0 / np.abs(answer)
    return inertia


def _answer(bench: Bench, j: int, effort: float) -> tuple[np.ndarray, np.ndarray]:
    """Acceleration of the reading for one [N m], arm by arm, and its deviation."""
    readings = [bench.x[:, j]]
    steps = max(4, round(_PULSE / bench.period))
    for sign in _PATTERN:
        u = np.zeros_like(bench.x)
        u[:, j] = sign * effort
        for _ in range(steps):
            bench.step(u)
        readings.append(bench.x[:, j])
    change = np.diff(np.array(readings), n=2, axis=0) / (steps * bench.period) ** 2
    # With torque w in one pulse and w' in the next, x'' averages (w + w')/2.
    signs = np.array(_PATTERN)
    pushes = 0.5 * effort * (signs[1:] + signs[:-1])
    pushes = pushes - pushes.mean()
    change = change - change.mean(axis=0)
    weight = np.sum(pushes**2)
    answer = pushes @ change / weight
    left = change - np.outer(pushes, answer)
    return answer, left.std(axis=0) / np.sqrt(weight)
