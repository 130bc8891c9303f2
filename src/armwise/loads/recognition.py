"""Recognition of objects by mass and principal moments, and grasp verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters, pose, rotation_about
from armwise.errors import ArgumentError
from armwise.loads.estimate import (
    WELL_DETERMINED,
    LoadEstimate,
    parameter_jacobian,
)

if TYPE_CHECKING:
    from jaxtyping import Float


SIGNIFICANCE = 0.01
"""Level of the χ² tests: in one of a hundred cases the right object, or a proper grasp,
is rejected. A robot that then looks again loses a second; one that goes on with the
wrong object loses more."""

_CERTAIN_ODDS = 20.0
"""Odds of the best match against the next from which on it is certain: about the 95 %
of a customary test."""


@dataclass(frozen=True)
class KnownObject:
    """An object, described by what does not depend on how it is held.

    Attributes:
        name: Its name.
        mass: In [kg].
        principal_moments: In [kg m²], in any order.
        mass_std, moments_std: Standard deviation among copies of it; for moments one
            number or three, in [kg m²].
    """

    name: str
    mass: float
    principal_moments: tuple[float, float, float]
    mass_std: float = 0.0
    moments_std: float | tuple[float, float, float] = 0.0

    @classmethod
    def from_parameters(
        cls, name: str, parameters: InertialParameters, mass_std: float = 0.0
    ) -> KnownObject:
        """Describe an object by its ten parameters, in any frame."""
        a, b, c = (float(x) for x in parameters.principal[0])
        return cls(name, parameters.mass, (a, b, c), mass_std)


@dataclass(frozen=True)
class Match:
    """How well one object fits.

    Attributes:
        name: Its name.
        distance: Mahalanobis distance from the estimate.
        p_value: Probability that the object itself looks at least this different.
        probability: Posterior probability of this one, the prior being that it is one
            of them and each as likely.
    """

    name: str
    distance: float
    p_value: float
    probability: float


@dataclass(frozen=True)
class Recognition:
    """The catalogue, best match first.

    Attributes:
        matches: Every object, most probable first.
        is_known: Whether the χ² test accepts the best one.
        is_certain: Whether it is known, and 20 times as probable as the next.
        statement: In words.
    """

    matches: tuple[Match, ...]
    is_known: bool
    is_certain: bool
    statement: str

    @property
    def name(self) -> str | None:
        """Name of the object, or None if it is none of them."""
        return self.matches[0].name if self.is_known else None


def recognise(estimate: LoadEstimate, catalogue: Sequence[KnownObject]) -> Recognition:
    """Match an estimate against known objects, uncertainties of both considered.

    Mass and principal moments are compared by their Mahalanobis distance; centre and
    axes depend on how the object is held. If the inertia was not determined, the mass
    is compared alone.
    """
    from scipy.stats import chi2

    if not catalogue:
        raise ArgumentError("The catalogue is empty; name at least one object.")
    features, covariance = _features(estimate)
    size = len(features)
    squares, likelihoods = [], []
    for candidate in catalogue:
        expected, std = _expected(candidate, size)
        total = covariance + np.diag(std**2)
        difference = features - expected
        squared = float(difference @ np.linalg.solve(total, difference))
        squares.append(squared)
        # Objects with a wide spread fit anything; the determinant makes them pay.
        likelihoods.append(-0.5 * (squared + np.linalg.slogdet(total)[1]))
    # Bayes' rule with equal priors; the best one subtracted, or all would underflow.
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    matches = [
        Match(candidate.name, float(np.sqrt(squared)), float(chi2.sf(squared, size)), p)
        for candidate, squared, p in zip(
            catalogue, squares, (weights / weights.sum()).tolist(), strict=True
        )
    ]
    ordered = tuple(sorted(matches, key=lambda m: (-m.probability, m.distance)))
    return _judge(ordered, size)


def _judge(matches: tuple[Match, ...], size: int) -> Recognition:
    best = matches[0]
    is_known = best.p_value >= SIGNIFICANCE
    next_best = matches[1].probability if len(matches) > 1 else 0.0
    is_certain = is_known and best.probability >= _CERTAIN_ODDS * next_best
    by = "mass and principal moments" if size > 1 else "mass alone"
    if not is_known:
        statement = (
            f"It is none of the {len(matches)} known objects by {by}; the nearest is "
            f"{best.name}, {best.distance:.1f} standard deviations away."
        )
    elif is_certain:
        statement = f"It is {best.name} by {by} ({100 * best.probability:.1f} %)."
    else:
        least = best.probability / _CERTAIN_ODDS
        rivals = [m.name for m in matches if m.probability > least]
        statement = f"By {by} it may be {' or '.join(rivals)}."
    return Recognition(matches, is_known, is_certain, statement)


def _features(estimate: LoadEstimate) -> tuple[np.ndarray, np.ndarray]:
    """Mass and, if known, principal moments, with their joint covariance."""
    if not estimate.is_complete:
        return np.array([estimate.mass]), np.array([[estimate.covariance[0, 0]]])
    axes = estimate.principal.axes

    def function(body: InertialParameters) -> np.ndarray:
        # Along fixed axes: to first order the moments change as the diagonal does.
        return np.array([body.mass, *np.diag(axes.T @ body.central_inertia @ axes)])

    J = parameter_jacobian(function, estimate.parameters.vector)
    features = np.array([estimate.mass, *estimate.principal.moments])
    return features, J @ estimate.covariance @ J.T


def _expected(candidate: KnownObject, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of an object, moments ascending, and their standard deviations."""
    order = np.argsort(candidate.principal_moments)
    moments = np.asarray(candidate.principal_moments)[order]
    std = np.broadcast_to(np.asarray(candidate.moments_std, dtype=float), (3,))[order]
    features = np.array([candidate.mass, *moments])
    return features[:size], np.array([candidate.mass_std, *std])[:size]


