"""Find gains and offsets: descend from many places, keep what a body can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.domain import Domain
from armwise.calibration.point import Point
from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector
from armwise.calibration.structure import Structure

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_ROUNDS = 60
_DESCENTS = 60
"""Most starting points that are followed down."""

_HITS = 3
"""Times a minimum must be reached to be believed."""

_ALIKE = 10.0
"""Factor in cost up to which a mirror image is worth a descent."""

_SAME = 2e-3
"""Minima closer than this, in [rad] and relative gain, are the same."""

_LONGEST = 0.5
"""Longest step of an offset in [rad], and of a gain relative to itself."""


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


@dataclass(frozen=True, eq=False)
class Prior:
    """What was believed beforehand: unknowns lie about `std` from a point."""

    point: Point
    std: Float[np.ndarray, " unknowns"]

    def residual(self, point: Point) -> Float[np.ndarray, " unknowns"]:
        """How far a point is from it, in standard deviations."""
        away = point.away(self.point)
        return np.asarray(away[away.size - self.std.size :] / self.std)


def descend(
    projector: Projector,
    start: Point,
    is_sought: Bool[np.ndarray, " unknowns"],
    prior: Prior | None = None,
    tolerance: float = 1e-9,
    domain: Domain | None = None,
) -> Projected:
    """Follow Levenberg and Marquardt down from a starting point, out of a domain."""
    now, damping = projector.at(start), 1e-3
    height = now.cost + _believed(prior, start)
    for _ in range(_ROUNDS):
        step = _step(now, damping, is_sought, prior)
        point = now.point.moved(step)
        after = projector.cost(point) + _believed(prior, point)
        if after < height:
            gained = (height - after) / height
            now, height = projector.at(point), after
            damping = max(damping * 0.2, 1e-9)
            if domain is not None and domain.defect(point) is not None:
                break
            if gained < tolerance and damping < 1e-4:
                break
        else:
            damping *= 6.0
            if damping > 1e6 or np.max(np.abs(step)) < 1e-10:
                break
    return now


def _believed(prior: Prior | None, point: Point) -> float:
    return 0.0 if prior is None else float(np.sum(prior.residual(point) ** 2))


def _step(
    now: Projected, damping: float, is_sought: np.ndarray, prior: Prior | None
) -> np.ndarray:
    J, r = now.jacobian, now.residual
    if prior is not None:
        J = np.vstack([J, np.diag(1.0 / prior.std)])
        r = np.concatenate([r, -prior.residual(now.point)])
    J = J[:, is_sought]
    size = np.linalg.norm(J, axis=0)
    size[size == 0.0] = 1.0
    scaled = np.vstack([J / size, np.sqrt(damping) * np.eye(size.size)])
    target = np.concatenate([r, np.zeros(size.size)])
    step = np.zeros(is_sought.size)
    step[is_sought] = np.linalg.lstsq(scaled, target, rcond=None)[0] / size
    longest = float(np.max(np.abs(step), initial=0.0))
    return step if longest <= _LONGEST else step * (_LONGEST / longest)


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
