"""Inertial parameters of a rigid body, and whether they are physically realisable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import NotPhysical

if TYPE_CHECKING:
    from jaxtyping import Float

# Not zero: dividing by a denormal mass would overflow the centre.
LEAST_MASS = 1e-30
"""In [kg]: less counts as no mass, and leaves no centre of mass."""


@dataclass(frozen=True, eq=False)
class InertialParameters:
    """Mass, first moments and inertia of a body, linear in the equations of motion.

    Attributes:
        vector: [m, mx, my, mz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] in [kg], [kg m] and
            [kg m²], about the origin of the frame they are expressed in.
    """

    vector: Float[np.ndarray, " 10"]

    def __post_init__(self) -> None:
        vector = np.array(self.vector, dtype=float).reshape(10)
        vector.setflags(write=False)
        object.__setattr__(self, "vector", vector)

    @classmethod
    def zero(cls) -> InertialParameters:
        """No body at all."""
        return cls(np.zeros(10))

    @classmethod
    def from_center_of_mass(
        cls,
        mass: float,
        center_of_mass: Sequence[float] | Float[np.ndarray, " 3"],
        central_inertia: Float[np.ndarray, "3 3"],
    ) -> InertialParameters:
        """Build from mass [kg], centre of mass [m] and inertia about it [kg m²]."""
        c = np.asarray(center_of_mass, dtype=float)
        inertia = np.asarray(central_inertia, dtype=float) + mass * _spread(c)
        return cls(np.concatenate([[mass], mass * c, _to_six(inertia)]))

    @classmethod
    def from_pseudo_inertia(
        cls, pseudo: Float[np.ndarray, "4 4"]
    ) -> InertialParameters:
        """Build from the 4×4 pseudo-inertia [[Σ, h], [hᵀ, m]]."""
        sigma = pseudo[:3, :3]
        inertia = np.trace(sigma) * np.eye(3) - sigma
        return cls(np.concatenate([[pseudo[3, 3]], pseudo[:3, 3], _to_six(inertia)]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InertialParameters) and bool(
            np.array_equal(self.vector, other.vector)
        )

    def __hash__(self) -> int:
        return hash(self.vector.tobytes())

    @property
    def mass(self) -> float:
        """Mass in [kg]."""
        return float(self.vector[0])

    @property
    def has_mass(self) -> bool:
        """Whether there is enough mass to have a centre."""
        return abs(self.mass) >= LEAST_MASS

    @property
    def first_moment(self) -> Float[np.ndarray, " 3"]:
        """Mass times centre of mass in [kg m]."""
        return self.vector[1:4]

    @property
    def inertia(self) -> Float[np.ndarray, "3 3"]:
        """Inertia about the frame origin in [kg m²]."""
        xx, xy, xz, yy, yz, zz = self.vector[4:]
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def center_of_mass(self) -> Float[np.ndarray, " 3"]:
        """Centre of mass in [m]; zero for a body without mass."""
        return self.first_moment / self.mass if self.has_mass else np.zeros(3)

    @property
    def central_inertia(self) -> Float[np.ndarray, "3 3"]:
        """Inertia about the centre of mass in [kg m²]."""
        if not self.has_mass:
            return self.inertia
        return self.inertia - self.mass * _spread(self.center_of_mass)

    @property
    def principal(self) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, "3 3"]]:
        """Principal moments [kg m²], ascending, and their axes as columns."""
        moments, axes = np.linalg.eigh(self.central_inertia)
        # eigh may return a mirror image; a frame must be right-handed.
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        return moments, axes

    @property
    def pseudo_inertia(self) -> Float[np.ndarray, "4 4"]:
        """The matrix [[Σ, h], [hᵀ, m]], positive semidefinite for a real body.

        Σ = ∫ r rᵀ dm; positive mass, inertia and the triangle inequalities are all
        one condition on it (Wensing, Kim and Slotine 2018).
        """
        inertia = self.inertia
        # I = tr(Σ) 1 − Σ, solved for Σ.
        sigma = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        pseudo = np.empty((4, 4))
        pseudo[:3, :3] = sigma
        pseudo[:3, 3] = pseudo[3, :3] = self.first_moment
        pseudo[3, 3] = self.mass
        return pseudo

    def is_physical(self, tolerance: float = 1e-9) -> bool:
        """Whether some distribution of positive mass has these ten numbers."""
        return self.defect(tolerance) is None

    def defect(self, tolerance: float = 1e-9) -> str | None:
        """Say in words why no body can have these numbers, or None if one can."""
        if not np.all(np.isfinite(self.vector)):
            return "a value is not finite"
        if self.mass < 0:
            return f"the mass {self.mass:g} kg is negative"
        if not self.has_mass:
            if np.any(np.abs(self.vector[1:]) > 0):
                return "there is no mass, yet moments of mass"
            return None
        # What rounding leaves of a small body far from the origin is not its fault.
        scale = max(float(np.abs(self.inertia).max()), 1e-12)
        moments = self.principal[0]
        if moments[0] < -tolerance * scale:
            return f"a principal moment is negative ({moments[0]:.4g} kg m²)"
        # Thin plates meet the triangle with equality: files round to six digits.
        if moments[0] + moments[1] < moments[2] * (1 - 1e-6) - tolerance * scale:
            a, b, c = moments
            return (
                f"the principal moments break the triangle: {a:.4g} + {b:.4g} < {c:.4g}"
            )
        return None

    def has_negative(self, tolerance: float = 1e-9) -> bool:
        """Whether the mass or a principal moment is negative beyond rounding."""
        scale = max(float(np.abs(self.inertia).max()), 1e-12)
        return self.mass < 0 or bool(self.principal[0][0] < -tolerance * scale)

    def require_physical(self, name: str) -> None:
        """Raise NotPhysical, naming the body, unless a body can have these numbers."""
        if (defect := self.defect()) is not None:
            raise NotPhysical(f"{name}: {defect}.")

    def transformed(self, T: Float[np.ndarray, "4 4"]) -> InertialParameters:
        """Express the same body in another frame: T maps this frame to that one."""
        return InertialParameters.from_pseudo_inertia(T @ self.pseudo_inertia @ T.T)

    def __add__(self, other: InertialParameters) -> InertialParameters:
        return InertialParameters(self.vector + other.vector)

    def __sub__(self, other: InertialParameters) -> InertialParameters:
        return InertialParameters(self.vector - other.vector)


def inertial_transform(T: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "10 10"]:
    """Return the matrix that `InertialParameters.transformed` applies to the vector."""
    units = (InertialParameters(unit) for unit in np.eye(10))
    return np.stack([unit.transformed(T).vector for unit in units], axis=1)


def _spread(c: np.ndarray) -> np.ndarray:
    """Return the inertia about the origin of a unit point mass at c."""
    spread: np.ndarray = c @ c * np.eye(3) - np.outer(c, c)
    return spread


def _to_six(inertia: np.ndarray) -> np.ndarray:
    return inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
