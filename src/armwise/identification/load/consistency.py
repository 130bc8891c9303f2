"""The nearest load that can exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters
from armwise.errors import NotConverged
from armwise.identification.load.uncertainty import SCALE

if TYPE_CHECKING:
    from jaxtyping import Float

LEAST = 1e-6
"""Smallest eigenvalue of the scaled pseudo-inertia, as a fraction of its trace."""


def nearest_physical(
    values: Float[np.ndarray, " 10"], information: Float[np.ndarray, "10 10"]
) -> InertialParameters:
    """Return the physical body that fits the data best.

    Minimises (φ − φ̂)ᵀ Λ (φ − φ̂) with the pseudo-inertia of φ positive definite: a
    small semidefinite program (Wensing, Kim and Slotine 2018), solved by Clarabel.

    Args:
        values: The unconstrained estimate φ̂.
        information: Λ, its inverse covariance.
    """
    weights = information * np.outer(SCALE, SCALE)
    weights = weights / float(np.max(np.diag(weights)))
    cone, shift = _cone(values / SCALE)
    found = _solve(weights, -weights @ (values / SCALE), cone, shift)
    return InertialParameters(found * SCALE)


def _cone(start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the scaled pseudo-inertia's upper triangle, and its least eigenvalue."""
    units = [InertialParameters(unit).pseudo_inertia for unit in np.eye(10) * SCALE]
    lengths = np.array([0.1, 0.1, 0.1, 1.0])
    pseudo = np.stack(units) / np.outer(lengths, lengths)
    rows, columns = np.triu_indices(4)
    order = np.lexsort((rows, columns))
    rows, columns = rows[order], columns[order]
    gain = np.where(rows == columns, 1.0, np.sqrt(2.0))
    trace = float(np.trace(np.tensordot(start, pseudo, axes=1)))
    shift = LEAST * max(trace, 1e-6) * np.eye(4)[rows, columns]
    return pseudo[:, rows, columns] * gain, shift


def _solve(
    weights: np.ndarray, slope: np.ndarray, cone: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    import clarabel
    from scipy.sparse import csc_matrix

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        csc_matrix(np.triu(weights)),
        slope,
        csc_matrix(-cone.T),
        -shift,
        [clarabel.PSDTriangleConeT(4)],
        settings,
    )
    answer = solver.solve()
    if "Solved" not in str(answer.status):
        raise NotConverged(
            f"No physical load was found near the estimate ({answer.status}). Look at "
            "the data, or identify without consistent=True."
        )
    return np.array(answer.x)
