"""Why no arm can be like this: bodies and frictions that cannot exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector
from armwise.calibration.structure import Structure
from armwise.calibration.uncertainty import torque_errors

if TYPE_CHECKING:
    from jaxtyping import Float


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


def _doubt(
    found: Projected, sums: Float[np.ndarray, "sums linear"] | None = None
) -> Float[np.ndarray, " sums"]:
    """How far linear unknowns, or sums of them, may be off, generously."""
    R = found.factor[: found.linear, : found.linear]
    root = np.linalg.pinv(R, rcond=1e-12)
    rows = root if sums is None else sums @ root
    spread = np.linalg.norm(rows, axis=1)
    return np.asarray(10.0 * spread * np.sqrt(found.share))


def _loads(structure: Structure, projector: Projector) -> np.ndarray:
    """What each motor usually works against in [N m] or [N]."""
    usual = np.sqrt(np.mean(projector.sensed.tau**2, axis=0))
    return np.abs(structure.drive_weights) @ usual


def _negative_mass(projector: Projector, found: Projected) -> str | None:
    """Name a joint whose mean inertia is surely negative, and matters."""
    structure = projector.structure
    step, point = max(1, len(projector.sensed) // 50), found.point
    q = projector.sensed.q[::step] * point.alpha + point.beta
    columns = np.stack([_inertia_columns(structure, q, j) for j in range(q.shape[1])])
    sums = np.concatenate(
        [columns[:, projector.indices], np.zeros((len(columns), 1))], axis=1
    )
    inertia = sums @ found.values + columns @ structure.known_values
    push = np.sqrt(np.mean((projector.sensed.qdd * point.alpha) ** 2, axis=0))
    # What moves a torque less than it is misunderstood may have any sign.
    matters = np.abs(inertia) * push > 3.0 * torque_errors(projector, found)
    wrong = matters & (inertia + _doubt(found, sums) < 0.0)
    if not wrong.any():
        return None
    return structure.arm.coordinate_names[int(wrong.argmax())]


def _inertia_columns(
    structure: Structure, q: Float[np.ndarray, "samples dof"], j: int
) -> Float[np.ndarray, " parameters"]:
    """What each parameter adds to a joint's own inertia, on average."""
    still = np.zeros_like(q)
    push = still.copy()
    push[:, j] = 1.0
    dynamics = structure.dynamics
    moved, held = (dynamics.regressor(q, still, x)[:, j] for x in (push, still))
    return np.asarray((moved - held).mean(axis=0))
