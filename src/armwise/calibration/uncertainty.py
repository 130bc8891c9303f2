"""How far to trust a calibration: from what each stretch of motion would change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.descent import Prior
from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_STRETCHES = 40
"""Stretches of a recording whose errors are taken as independent of each other."""


def torque_errors(projector: Projector, found: Projected) -> Float[np.ndarray, " dof"]:
    """What is left of each joint's torque in [N m] or [N], root mean square."""
    total = np.zeros(projector.sensed.dof)
    for Y, tau, _ in projector.blocks(found.point):
        left = tau - Y @ found.values
        total += np.sum(left**2, axis=0)
    count = projector.sliding.heard(len(projector.sensed))
    std = np.sqrt(total / np.maximum(count, 1.0)) * projector.torque_std
    usual = np.sqrt(np.mean(projector.sensed.tau**2, axis=0))
    return np.maximum(std, 1e-9 * max(float(usual.max()), 1e-12))


def covariance_of(
    projector: Projector,
    found: Projected,
    is_sought: Bool[np.ndarray, " unknowns"],
    prior: Prior,
) -> Float[np.ndarray, "unknowns unknowns"]:
    """Covariance of the unknowns; NaN for those that were not sought.

    Residuals are correlated in time (filters, model errors), so information is counted
    stretch by stretch: H⁻¹ (Σ g gᵀ) H⁻¹ with g the pull of one stretch.
    """
    J = found.jacobian[:, is_sought]
    believed = np.diag(1.0 / prior.std[is_sought] ** 2)
    H = J.T @ J + believed
    pulls = _pulls(projector, found)[:, is_sought]
    groups = np.array_split(np.arange(len(pulls)), min(_STRETCHES, len(pulls)))
    sums = np.array([pulls[g].sum(axis=0) for g in groups])
    inverse = np.linalg.pinv(H, rcond=1e-14, hermitian=True)
    share = len(sums) / max(len(sums) - 1, 1)
    inner = inverse @ (share * sums.T @ sums + believed) @ inverse
    full = np.full((is_sought.size, is_sought.size), np.nan)
    full[np.ix_(is_sought, is_sought)] = inner
    return full


def _pulls(projector: Projector, found: Projected) -> Float[np.ndarray, "samples x"]:
    """What each sample alone would have the unknowns do: J⊥ᵀ r."""
    count = found.linear
    left, across = found.factor[:count, :count], found.factor[:count, count:-1]
    imitated = np.linalg.lstsq(left, across, rcond=1e-12)[0]
    model = projector.model(found)
    pulls = []
    for Y, tau, rows in projector.blocks(found.point):
        J = projector.slopes(model, found.point, rows) - Y @ imitated
        pulls.append(np.einsum("nix,ni->nx", J, tau - Y @ found.values))
    return np.concatenate(pulls)
