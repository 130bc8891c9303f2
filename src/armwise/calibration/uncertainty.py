"""How far to trust a calibration: from what each stretch of motion would change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
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

    Residuals are correlated in time (filters, model errors), so each stretch of the
    recording is left out once: H⁻¹ (Σ g̃ g̃ᵀ) H⁻¹ with g̃ = (I − H_g H⁻¹)⁻¹ g, the pull
    of a stretch on linear and other unknowns alike, and H_g its information.
    """
    kept = np.concatenate([np.ones(found.linear, dtype=bool), is_sought])
    R = found.factor[:, :-1][:, kept]
    size = np.linalg.norm(R, axis=0)
    size[size == 0.0] = 1.0
    believed = np.concatenate([np.zeros(found.linear), prior.std[is_sought] ** -2.0])
    believed = np.diag(believed / size**2)
    H = (R / size).T @ (R / size) + believed
    inverse = np.linalg.pinv(H, rcond=1e-13, hermitian=True)
    total = believed.copy()
    for pull, information in _stretches(projector, found, kept, size):
        left = np.eye(size.size) - information @ inverse
        pushed = np.linalg.lstsq(left, pull, rcond=1e-6)[0]
        total += np.outer(pushed, pushed)
    inner = inverse @ total @ inverse / np.outer(size, size)
    full = np.full((is_sought.size, is_sought.size), np.nan)
    full[np.ix_(is_sought, is_sought)] = inner[found.linear :, found.linear :]
    return full


def _stretches(
    projector: Projector, found: Projected, kept: np.ndarray, size: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield each stretch's pull Aᵀr and information AᵀA, columns scaled."""
    model, samples = projector.model(found), len(projector.sensed)
    edges = np.linspace(0, samples, min(_STRETCHES, samples) + 1).astype(int)
    parts = [slice(int(a), int(b)) for a, b in pairwise(edges)]
    for Y, tau, rows in projector.blocks(found.point, parts):
        J = projector.slopes(model, found.point, rows)
        columns = np.concatenate([Y, J], axis=2)[:, :, kept] / size
        A = columns.reshape(-1, size.size)
        r = (tau - Y @ found.values).reshape(-1)
        yield A.T @ r, A.T @ A
