"""Known defects: what each would do to a robot's estimate.

Every hypothesis is a direction, or a few, in which β moves: mass that is lost or gained
at a point of a link, friction that has grown in one joint, an encoder that has slipped.
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
"""Farthest position of a lost mass from a link's centre, in radii of gyration: a
slender body ends at √3 of them, and its flange stands out further."""

_LEAST_REACH = 0.05
"""The same in [m], for links that are described as points."""

_STARTS = 12
"""Points from which the search for a lost mass begins: mass and position make a valley
with a few bends, and a dozen low-discrepancy starts find its bottom."""

_INVISIBLE = 1e-6
"""A hypothesis that moves no estimate by this many standard deviations of it, for a
change of one, cannot be tested."""


@dataclass(frozen=True)
class Defect:
    """Something that a robot may have.

    Attributes:
        kind: What happened.
        component: The link or joint.
        size: Of a mass in [kg]; of friction as a factor on the fleet's mean; of a slip
            in [rad].
        position: Where on its link a mass is missing or new, in [m]; else empty.
        explained: Fraction of the robot's difference that this explains, 0 … 1.
        probability: Chance that this is the right name, among those known here.
    """

    kind: Kind
    component: str
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
        return f"{self.kind} at {self.component} ({how})"


class HypothesisFit(NamedTuple):
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
    def component(self) -> str:
        """The link or joint."""
        ...

    @property
    def freedom(self) -> int:
        """How many numbers it can choose."""
        ...

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> HypothesisFit:
        """Explain a whitened difference as well as it can."""
        ...


@dataclass(frozen=True, eq=False)
class ParameterShift:
    """β moves along given directions: forwards only if `is_growth`, else both ways."""

    kind: Kind
    component: str
    directions: Float[np.ndarray, "base freedom"]
    is_growth: bool = False

    @property
    def freedom(self) -> int:
        """One number per direction."""
        return int(self.directions.shape[1])

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> HypothesisFit:
        """Least squares, or non-negative least squares."""
        from scipy.optimize import nnls

        whitened = whitener @ self.directions
        if np.linalg.norm(whitened) < _INVISIBLE:
            return HypothesisFit(0.0, np.zeros(self.freedom))
        if self.is_growth:
            values = nnls(whitened, target)[0]
        else:
            values = np.linalg.lstsq(whitened, target, rcond=1e-9)[0]
        residual = target - whitened @ values
        gain = float(target @ target - residual @ residual)
        return HypothesisFit(gain, values)


@dataclass(frozen=True, eq=False)
class PointMass:
    """A small mass is missing (positive) or new (negative) somewhere on a link.

    Attributes:
        component: The link.
        directions: How β moves with its ten inertial parameters.
        center, reach: Middle and half size of the box it may have sat in, in [m].
        most: Largest mass in [kg].
    """

    component: str
    directions: Float[np.ndarray, "base 10"]
    center: Float[np.ndarray, " 3"]
    reach: Float[np.ndarray, " 3"]
    most: float
    kind: Kind = "lost bolt"

    @property
    def freedom(self) -> int:
        """Mass and position."""
        return 4

    def fit(self, target: np.ndarray, whitener: np.ndarray) -> HypothesisFit:
        """Search mass and position from several starts."""
        from scipy.optimize import least_squares
        from scipy.stats import qmc

        # Only ten directions matter: rotated into them, ten numbers hold all the data.
        Q, R = np.linalg.qr(whitener @ self.directions)
        rotated = Q.T @ target
        low = np.array([-self.most, *(self.center - self.reach)])
        high = np.array([self.most, *(self.center + self.reach)])

        def residual(values: np.ndarray) -> np.ndarray:
            return rotated + R @ point_mass(values[0], values[1:])

        # Halton points without scrambling: the same fleet gives the same names.
        starts = qmc.scale(qmc.Halton(4, scramble=False).random(_STARTS), low, high)
        size = np.array([0.1 * self.most, *self.reach])
        solutions = [
            least_squares(residual, start, bounds=(low, high), x_scale=size)
            for start in starts
        ]
        best = min(solutions, key=lambda one: float(one.cost))
        return HypothesisFit(float(rotated @ rotated - 2.0 * best.cost), best.x)


def point_mass(mass: float, position: np.ndarray) -> Float[np.ndarray, " 10"]:
    """Inertial parameters of a mass in [kg] at a position in [m]."""
    point = np.append(position, 1.0)
    return InertialParameters.from_pseudo_inertia(mass * np.outer(point, point)).vector


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
    hypotheses: list[Hypothesis] = []
    for i, link in enumerate(arm.links):
        hypotheses.append(_lost_bolt(link, K[:, arm.layout.link(i)]))
    at = {name: k for k, name in enumerate(base.names)}
    for joint in arm.joints:
        names = [f"{joint.name}.{term}" for term in ("viscous", "coulomb")]
        drag = K[:, [at[name] for name in names if name in at]]
        if np.any(drag):
            hypotheses.append(
                ParameterShift("dragging bearing", joint.name, drag, is_growth=True)
            )
    for i, direction in zip(arm.coordinates, slips.T, strict=True):
        if arm.joints[i].is_revolute:
            name = arm.joints[i].name
            hypotheses.append(
                ParameterShift("slipped encoder", name, direction[:, None])
            )
    return hypotheses


def _lost_bolt(link: Link, directions: np.ndarray) -> PointMass:
    body = link.inertia
    center = body.center_of_mass
    mass = max(body.mass, 1e-3)
    gyration = np.diag(body.pseudo_inertia)[:3] / mass - center**2
    reach = np.maximum(_REACH * np.sqrt(np.maximum(gyration, 0.0)), _LEAST_REACH)
    return PointMass(link.name, directions, center, reach, mass)
