"""Adapted parameters, and projections onto physically realisable ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import DRIVE_NAMES, Arm
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class ParameterSet:
    """Columns of the regressor that are adapted: τ = Y[:, columns] a.

    Attributes:
        arm: The assumed arm, whose regressor it is.
        names: What each adapted parameter is called.
        columns: Which columns of the full regressor.
        matrix: a = K π for the full parameters π.
    """

    arm: Arm
    names: tuple[str, ...]
    columns: Int[np.ndarray, " adapted"]
    matrix: Float[np.ndarray, "adapted parameters"]

    @classmethod
    def standard(cls, arm: Arm) -> ParameterSet:
        """Every parameter of every link and drive, the unidentifiable too."""
        size = arm.parameters.size
        return cls(arm, arm.parameter_names, np.arange(size), np.eye(size))

    @classmethod
    def base(cls, arm: Arm, drives: tuple[str, ...] = DRIVE_NAMES) -> ParameterSet:
        """The base parameters: the combinations that torques determine.

        Args:
            arm: The arm.
            drives: Which of the drives' parameters to adapt; those left out are taken
                to be zero.
        """
        from armwise.dynamics import base_parameters

        base = base_parameters(arm)
        columns = np.asarray(base.indices, dtype=int)
        matrix = np.asarray(base.matrix, dtype=float)
        dropped = arm.layout.drive(*(n for n in DRIVE_NAMES if n not in drives))
        is_adapted = ~np.isin(columns, dropped)
        columns = columns[is_adapted]
        names = tuple(arm.parameter_names[c] for c in columns)
        return cls(arm, names, columns, matrix[is_adapted])

    @property
    def count(self) -> int:
        """Number of adapted parameters."""
        return len(self.names)

    @property
    def is_whole(self) -> bool:
        """Whether the columns are all of the regressor's, in order."""
        return bool(np.array_equal(self.columns, np.arange(self.matrix.shape[1])))

    def values(self, arm: Arm | None = None) -> Float[np.ndarray, " adapted"]:
        """What the adapted parameters are for an arm of the same kind."""
        source = self.arm if arm is None else arm
        if source.parameters.size != self.matrix.shape[1]:
            raise ArgumentError(
                f"{source.name} has {source.parameters.size} parameters, not "
                f"{self.matrix.shape[1]} like {self.arm.name}."
            )
        adapted: np.ndarray = self.matrix @ source.parameters
        return adapted


@dataclass(frozen=True, eq=False)
class DriveProjection:
    """Keeps rotor inertias and friction from turning negative, offsets free."""

    parameters: ParameterSet

    def __call__(self, values: Float[np.ndarray, "... p"]) -> np.ndarray:
        """Return the nearest allowed parameters."""
        bounded: np.ndarray = np.maximum(values, self._lower)
        return bounded

    @property
    def _lower(self) -> np.ndarray:
        bounded = self.parameters.arm.layout.non_negative
        return np.where(np.isin(self.parameters.columns, bounded), 0.0, -np.inf)


@dataclass(frozen=True, eq=False)
class PhysicalProjection:
    """Takes each link to the nearest one a body can be, drives to no less than zero.

    A link is physical when its pseudo-inertia is positive semidefinite; negative
    eigenvalues are cut at `floor`. Only for all standard parameters at once.

    Attributes:
        parameters: From `ParameterSet.standard`.
        floor: Smallest eigenvalue of a pseudo-inertia, in [kg m²] and [kg].
    """

    parameters: ParameterSet
    # Judgement, in [kg m²] and [kg]: above zero, so that M̂ stays invertible.
    floor: float = 1e-6

    def __post_init__(self) -> None:
        if not self.parameters.is_whole:
            raise ArgumentError(
                "Projection to physical links needs all standard parameters; use "
                "ParameterSet.standard(arm), or DriveProjection with base parameters."
            )

    def __call__(self, values: Float[np.ndarray, "... p"]) -> np.ndarray:
        """Return the nearest allowed parameters."""
        layout = self.parameters.arm.layout
        ten = layout.by_link(values)
        # Clipping eigenvalues is the nearest positive semidefinite matrix in the
        # Frobenius norm.
        weights, vectors = np.linalg.eigh(_pseudo_inertia(ten))
        bounded = layout.non_negative
        out = values.copy()
        out[..., bounded] = np.maximum(values[..., bounded], 0.0)
        # Otherwise nothing is clipped, and the links stay as they are.
        if weights.min() < self.floor:
            cut = np.maximum(weights, self.floor)
            pseudo = (vectors * cut[..., None, :]) @ np.swapaxes(vectors, -1, -2)
            fixed = _ten(pseudo)
            # Links that need no projection stay bit for bit as they are.
            fine = (weights[..., 0] >= self.floor)[..., None]
            ten = np.where(fine, ten, fixed)
            out[..., layout.links] = ten.reshape(*values.shape[:-1], -1)
        return out


def _pseudo_inertia(ten: np.ndarray) -> np.ndarray:
    """4×4 pseudo-inertias of many links at once."""
    m, mx, my, mz, xx, xy, xz, yy, yz, zz = np.moveaxis(ten, -1, 0)
    half = 0.5 * (xx + yy + zz)
    rows = [
        [half - xx, -xy, -xz, mx],
        [-xy, half - yy, -yz, my],
        [-xz, -yz, half - zz, mz],
        [mx, my, mz, m],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _ten(pseudo: np.ndarray) -> np.ndarray:
    """Back from pseudo-inertias to the ten parameters."""
    sigma = pseudo[..., :3, :3]
    trace = np.trace(sigma, axis1=-2, axis2=-1)
    s = [[sigma[..., i, j] for j in range(3)] for i in range(3)]
    moments = [pseudo[..., 3, 3], *(pseudo[..., i, 3] for i in range(3))]
    inertia = [
        trace - s[0][0],
        -s[0][1],
        -s[0][2],
        trace - s[1][1],
        -s[1][2],
        trace - s[2][2],
    ]
    return np.stack([*moments, *inertia], axis=-1)
