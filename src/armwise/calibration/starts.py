"""Where to begin the search for gains and offsets."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.point import Point
from armwise.calibration.structure import Structure
from armwise.errors import ArgumentError
from armwise.recordings import Samples

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def starting_points(
    structure: Structure,
    sensed: Samples,
    alpha: ArrayLike | None,
    beta: ArrayLike | None,
    gain_range: float | None,
    offset_range: float,
    count: int,
    seed: int,
) -> list[Point]:
    """Return the guess first, then points spread evenly over all that is possible.

    Args:
        structure: The arm.
        sensed: Samples in the sensors' units.
        alpha, beta: The guess, if there is one.
        gain_range: Factor between the guess and the gain.
        offset_range: Distance between the guess and the offset in [rad].
        count: How many.
        seed: Of their spread.
    """
    from scipy.stats import qmc

    n = structure.arm.dof
    guess = _guess(structure, sensed, alpha, beta)
    blind = alpha is None and not structure.gains_known
    factor = gain_range if gain_range is not None else 5.0 if blind else 1.3
    if factor < 1.0 or offset_range < 0.0:
        raise ArgumentError("gain_range must be at least 1 and offset_range positive.")
    size = max(1, count)
    unit = qmc.Sobol(3 * n, seed=seed).random_base2(int(np.ceil(np.log2(size))))[:size]
    sides = np.where(unit[:, 2 * n :] < 0.5, -1.0, 1.0) if blind else 1.0
    gains = np.exp(np.log(factor) * (2.0 * unit[:, :n] - 1.0)) * sides
    if structure.gains_known:
        gains = np.ones_like(gains)
    turns = (2.0 * unit[:, n : 2 * n] - 1.0) * offset_range
    spread = zip(guess.alpha * gains, guess.beta + turns, strict=True)
    return [guess, *(Point(a, b) for a, b in spread)]


def reversed_points(points: list[Point]) -> list[Point]:
    """The same points with sensors that count backwards: one of them, two, all."""
    n = points[0].alpha.size
    masks = [np.array(m) for m in product((1.0, -1.0), repeat=n) if min(m) < 0.0]
    masks.sort(key=lambda m: int(np.sum(m < 0.0)))
    masks = masks[: max(2 * n, len(points))]
    turns = [masks[i % len(masks)] for i in range(len(points))]
    return [Point(p.alpha * m, p.beta) for p, m in zip(points, turns, strict=True)]


def _guess(
    structure: Structure,
    sensed: Samples,
    alpha: ArrayLike | None,
    beta: ArrayLike | None,
) -> Point:
    n = structure.arm.dof
    if alpha is None and structure.gains_known:
        alpha = 1.0
    if alpha is None:
        # A joint that is moved to be calibrated turns by something like a radian.
        gains = 1.0 / np.maximum(np.ptp(sensed.q, axis=0), 1e-9)
    else:
        gains = _joint_numbers(alpha, n, "alpha")
    offsets = np.zeros(n) if beta is None else _joint_numbers(beta, n, "beta")
    if not np.all(gains):
        raise ArgumentError("A sensor's gain alpha cannot be zero.")
    return Point(gains, offsets)


def _joint_numbers(given: ArrayLike, n: int, name: str) -> np.ndarray:
    values = np.asarray(given, dtype=float)
    if values.ndim > 1 or values.size not in (1, n) or not np.isfinite(values).all():
        raise ArgumentError(f"{name} needs {n} finite numbers, one for each joint.")
    return np.broadcast_to(values, (n,)).copy()
