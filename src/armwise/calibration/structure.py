"""What is known before a calibration: structure, load, and flaws that are allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import BaseParameters, Dynamics, base_parameters
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

# Small flaws of sensors and motors: torque gains and nonlinearity.


@dataclass(frozen=True)
class Flaws:
    """How far the hardware may be from what its data sheet says; zero: not at all.

    Two motors whose torque constants differ by half a percent measure different weights
    of one link, and a bent sensor bends gravity's cosine: both would bias the offsets.
    With a size here they are estimated along with the calibration.

    Attributes:
        torque_gain: Standard deviation of each motor's torque constant, relative.
        bend: Standard deviation of each sensor's deviation from its best line at the
            ends of the range it visits, relative to half that range; estimated in two
            parts, a bow and an S.
        slow_friction: Standard deviation of what dry friction rises by towards rest
            (Stribeck's curve), at half of a joint's usual speed, relative.
    """

    torque_gain: float = 0.0
    bend: float = 0.0
    slow_friction: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.torque_gain, self.bend, self.slow_friction)
        if not all(0.0 <= size < 1.0 for size in sizes):
            raise ArgumentError(
                "Flaws are fractions of one: at least 0 and less than 1."
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those that are estimated."""
        return tuple(kind for kind, size in self._sizes.items() if size > 0.0)

    @property
    def _sizes(self) -> dict[str, float]:
        return {
            "torque_gain": self.torque_gain,
            "slow_friction": self.slow_friction,
            "bow": self.bend,
            "s": self.bend,
        }

    def names(self, joints: tuple[str, ...]) -> tuple[str, ...]:
        """Names such as `joint_1.bow`, in the order of a point's flaws."""
        return tuple(f"{joint}.{kind}" for kind in self.kinds for joint in joints)

    def std(self, dof: int) -> Float[np.ndarray, " flaws"]:
        """Prior standard deviation of each."""
        return np.repeat([self._sizes[kind] for kind in self.kinds], dof)

    def part(
        self, kind: str, values: Float[np.ndarray, " flaws"], dof: int
    ) -> Float[np.ndarray, " dof"] | None:
        """One kind's values, joint by joint; None where there are none."""
        if kind not in self.kinds or not values.size:
            return None
        first = self.kinds.index(kind) * dof
        return values[first : first + dof]


@dataclass(frozen=True, eq=False)
class Straightener:
    """Takes bow and S out of readings: s̃ = s + h (b₂ P₂(z) + b₃ P₃(z)), z = (s − m)/h.

    Legendre's P₂ and P₃ are orthogonal to every straight line over the range, so that
    gain and offset stay those of the best line.

    Attributes:
        middle: m of each sensor's range.
        half: h, half its range.
    """

    middle: Float[np.ndarray, " dof"]
    half: Float[np.ndarray, " dof"]

    @classmethod
    def over(cls, readings: Float[np.ndarray, "samples dof"]) -> Straightener:
        """For the range these readings visit."""
        low, high = readings.min(axis=0), readings.max(axis=0)
        return cls(0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-12))

    def __call__(
        self,
        s: Float[np.ndarray, "samples dof"],
        sd: Float[np.ndarray, "samples dof"],
        sdd: Float[np.ndarray, "samples dof"],
        bow: Float[np.ndarray, " dof"],
        bend: Float[np.ndarray, " dof"],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Straight readings and their derivatives, for b₂ and b₃ of every joint."""
        z = (s - self.middle) / self.half
        slope = 1.0 + bow * 3.0 * z + bend * (7.5 * z**2 - 1.5)
        curvature = (bow * 3.0 + bend * 15.0 * z) / self.half
        deviation = bow * (1.5 * z**2 - 0.5) + bend * (2.5 * z**3 - 1.5 * z)
        straight = s + self.half * deviation
        return straight, slope * sd, slope * sdd + curvature * sd**2


@dataclass(frozen=True, eq=False)
class Structure:
    """An arm whose geometry is known, and what else is.

    A joint's offset turns its link about the joint's axis, and so does a turned centre
    of mass: the offset of a last joint is identifiable only if something of its link is
    known, such as that its centre of mass lies on its x axis (`known=("*.my",)`, which
    `astley1996` assumes).

    Attributes:
        arm: Geometry, gravity, and the values of what is known.
        known: Names of parameters, or patterns such as `*.my`, that are as the arm
            has them; all others are estimated along with the calibration.
        positive: Names or patterns of parameters that cannot be negative; friction
            and the mass matrix never can.
        gains_known: Whether only offsets are sought (encoders of known resolution).
        flaws: What sensors and motors may be off by; estimated along with it.
    """

    arm: Arm
    known: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    gains_known: bool = False
    flaws: Flaws = field(default_factory=Flaws)

    def __post_init__(self) -> None:
        for pattern in (*self.known, *self.positive):
            if not _matching(self.arm.parameter_names, (pattern,)).any():
                raise ArgumentError(
                    f"{self.arm.name} has no parameter {pattern!r}. "
                    f"Names look like {self.arm.parameter_names[1]!r}."
                )

    @cached_property
    def is_free(self) -> np.ndarray:
        """Which parameters are estimated along with the calibration."""
        return ~_matching(self.arm.parameter_names, self.known)

    @cached_property
    def is_positive(self) -> np.ndarray:
        """Which parameters cannot be negative."""
        return _matching(self.arm.parameter_names, self.positive)

    @cached_property
    def dynamics(self) -> Dynamics:
        """The arm's equations of motion."""
        return Dynamics(self.arm)

    @cached_property
    def base(self) -> BaseParameters:
        """Identifiable combinations of the free parameters."""
        return base_parameters(self.arm, is_free=self.is_free)

    @cached_property
    def known_values(self) -> Float[np.ndarray, " parameters"]:
        """The arm's parameters where they are known, zero elsewhere."""
        return np.where(self.is_free, 0.0, self.arm.parameters)

    @cached_property
    def drive_weights(self) -> Float[np.ndarray, "drives dof"]:
        """How far each coordinate turns each motor."""
        return np.asarray(self.dynamics.mechanism.drive_rows, dtype=float)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the sensors' unknowns: gains, unless known, then offsets."""
        names = self.arm.coordinate_names
        gains = () if self.gains_known else tuple(f"{n}.gain" for n in names)
        return (*gains, *(f"{n}.offset" for n in names))

    @property
    def flaw_names(self) -> tuple[str, ...]:
        """Names of the flaws that are estimated along with them."""
        return self.flaws.names(self.arm.coordinate_names)

    def parameters(
        self, values: Float[np.ndarray, " base"]
    ) -> Float[np.ndarray, " parameters"]:
        """Return parameters with these combinations; others vanish or are known."""
        full = self.known_values.copy()
        full[list(self.base.indices)] = values
        return full


def as_structure(arm: Structure | Arm) -> Structure:
    """Take an arm of which nothing but its geometry is known, or a structure."""
    return arm if isinstance(arm, Structure) else Structure(arm)


def _matching(names: tuple[str, ...], patterns: tuple[str, ...]) -> np.ndarray:
    return np.array([any(fnmatchcase(n, p) for p in patterns) for n in names])
