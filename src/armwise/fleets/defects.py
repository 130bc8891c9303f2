"""Defects with names: what each would do to a robot's estimate, and which fits best.

Every hypothesis is a direction, or a few, in which β moves: mass that is lost or gained
at a place of a link, friction that has grown in one joint, an encoder that has slipped.
The last is found by asking what the slip would have done to this very estimate, so that
all are judged alike: how much of the difference is explained, in units of its scatter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from armwise.arms import InertialParameters

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm, Link
    from armwise.dynamics import BaseParameters

Kind = Literal["lost bolt", "added mass", "dragging bearing", "slipped encoder"]

_REACH = 3.0
"""Farthest place of a lost mass from a link's centre, in radii of gyration."""

_LEAST_REACH = 0.05
"""The same in [m], for links that are described as points."""

_STARTS = 12
"""Places from which the search for a lost mass begins."""

_SILENT = 1e-6
"""A hypothesis that moves nothing by this many standard deviations cannot be seen."""


@dataclass(frozen=True)
class Defect:
    """Something that a robot may have.

    Attributes:
        kind: What happened.
        place: The link or joint.
        size: Of a mass in [kg]; of friction as a factor on the fleet's mean; of a slip
            in [rad].
        position: Where on its link a mass is missing or new, in [m]; else empty.
        explained: Share of the robot's difference that this explains, 0 … 1.
        probability: Chance that this is the right name, among those known here.
    """

    kind: Kind
    place: str
    size: float
    position: tuple[float, ...]
    explained: float
    probability: float

    def __str__(self) -> str:
        match self.kind:
            case "dragging bearing":
                how = f"friction {self.size:.2g} times the fleet's"
            case "slipped encoder":
                how = f"by {np.rad2deg(self.size):+.2f}°"
            case _:
                where = ", ".join(f"{1000 * x:.0f}" for x in self.position)
                how = f"{1000 * self.size:.0f} g near ({where}) mm"
        return f"{self.kind} at {self.place} ({how})"


class Finding(NamedTuple):
    """How well a hypothesis fits: its gain in χ², and its numbers."""

    gain: float
    values: np.ndarray


class Hypothesis(Protocol):
    """A way for a robot to differ."""

    @property
    def kind(self) -> Kind:
        """What happened."""
        ...

    @property
    def place(self) -> str:
        """The link or joint."""
        ...

    @property
    def freedom(self) -> int:
        """How many numbers it can choose."""
        ...

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> Finding:
        """Explain a whitened difference as well as it can."""
        ...


@dataclass(frozen=True, eq=False)
class Shift:
    """β moves along given directions: forwards only if `is_growth`, else both ways."""

    kind: Kind
    place: str
    directions: Float[np.ndarray, "base freedom"]
    is_growth: bool = False

    @property
    def freedom(self) -> int:
        """One number per direction."""
        return int(self.directions.shape[1])

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> Finding:
        """Least squares, or non-negative least squares."""
        from scipy.optimize import nnls

        seen = whitener @ self.directions
        if np.linalg.norm(seen) < _SILENT:
            return Finding(0.0, np.zeros(self.freedom))
        if self.is_growth:
            values = nnls(seen, target)[0]
        else:
            values = np.linalg.lstsq(seen, target, rcond=1e-9)[0]
        left = target - seen @ values
        return Finding(float(target @ target - left @ left), values)


@dataclass(frozen=True, eq=False)
class PointMass:
    """A small mass is missing (positive) or new (negative) somewhere on a link.

    Attributes:
        place: The link.
        directions: How β moves with its ten inertial parameters.
        center, reach: Middle and half size of the box it may have sat in, in [m].
        most: Largest mass in [kg].
    """

    place: str
    directions: Float[np.ndarray, "base 10"]
    center: Float[np.ndarray, " 3"]
    reach: Float[np.ndarray, " 3"]
    most: float
    kind: Kind = "lost bolt"

    @property
    def freedom(self) -> int:
        """Mass and place."""
        return 4

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> Finding:
        """Search mass and place from several starts; ten numbers hold all the data."""
        from scipy.optimize import least_squares
        from scipy.stats import qmc

        Q, R = np.linalg.qr(whitener @ self.directions)
        seen = Q.T @ target
        low = np.array([-self.most, *(self.center - self.reach)])
        high = np.array([self.most, *(self.center + self.reach)])

        def left(values: np.ndarray) -> np.ndarray:
            return seen + R @ point_mass(values[0], values[1:])

        starts = qmc.scale(qmc.Halton(4, scramble=False).random(_STARTS), low, high)
        size = np.array([0.1 * self.most, *self.reach])
        found = [
            least_squares(left, start, bounds=(low, high), x_scale=size)
            for start in starts
        ]
        best = min(found, key=lambda one: float(one.cost))
        return Finding(float(seen @ seen - 2.0 * best.cost), best.x)


def point_mass(mass: float, place: np.ndarray) -> Float[np.ndarray, " 10"]:
    """Inertial parameters of a mass in [kg] at a place in [m]."""
    spot = np.append(place, 1.0)
    return InertialParameters.from_pseudo_inertia(mass * np.outer(spot, spot)).vector


def known_defects(
    arm: Arm,
    base: BaseParameters,
    slips: Float[np.ndarray, "base joints"],
) -> list[Hypothesis]:
    """List everything that has a name.

    Args:
        arm: The arm with the fleet's mean parameters.
        base: Which combinations β are.
        slips: What a slip of each encoder, in [rad], would have done to β.
    """
    K = base.matrix
    found: list[Hypothesis] = []
    for i, link in enumerate(arm.links):
        found.append(_lost_bolt(link, K[:, arm.layout.link(i)]))
    at = {name: k for k, name in enumerate(base.names)}
    for joint in arm.joints:
        names = [f"{joint.name}.{term}" for term in ("viscous", "coulomb")]
        drag = K[:, [at[name] for name in names if name in at]]
        if np.any(drag):
            found.append(Shift("dragging bearing", joint.name, drag, is_growth=True))
    for i, direction in zip(arm.coordinates, slips.T, strict=True):
        if arm.joints[i].is_revolute:
            name = arm.joints[i].name
            found.append(Shift("slipped encoder", name, direction[:, None]))
    return found


def _lost_bolt(link: Link, directions: np.ndarray) -> PointMass:
    body = link.inertia
    center = body.center_of_mass
    mass = max(body.mass, 1e-3)
    gyration = np.diag(body.pseudo_inertia)[:3] / mass - center**2
    reach = np.maximum(_REACH * np.sqrt(np.maximum(gyration, 0.0)), _LEAST_REACH)
    return PointMass(link.name, directions, center, reach, mass)
