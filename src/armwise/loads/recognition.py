"""Recognition of objects by mass and principal moments, and grasp verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters, pose, rotation_from_rpy
from armwise.errors import ArgumentError
from armwise.loads.estimate import (
    WELL_DETERMINED,
    LoadEstimate,
    parameter_jacobian,
)
from armwise.tables import read_toml

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


# Catalogue of objects in a file.


@dataclass(frozen=True, eq=False)
class CatalogueEntry:
    """An object of a catalogue.

    Attributes:
        known: What recognises it.
        body: Its ten parameters in its own frame.
        T_frame_object: Where it should be in the hand.
    """

    known: KnownObject
    body: InertialParameters
    T_frame_object: Float[np.ndarray, "4 4"]


def read_catalogue(path: str | Path) -> dict[str, CatalogueEntry]:
    """Read known objects from TOML, by name.

    Each [[objects]] has a name, a mass [kg], central inertias ixx, iyy, izz and, if
    not zero, ixy, ixz, iyz [kg m²]; a center_of_mass [m] in its own frame; the mass_std
    among copies; and where it should be held: position [m], rpy [rad].
    """
    top = read_toml(Path(path), error_type=ArgumentError).only("objects")
    entries: dict[str, CatalogueEntry] = {}
    for row in top.tables("objects"):
        row.only(
            "name", "mass", "center_of_mass", "ixx", "iyy", "izz", "ixy", "ixz", "iyz",
            "mass_std", "position", "rpy",
        )  # fmt: skip
        name = row.text("name")
        if name in entries:
            raise row.error("is there twice.")
        xx, yy, zz = (row.number(key) for key in ("ixx", "iyy", "izz"))
        xy, xz, yz = (row.number(key, 0.0) for key in ("ixy", "ixz", "iyz"))
        body = InertialParameters.from_center_of_mass(
            row.number("mass"),
            row.vector("center_of_mass", (0.0, 0.0, 0.0)),
            np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
        )
        if defect := body.defect():
            raise row.error(f"is no body: {defect}.")
        R = rotation_from_rpy(row.vector("rpy", (0.0, 0.0, 0.0)))
        T = pose(R, row.vector("position", (0.0, 0.0, 0.0)))
        std = row.number("mass_std", 0.0)
        candidate = KnownObject.from_parameters(name, body, std)
        entries[name] = CatalogueEntry(candidate, body, T)
    if not entries:
        raise ArgumentError(f"{path} names no object: add [[objects]].")
    return entries


# Grasp verification.

CONFIDENCE = 2.576
"""Standard deviations of a two-sided 99 % interval: in one of a hundred cases a grasp
at the edge of its tolerance is called beyond it."""


@dataclass(frozen=True)
class ToleranceCheck:
    """One quantity of a grasp against what is tolerated of it.

    Attributes:
        quantity: `position` in [m], `mass` in [kg] or `orientation` in [rad].
        deviation: How far it is from what was expected.
        std: Standard deviation of that.
        tolerance: What is tolerated, in the same unit.
        verdict: `within` or `beyond`, with 99 % confidence; else `cannot tell`.
    """

    quantity: str
    deviation: float
    std: float
    tolerance: float

    @property
    def verdict(self) -> str:
        """Which side of the tolerance it is on, as far as the estimate can tell."""
        # Not a number, and infinite deviations, compare false both times.
        if self.deviation + CONFIDENCE * self.std <= self.tolerance:
            return "within"
        if self.deviation - CONFIDENCE * self.std > self.tolerance:
            return "beyond"
        return "cannot tell"


@dataclass(frozen=True, eq=False)
class GraspCheck:
    """Comparison of an estimate with a proper grasp.

    Attributes:
        checks: Position, mass and orientation, each with its own tolerance.
        shift: Centre of mass, estimated minus expected, in the frame, in [m].
        shift_std: Its standard deviation.
        turn: Angle in [rad] between expected and estimated principal axes, of the axes
            that are well determined; NaN if none is.
        mass_difference: Estimated minus expected in [kg].
        statement: In words.
    """

    checks: tuple[ToleranceCheck, ...]
    shift: Float[np.ndarray, " 3"]
    shift_std: Float[np.ndarray, " 3"]
    turn: float
    mass_difference: float
    statement: str

    @property
    def is_as_expected(self) -> bool:
        """Whether nothing is beyond its tolerance, and position and mass are within."""
        verdicts = {check.quantity: check.verdict for check in self.checks}
        # Axes of a body that is nearly round cannot be told, held properly or not.
        return verdicts.pop("orientation") != "beyond" and all(
            verdict == "within" for verdict in verdicts.values()
        )


def verify_grasp(
    estimate: LoadEstimate,
    body: InertialParameters,
    T_frame_object: Float[np.ndarray, "4 4"] | None = None,
    *,
    # Judgement: what fingers leave open; set what your task can bear.
    position_tolerance: float = 0.005,
    angle_tolerance: float = 0.15,
    mass_tolerance: float = 0.05,
) -> GraspCheck:
    """Compare an estimate with an object held in a certain pose.

    Position, mass and orientation are judged one by one: a grasp that is exactly known
    and a centimetre off fails by its position, whatever the rest says.

    Args:
        estimate: The load as identified.
        body: The object's ten parameters in its own frame.
        T_frame_object: Its expected pose in the estimate's frame; the identity by
            default.
        position_tolerance: How far its centre may be off in [m].
        angle_tolerance: How far its principal axes may be turned in [rad].
        mass_tolerance: Fraction by which its mass may differ.
    """
    T = np.eye(4) if T_frame_object is None else np.asarray(T_frame_object, float)
    if T.shape != (4, 4):
        raise ArgumentError(f"T_frame_object must be a 4×4 pose, not {T.shape}.")
    for name, value in (
        ("position_tolerance", position_tolerance),
        ("angle_tolerance", angle_tolerance),
        ("mass_tolerance", mass_tolerance),
    ):
        if not value > 0:
            raise ArgumentError(f"{name} must be positive, not {value}.")
    expected = body.transformed(T)
    shift = estimate.center_of_mass - expected.center_of_mass
    std = estimate.std
    away = float(np.linalg.norm(shift))
    # Along the shift; any direction if there is none.
    along = shift / away if away > 0 else np.full(3, 3**-0.5)
    turn, turn_std = _turn(estimate, expected)
    difference = estimate.mass - expected.mass
    checks = (
        ToleranceCheck(
            "position",
            away,
            float(np.sqrt(np.sum((along * std.center_of_mass) ** 2))),
            position_tolerance,
        ),
        ToleranceCheck(
            "mass", abs(difference), std.mass, mass_tolerance * expected.mass
        ),
        ToleranceCheck("orientation", turn, turn_std, angle_tolerance),
    )
    return GraspCheck(checks, shift, std.center_of_mass, turn, difference, _say(checks))


def _turn(estimate: LoadEstimate, expected: InertialParameters) -> tuple[float, float]:
    """Largest angle between estimated and expected axes, and its deviation."""
    if not estimate.is_complete:
        return float("nan"), float("nan")
    is_clear = estimate.std.principal_axes < WELL_DETERMINED
    if not is_clear.any():
        return float("nan"), float("nan")
    # A principal axis has no sign, so the angle is at most a right one.
    cosines = np.abs(np.sum(estimate.principal.axes * expected.principal[1], axis=0))
    angles = np.where(is_clear, np.arccos(np.clip(cosines, 0.0, 1.0)), -1.0)
    worst = int(np.argmax(angles))
    return float(angles[worst]), float(estimate.std.principal_axes[worst])


_UNITS = {
    "position": ("mm", 1e3),
    "mass": ("g", 1e3),
    "orientation": ("°", 180 / np.pi),
}


def _say(checks: Sequence[ToleranceCheck]) -> str:
    parts = []
    for check in checks:
        unit, scale = _UNITS[check.quantity]
        if np.isnan(check.deviation):
            parts.append(f"its {check.quantity} cannot be told")
            continue
        parts.append(
            f"its {check.quantity} is off by {scale * check.deviation:.1f} ± "
            f"{scale * check.std:.1f} {unit}, {check.verdict} "
            f"{scale * check.tolerance:.1f} {unit}".replace(
                "cannot tell ", "which may be more or less than "
            )
        )
    beyond = [check.quantity for check in checks if check.verdict == "beyond"]
    unsure = [x.quantity for x in checks[:2] if x.verdict == "cannot tell"]
    if beyond:
        verdict = f"not held as expected, by its {' and '.join(beyond)}"
    elif unsure:
        verdict = f"perhaps not held as expected: its {' and '.join(unsure)} is unsure"
    else:
        verdict = "held as expected"
    return f"The object is {verdict}: {'; '.join(parts)}."
