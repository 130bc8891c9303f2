"""Find gains and offsets: descend from many places, keep what an arm can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.refine import descend, torque_errors
from armwise.calibration.search_region import Domain, Point
from armwise.calibration.structure import Structure
from armwise.calibration.variable_projection import Projected, Projector

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


# Why no arm can be like this: bodies and frictions that cannot exist.


def defect_of(projector: Projector, found: Projected) -> str | None:
    """Say why no arm has these parameters, if none has."""
    structure = projector.structure
    negative = _negative_mass(projector, found)
    if negative is not None:
        return f"{negative} would have a negative inertia"
    names = structure.arm.parameter_names
    surely = (found.values + _doubt(found))[:-1]
    coulomb = structure.arm.layout.drive("coulomb").tolist()
    loads = dict(zip(coulomb, _loads(structure, projector), strict=True))
    for k, value in zip(structure.base.indices, surely, strict=True):
        if k in loads and value < -0.05 * loads[k]:
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


# Find gains and offsets: descend from many places, keep what an arm can be.

_DESCENTS = 60
"""Most starting points that are followed down."""

_HITS = 3
"""Times a minimum must be reached to be believed."""

_ALIKE = 10.0
"""Factor in cost up to which a mirror image is worth a descent."""

_SAME = 2e-3
"""Minima closer than this, in [rad] and relative gain, are the same."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a descent ended.

    Attributes:
        projected: The problem there.
        defect: Why no arm can be like this; None if one can.
        hits: From how many starting points it was reached.
        is_mirrored: Whether its mirror images were looked at.
    """

    projected: Projected
    defect: str | None
    hits: int = 1
    is_mirrored: bool = False


def search(
    projector: Projector,
    domain: Domain,
    places: Sequence[Point],
    is_sought: Bool[np.ndarray, " unknowns"],
    good: float,
    progress: Callable[[str, float], None] | None = None,
) -> list[Minimum]:
    """Descend from one place after another; return the minima, lowest first.

    Places that come nearest to explaining the torques go first. It ends when the lowest
    minimum that an arm can have explains them well and was reached several times, or
    after many descents.

    Args:
        projector: Makes problems of a few samples.
        domain: Where a minimum may be.
        places: Where to begin.
        is_sought: Which unknowns to move.
        good: Cost per torque below which an explanation is a good one.
        progress: Called with what is being done and how much of it is done.
    """
    found: list[Minimum] = []
    nearest = sorted(places, key=projector.cost)[:_DESCENTS]
    for i, start in enumerate(nearest):
        if progress is not None:
            progress("searching", i / len(nearest))
        new = descend(projector, start, is_sought, None, 1e-6, domain)
        _add(found, projector, domain, new)
        best = found[0]
        if best.hits < _HITS or best.projected.share > good:
            continue
        if best.defect is not None and not best.is_mirrored:
            found[0] = replace(best, is_mirrored=True)
            for image in _likely_images(projector, domain, best.projected):
                new = descend(projector, image, is_sought, None, 1e-6, domain)
                _add(found, projector, domain, new)
        if any(m.defect is None and m.projected.share < good for m in found):
            break
    return found


def _likely_images(
    projector: Projector, domain: Domain, found: Projected
) -> list[Point]:
    """Images of a minimum that explain the torques nearly as well."""
    images = [(projector.cost(p), p) for p in domain.images(found.point)]
    likely = [x for x in images if x[0] < _ALIKE * found.cost + found.rows]
    return [p for _, p in sorted(likely, key=lambda x: x[0])]


def lowest(found: list[Minimum]) -> Minimum | None:
    """The lowest minimum that an arm can have."""
    possible = (m for m in found if m.defect is None)
    return min(possible, key=lambda m: m.projected.cost, default=None)


def _add(
    found: list[Minimum], projector: Projector, domain: Domain, new: Projected
) -> None:
    for k, old in enumerate(found):
        if is_same(old.projected.point, new.point):
            kept = min(old.projected, new, key=lambda p: p.cost)
            found[k] = replace(old, projected=kept, hits=old.hits + 1)
            break
    else:
        defect = domain.defect(new.point) or defect_of(projector, new)
        found.append(Minimum(new, defect))
    found.sort(key=lambda m: m.projected.cost)


def is_same(a: Point, b: Point) -> bool:
    """Whether two points are one but for whole turns and rounding."""
    turn = np.angle(np.exp(1j * (a.beta - b.beta)))
    gain = a.alpha / b.alpha - 1.0
    return bool(max(np.abs(turn).max(), np.abs(gain).max()) < _SAME)
