"""Find gains and offsets: descend from many places, keep what an arm can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.defects import defect_of
from armwise.calibration.descent import descend
from armwise.calibration.domain import Domain
from armwise.calibration.point import Point
from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector

if TYPE_CHECKING:
    from jaxtyping import Bool

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
