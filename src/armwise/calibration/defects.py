"""Why no arm can be like this: bodies and frictions that cannot exist."""

from __future__ import annotations

import numpy as np

from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector
from armwise.calibration.structure import Structure


def defect_of(projector: Projector, found: Projected) -> str | None:
    """Say why no arm has these parameters, if none has."""
    structure = projector.structure
    negative = _negative_mass(projector, found)
    if negative is not None:
        return f"{negative} would have a negative inertia"
    names = structure.arm.parameter_names
    surely = (found.values + _doubt(found))[:-1]
    links, loads = 10 * len(structure.arm.links), _loads(structure, projector)
    for k, value in zip(structure.base.indices, surely, strict=True):
        drive, kind = divmod(k - links, 4)
        if drive >= 0 and kind == 2 and value < -0.05 * loads[drive]:
            return f"{names[k]} would be negative"
    sums = structure.base.matrix * structure.is_positive
    for row, value in zip(sums, surely, strict=True):
        if np.any(row > 0.0) and not np.any(row < 0.0) and value < 0.0:
            return f"{names[int(np.argmax(row))]} would be negative"
    return None


def _doubt(found: Projected) -> np.ndarray:
    """How far a base parameter may be off, generously."""
    R = found.factor[: found.linear, : found.linear]
    spread = np.sqrt(np.sum(np.linalg.pinv(R, rcond=1e-12) ** 2, axis=1))
    return 10.0 * spread * np.sqrt(found.cost / max(found.rows, 1))


def _loads(structure: Structure, projector: Projector) -> np.ndarray:
    """What each motor usually works against in [N m] or [N]."""
    usual = np.sqrt(np.mean(projector.sensed.tau**2, axis=0))
    return np.abs(structure.drive_weights) @ usual


def _negative_mass(projector: Projector, found: Projected) -> str | None:
    point, model = found.point, projector.model(found)
    step = max(1, len(projector.sensed) // 50)
    q = projector.sensed.q[::step] * point.alpha + point.beta
    masses = np.diagonal(model.mass_matrix(q), axis1=1, axis2=2).mean(axis=0)
    if masses.min() >= 0.0:
        return None
    return projector.structure.arm.coordinate_names[int(masses.argmin())]