# Grasp verification.


@dataclass(frozen=True, eq=False)
class GraspCheck:
    """Comparison of an estimate with a proper grasp.

    Attributes:
        is_as_expected: Whether the χ² test accepts the grasp as proper.
        p_value: Probability that a proper grasp looks at least this different.
        shift: Centre of mass, estimated minus expected, in the frame, in [m].
        shift_std: Its standard deviation.
        turn: Angle in [rad] between expected and estimated principal axes, of the axes
            that are well determined; NaN if none is.
        mass_difference: Estimated minus expected in [kg].
        statement: In words.
    """

    is_as_expected: bool
    p_value: float
    shift: Float[np.ndarray, " 3"]
    shift_std: Float[np.ndarray, " 3"]
    turn: float
    mass_difference: float
    statement: str


def verify_grasp(
    estimate: LoadEstimate,
    body: InertialParameters,
    T_frame_object: Float[np.ndarray, "4 4"] | None = None,
    *,
    position_tolerance: float = 0.003,
    angle_tolerance: float = 0.05,
    mass_tolerance: float = 0.01,
) -> GraspCheck:
    """Compare an estimate with an object held in a certain pose.

    Args:
        estimate: The load as identified.
        body: The object's ten parameters in its own frame.
        T_frame_object: Its expected pose in the estimate's frame; the identity by
            default.
        position_tolerance: Standard deviation of a proper grasp's position in [m].
        angle_tolerance: Of its orientation in [rad].
        mass_tolerance: Fraction by which copies of the object differ.
    """
    from scipy.stats import chi2

    T = np.eye(4) if T_frame_object is None else np.asarray(T_frame_object, float)
    if T.shape != (4, 4):
        raise ArgumentError(f"T_frame_object must be a 4×4 pose, not {T.shape}.")
    expected = body.transformed(T)
    used = np.isfinite(estimate.parameters.vector)
    grasps = _grasp_covariance(
        body, T, position_tolerance, angle_tolerance, mass_tolerance
    )
    total = (np.nan_to_num(estimate.covariance) + grasps)[np.ix_(used, used)]
    apart = (estimate.parameters.vector - expected.vector)[used]
    p_value = float(chi2.sf(apart @ np.linalg.solve(total, apart), used.sum()))
    shift = estimate.center_of_mass - expected.center_of_mass
    shift_std = estimate.std.center_of_mass
    turn = _turn(estimate, expected)
    difference = estimate.mass - expected.mass
    good = p_value >= SIGNIFICANCE
    return GraspCheck(
        good, p_value, shift, shift_std, turn, difference,
        _say(good, shift, shift_std, turn, difference),
    )  # fmt: skip


def _grasp_covariance(
    body: InertialParameters,
    T: np.ndarray,
    position: float,
    angle: float,
    mass: float,
) -> Float[np.ndarray, "10 10"]:
    """Covariance of the parameters among proper grasps of proper copies."""
    mean = body.transformed(T).vector
    columns = [mass * mean]
    for k in range(3):
        axis = np.eye(3)[k]
        shifted = pose(None, position * axis) @ T
        turned = T.copy()
        turned[:3, :3] = rotation_about(axis, angle) @ T[:3, :3]
        columns.append(body.transformed(shifted).vector - mean)
        columns.append(body.transformed(turned).vector - mean)
    # Independent causes of one standard deviation each: their squares add.
    J = np.stack(columns, axis=1)
    spread: np.ndarray = J @ J.T
    return spread


def _turn(estimate: LoadEstimate, expected: InertialParameters) -> float:
    """Largest angle between estimated and expected axes, whatever their signs."""
    if not estimate.is_complete:
        return float("nan")
    is_clear = estimate.std.principal_axes < WELL_DETERMINED
    if not is_clear.any():
        return float("nan")
    # A principal axis has no sign, so the angle is at most a right one.
    cosines = np.abs(np.sum(estimate.principal.axes * expected.principal[1], axis=0))
    return float(np.arccos(np.clip(cosines[is_clear], 0.0, 1.0)).max())


def _say(
    good: bool, shift: np.ndarray, std: np.ndarray, turn: float, difference: float
) -> str:
    where = ", ".join(
        f"{1e3 * d:.1f} ± {1e3 * s:.1f}" for d, s in zip(shift, std, strict=True)
    )
    axes = "" if np.isnan(turn) else f", its axes {np.rad2deg(turn):.1f}°"
    verdict = "held as expected" if good else "not held as expected"
    return (
        f"The object is {verdict}: its centre is off by ({where}) mm{axes}, its mass "
        f"by {1e3 * difference:.0f} g."
    )
