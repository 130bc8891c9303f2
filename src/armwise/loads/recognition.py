"""Which known object is held: mass and principal moments against a catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters, pose, rotation_about
from armwise.errors import ArgumentError
from armwise.loads.estimate import SCALE, WELL_DETERMINED, LoadEstimate

if TYPE_CHECKING:
    from jaxtyping import Float


STRANGE = 0.01
"""Below this probability of being so far off by chance, it is none of them."""


@dataclass(frozen=True)
class KnownObject:
    """An object by what does not depend on how it is held.

    Attributes:
        name: Its name.
        mass: In [kg].
        principal_moments: In [kg m²], in any order.
        mass_std, moments_std: How far copies of it differ; for moments one number or
            three, in [kg m²].
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
        chance: Probability that the object itself looks at least this different.
        probability: That it is this one, if it is one of them and all are as likely.
    """

    name: str
    distance: float
    chance: float
    probability: float


@dataclass(frozen=True)
class Recognition:
    """The catalogue, best match first.

    Attributes:
        matches: Every object, most probable first.
        is_known: Whether the best one could look like this by chance.
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

    Mass and principal moments count; centre and axes only tell how it is held. If the
    inertia was not determined, the mass has to do.
    """
    from scipy.stats import chi2

    if not catalogue:
        raise ArgumentError("The catalogue is empty; name at least one object.")
    seen, covariance = _features(estimate)
    size = len(seen)
    found = []
    for known in catalogue:
        expected, spread = _expected(known, size)
        total = covariance + np.diag(spread**2)
        apart = seen - expected
        squared = float(apart @ np.linalg.solve(total, apart))
        likelihood = -0.5 * (squared + np.linalg.slogdet(total)[1])
        found.append((known.name, squared, float(chi2.sf(squared, size)), likelihood))
    best = max(likelihood for *_, likelihood in found)
    weights = np.array([np.exp(likelihood - best) for *_, likelihood in found])
    shares = weights / weights.sum()
    matches = [
        Match(name, float(np.sqrt(squared)), chance, float(share))
        for (name, squared, chance, _), share in zip(found, shares, strict=True)
    ]
    ordered = tuple(sorted(matches, key=lambda m: (-m.probability, m.distance)))
    return _judge(ordered, size)


def _judge(matches: tuple[Match, ...], size: int) -> Recognition:
    best = matches[0]
    is_known = best.chance >= STRANGE
    next_best = matches[1].probability if len(matches) > 1 else 0.0
    is_certain = is_known and best.probability >= 20.0 * next_best
    by = "mass and principal moments" if size > 1 else "mass alone"
    if not is_known:
        statement = (
            f"It is none of the {len(matches)} known objects by {by}; the nearest is "
            f"{best.name}, {best.distance:.1f} standard deviations away."
        )
    elif is_certain:
        statement = f"It is {best.name} by {by} ({100 * best.probability:.1f} %)."
    else:
        rivals = [m.name for m in matches if m.probability > best.probability / 20.0]
        statement = f"By {by} it may be {' or '.join(rivals)}."
    return Recognition(matches, is_known, is_certain, statement)


def _features(estimate: LoadEstimate) -> tuple[np.ndarray, np.ndarray]:
    """Mass and, if known, principal moments, with their joint covariance."""
    if not estimate.is_complete:
        return np.array([estimate.mass]), np.array([[estimate.covariance[0, 0]]])
    axes = estimate.principal.axes

    def function(vector: np.ndarray) -> np.ndarray:
        body = InertialParameters(vector)
        return np.array([body.mass, *np.diag(axes.T @ body.central_inertia @ axes)])

    J = _jacobian(function, estimate.parameters.vector)
    seen = np.array([estimate.mass, *estimate.principal.moments])
    return seen, J @ estimate.covariance @ J.T


def _jacobian(function, at: np.ndarray) -> Float[np.ndarray, "_ 10"]:  # type: ignore[no-untyped-def]
    steps = 1e-5 * SCALE
    columns = []
    for k in range(10):
        step = np.zeros(10)
        step[k] = steps[k]
        columns.append((function(at + step) - function(at - step)) / (2 * steps[k]))
    return np.stack(columns, axis=1)


def _expected(known: KnownObject, size: int) -> tuple[np.ndarray, np.ndarray]:
    if size == 1:
        return np.array([known.mass]), np.array([known.mass_std])
    order = np.argsort(known.principal_moments)
    moments = np.asarray(known.principal_moments)[order]
    spread = np.broadcast_to(np.asarray(known.moments_std, dtype=float), (3,))
    if spread.size == 3:
        spread = spread[order]
    return np.array([known.mass, *moments]), np.array([known.mass_std, *spread])


# Whether an object is held where and how it should be.


@dataclass(frozen=True, eq=False)
class GraspCheck:
    """What an estimate says about a grasp.

    Attributes:
        is_as_expected: Whether the object may be where it should be.
        chance: Probability that a proper grasp looks at least this different.
        shift: Centre of mass found minus expected, in the frame, in [m].
        shift_std: Its standard deviation.
        turn: Angle in [rad] between expected and found principal axes, of the axes
            that are well determined; NaN if none is.
        mass_difference: Found minus expected in [kg].
        statement: In words.
    """

    is_as_expected: bool
    chance: float
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
        estimate: What was found.
        body: The object's ten parameters in its own frame.
        T_frame_object: Where it should be in the estimate's frame; right there when
            not given.
        position_tolerance: Standard deviation of a proper grasp's position in [m].
        angle_tolerance: Of its orientation in [rad].
        mass_tolerance: Fraction by which copies of the object differ.
    """
    from scipy.stats import chi2

    T = np.eye(4) if T_frame_object is None else np.asarray(T_frame_object, float)
    if T.shape != (4, 4):
        raise ArgumentError(f"T_frame_object must be a 4×4 pose, not {T.shape}.")
    expected = body.transformed(T)
    known = np.isfinite(estimate.parameters.vector)
    placing = _placing(body, T, position_tolerance, angle_tolerance, mass_tolerance)
    total = (np.nan_to_num(estimate.covariance) + placing)[np.ix_(known, known)]
    apart = (estimate.parameters.vector - expected.vector)[known]
    chance = float(chi2.sf(apart @ np.linalg.solve(total, apart), known.sum()))
    shift = estimate.center_of_mass - expected.center_of_mass
    shift_std = estimate.std.center_of_mass
    turn = _turn(estimate, expected)
    difference = estimate.mass - expected.mass
    good = chance >= STRANGE
    return GraspCheck(
        good, chance, shift, shift_std, turn, difference,
        _say(good, shift, shift_std, turn, difference),
    )  # fmt: skip


def _placing(
    body: InertialParameters,
    T: np.ndarray,
    position: float,
    angle: float,
    mass: float,
) -> Float[np.ndarray, "10 10"]:
    """Covariance of the parameters among proper grasps of proper copies."""
    center = body.transformed(T).vector
    columns = [mass * center]
    for k in range(3):
        axis = np.eye(3)[k]
        shifted = pose(None, position * axis) @ T
        turned = T.copy()
        turned[:3, :3] = rotation_about(axis, angle) @ T[:3, :3]
        columns.append(body.transformed(shifted).vector - center)
        columns.append(body.transformed(turned).vector - center)
    J = np.stack(columns, axis=1)
    spread: np.ndarray = J @ J.T
    return spread


def _turn(estimate: LoadEstimate, expected: InertialParameters) -> float:
    """Largest angle between the found and the expected axes, signs aside."""
    if not estimate.is_complete:
        return float("nan")
    sure = estimate.std.principal_axes < WELL_DETERMINED
    if not sure.any():
        return float("nan")
    cosines = np.abs(np.sum(estimate.principal.axes * expected.principal[1], axis=0))
    return float(np.arccos(np.clip(cosines[sure], 0.0, 1.0)).max())


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
