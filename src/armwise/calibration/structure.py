"""What is known before a calibration: the arm's structure, and a load it carried."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.sensor_flaws import Flaws
from armwise.dynamics import BaseParameters, Dynamics, base_parameters
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


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
