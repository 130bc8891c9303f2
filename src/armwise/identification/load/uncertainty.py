"""How uncertain mass, centre, inertia and principal axes are, given the ten numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.arms import InertialParameters

if TYPE_CHECKING:
    from jaxtyping import Float

SCALE = np.array([1.0, 0.1, 0.1, 0.1, *[0.01] * 6])
"""Typical sizes of the ten numbers of a load, for steps and conditioning."""

WELL_DETERMINED = np.deg2rad(15.0)
"""A principal axis whose direction is surer than this is worth naming."""


class Principal(NamedTuple):
    """Principal moments [kg m²], ascending, and their axes as columns."""

    moments: Float[np.ndarray, " 3"]
    axes: Float[np.ndarray, "3 3"]


@dataclass(frozen=True, eq=False)
class LoadStd:
    """Standard deviations of everything an estimate tells of a load.

    Attributes:
        parameters: Of the ten numbers in [kg], [kg m], [kg m²].
        mass: In [kg].
        center_of_mass: In [m].
        central_inertia: Entry by entry in [kg m²].
        principal_moments: In [kg m²].
        principal_axes: Angle in [rad] by which each axis may be off; infinite where
            two moments cannot be told apart.
    """

    parameters: Float[np.ndarray, " 10"]
    mass: float
    center_of_mass: Float[np.ndarray, " 3"]
    central_inertia: Float[np.ndarray, "3 3"]
    principal_moments: Float[np.ndarray, " 3"]
    principal_axes: Float[np.ndarray, " 3"]


def standard_deviations(
    parameters: InertialParameters, covariance: Float[np.ndarray, "10 10"]
) -> LoadStd:
    """Carry the covariance of the ten numbers to what is made of them."""
    own = np.sqrt(np.diag(covariance))
    center = _spread(parameters, covariance, lambda p: p.center_of_mass)
    inertia = _spread(parameters, covariance, lambda p: p.central_inertia.ravel())
    moments, axes = principal_std(parameters, covariance)
    return LoadStd(own, float(own[0]), center, inertia.reshape(3, 3), moments, axes)


def principal_of(parameters: InertialParameters) -> Principal:
    """Principal moments and axes; NaN when the inertia is not known."""
    if not np.all(np.isfinite(parameters.vector)):
        return Principal(np.full(3, np.nan), np.full((3, 3), np.nan))
    return Principal(*parameters.principal)


def principal_std(
    parameters: InertialParameters, covariance: Float[np.ndarray, "10 10"]
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"]]:
    """Standard deviations of the principal moments, and of their axes' directions.

    To first order a moment changes by eᵢᵀ δI eᵢ, and axis i turns towards axis j by
    eᵢᵀ δI eⱼ / (Iᵢ − Iⱼ): equal moments leave the axes undetermined (`aah1986` §4.1).
    """
    moments, axes = principal_of(parameters)
    if not np.all(np.isfinite(moments)):
        return np.full(3, np.nan), np.full(3, np.nan)

    def turned(p: InertialParameters) -> np.ndarray:
        inner: np.ndarray = axes.T @ p.central_inertia @ axes
        return inner.ravel()

    spread = _spread(parameters, covariance, turned).reshape(3, 3)
    gaps = np.abs(moments[:, None] - moments[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.where(np.eye(3, dtype=bool), 0.0, spread / gaps)
        # Noise pushes equal eigenvalues apart: 4 σ of the gap are not much.
        blurred = (gaps < 4.0 * np.hypot.outer(np.diag(spread), np.diag(spread))) & (
            ~np.eye(3, dtype=bool)
        )
    turns = np.where(blurred, np.inf, turns)
    return np.diag(spread), np.sqrt(np.sum(turns**2, axis=1))


def axes_statement(moments_std: np.ndarray, axes_std: np.ndarray) -> str:
    """Say in words how well the principal axes are known."""
    if not np.all(np.isfinite(moments_std)):
        return "The inertia was not determined, so there are no principal axes."
    sure = axes_std < WELL_DETERMINED
    if sure.all():
        return f"The principal axes are known to {np.rad2deg(axes_std.max()):.1f}°."
    if not sure.any():
        return (
            "The principal axes are ill-determined: the principal moments are equal "
            "within their uncertainty."
        )
    known = int(np.argmax(sure))
    return (
        f"Only the axis of principal moment {known + 1} is known, to "
        f"{np.rad2deg(axes_std[known]):.1f}°; the other two are ill-determined, their "
        "moments are equal within their uncertainty."
    )


def _spread(
    parameters: InertialParameters,
    covariance: np.ndarray,
    function: Callable[[InertialParameters], np.ndarray],
) -> np.ndarray:
    """Standard deviations of a function of the ten numbers, to first order.

    Numbers that were not determined make what depends on them NaN, nothing else.
    """
    known = np.isfinite(np.diag(covariance))
    vector = np.where(known, parameters.vector, 0.0)
    rate = []
    for k in range(10):
        step = np.zeros(10)
        step[k] = 1e-5 * SCALE[k]
        ahead = function(InertialParameters(vector + step))
        behind = function(InertialParameters(vector - step))
        rate.append((ahead - behind) / (2.0 * step[k]))
    J = np.array(rate).T
    inner = np.where(np.outer(known, known), covariance, 0.0)
    variance = np.einsum("ij,jk,ik->i", J, inner, J)
    blind = np.any(np.abs(J[:, ~known]) > 1e-12, axis=1)
    return np.where(blind, np.nan, np.sqrt(np.maximum(variance, 0.0)))
