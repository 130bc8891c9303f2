"""Cosines as parabolas: what a joint's gravity torque says of its sensor's gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.errors import NotIdentifiable

if TYPE_CHECKING:
    from jaxtyping import Float


class CosineFit(NamedTuple):
    """A cosine read off a parabola: a + b q + c q² ≈ m cos(α q + β).

    Attributes:
        gain: α in [rad] per unit of q, positive.
        phase: β in [rad].
        moment: m, positive.
    """

    gain: float
    phase: float
    moment: float


def fit_by_arccos(
    coefficients: Float[np.ndarray, " 3"], reach: tuple[float, float]
) -> CosineFit:
    """The thesis' way: the parabola's peak gives m, arccos gives angles, a line α.

    Args:
        coefficients: a, b, c (`astley1996` Eq. 4.23).
        reach: Smallest and largest q that were visited.

    Raises:
        NotIdentifiable: If the parabola is flat: gravity does not bend the torque.
    """
    a, b, c = (float(x) for x in coefficients)
    if abs(c) < 1e-9 * max(abs(a), abs(b), 1e-300):
        raise NotIdentifiable(
            "The torque is a straight line in the reading: gravity does not act on "
            "this joint, or it moved too little."
        )
    top = -b / (2.0 * c)
    moment = a + b * top + c * top**2
    if moment * c >= 0.0:
        raise NotIdentifiable(
            "The torque bends away from zero, as no cosine does: friction or coupling "
            "is larger than gravity on this joint."
        )
    q = np.linspace(*reach, 101)
    angle = np.arccos(np.clip((a + b * q + c * q**2) / moment, -1.0, 1.0))
    angle = np.where(q < top, -angle, angle)
    gain, phase = np.polyfit(q, angle, 1)
    turned = phase if moment > 0.0 else phase + np.pi
    return CosineFit(float(gain), float(np.angle(np.exp(1j * turned))), abs(moment))


def fit_exactly(
    coefficients: Float[np.ndarray, " 3"], reach: tuple[float, float]
) -> CosineFit:
    """The cosine whose best parabola over the reach is this one.

    The arccos line takes the parabola for the cosine itself, and so mistakes the
    gain by some percent; three coefficients determine the cosine without that error.
    """
    from scipy.optimize import least_squares

    first = fit_by_arccos(coefficients, reach)
    q = np.linspace(*reach, 101)
    powers = np.vander(q, 3, increasing=True)
    projector = np.linalg.pinv(powers)
    scale = max(abs(first.moment), 1e-12)

    def miss(x: np.ndarray) -> np.ndarray:
        curve = x[2] * scale * np.cos(x[0] * first.gain * q + x[1])
        return np.asarray((projector @ curve - coefficients) / scale)

    found = least_squares(miss, [1.0, first.phase, 1.0], xtol=1e-12, ftol=1e-12)
    gain, phase, moment = found.x[0] * first.gain, found.x[1], found.x[2] * scale
    if not 0.3 < found.x[0] < 3.0 or moment <= 0.0:
        return first
    return CosineFit(float(gain), float(np.angle(np.exp(1j * phase))), float(moment))


def approximation_error(
    degree: int, gain: float = 0.8, phase: float = 0.3, reach: float = 1.0
) -> float:
    """Largest error of the best polynomial for cos(α q + β) on |q| ≤ reach (Fig. 4.5).

    Relative to the cosine's whole travel over that reach, its "total magnitude".
    """
    q = np.linspace(-reach, reach, 2001)
    curve = np.cos(gain * q + phase)
    best = np.polynomial.Chebyshev.fit(q, curve, degree)
    return float(np.abs(best(q) - curve).max() / np.ptp(curve))
